"""What can go wrong, as one family of exceptions.

Each kind carries the exit status of the whole line and, where there is one, the next thing to type. The words of an error are
for the person at the keyboard: node, layer, what was seen, what was expected, the one next step, and whether anything changed.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class SparkyardError(Exception):
    """Base of every expected failure. A traceback of anything else is a bug.

    Args:
        message: one plain sentence or more; what was seen and what was expected.
        next_step: the one thing to do or type next, without trailing full stop.
        node: the node it happened on, if it happened on one.
        details: further lines (last log lines, fingerprints), shown indented.
    """

    status = 1

    def __init__(
        self, message: str, *, next_step: str = "", node: str = "", details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.node = node
        self.details = tuple(details)

    def __str__(self) -> str:
        where = f"{self.node}: " if self.node else ""
        lines = [f"{where}{self.message}", *(f"  {line}" for line in self.details)]
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class StepFailed(SparkyardError):
    """An action or a check on a node failed."""


class PatchRefused(SparkyardError):
    """A text that is neither pristine nor patched, or on which an edit does not fit."""


FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class SystemRefused(SparkyardError):
    """The machine where sparkyard runs would not do something: a full disk, a folder that may not be written."""

    @classmethod
    def of(cls, error: OSError) -> SystemRefused:
        """The same for people: what was seen, where, and what to do."""
        reason = error.strerror or str(error) or type(error).__name__
        where = f"{error.filename}: " if error.filename else ""
        if error.errno in FULL:
            next_step = "make room (df -h), then type the same line again"
        elif error.errno in FORBIDDEN:
            next_step = "make it writable for you, or name another folder"
        else:
            next_step = ""
        return cls(f"{where}{reason}", next_step=next_step)


class CouldNotCheck(SparkyardError):
    """A question had no usable answer. Counts as failed, and is never taken for a pass."""


class UsageError(SparkyardError):
    """The line as typed cannot be run."""

    status = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in a configuration file.

    ``key`` is the dotted path of the value (``lanes.A.context``); ``line`` is 1-based, 0 when the fault has no line.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}{self.message}"


class ConfigError(UsageError):
    """Every fault of the configuration, at once, in file and line order."""

    def __init__(self, faults: Iterable[Fault], *, next_step: str = "") -> None:
        self.faults = tuple(sorted(set(faults), key=lambda f: (f.file, f.line, f.key, f.message)))
        count = len(self.faults)
        title = f"{count} fault{'' if count == 1 else 's'} in the configuration; nothing was run"
        super().__init__(title, details=[str(f) for f in self.faults], next_step=next_step)


class VerifyFailed(SparkyardError):
    """A verify check failed or could not be made."""

    status = 3


class Unreachable(SparkyardError):
    """A node did not answer, or must not be trusted (host key)."""

    status = 4


class LockHeld(SparkyardError):
    """Another sparkyard works on a node."""

    status = 5


class ChangesPending(SparkyardError):
    """``--check`` found work to do."""

    status = 6


class Interrupted(SparkyardError):
    """Ctrl-C or SIGTERM."""

    status = 130


SEVERITY = (130, 2, 5, 4, 1, 3, 6)
"""Which exit status wins when several apply (design.md section 7); 2 never meets the others in practice."""


def worst(statuses: Iterable[int]) -> int:
    """The exit status of a line from the statuses of its parts; 0 when all are 0."""
    seen = {status for status in statuses if status}
    return next((status for status in SEVERITY if status in seen), max(seen, default=0))
