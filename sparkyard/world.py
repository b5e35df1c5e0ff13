"""What an executor may use to act: shells, progress, the cancel signal. The engine provides the real one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sparkyard.command import Command, mask
from sparkyard.errors import StepFailed
from sparkyard.model import Inventory, Node

if TYPE_CHECKING:
    from sparkyard.executors.watch import Watches

Result = Literal["pass", "fail", "not supported (published)", "could not check"]
OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended: exit status (negative for a signal) and both outputs, as bytes."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")

    def last_lines(self, count: int = 10) -> tuple[str, ...]:
        """The last lines of standard error, or of standard output when that is empty."""
        text = (self.err.strip() or self.out.strip()).decode(errors="replace")
        return tuple(text.splitlines()[-count:])


class Shell(Protocol):
    """Runs commands on one node: local subprocesses or fabric. Thread-safe; every call may be cancelled."""

    @property
    def node(self) -> Node: ...

    def run(
        self,
        command: Command,
        *,
        on_line: OnLine | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run to the end. ``on_line`` gets each line of both outputs as it comes (masked by the caller).

        Raises Unreachable when the node cannot be reached, StepFailed on the command's time limit, Interrupted when
        ``cancel`` (or the world's) was set; in each case nothing is left running on the node.
        """
        ...


class World(Protocol):
    """The surroundings of one step that acts."""

    @property
    def inventory(self) -> Inventory: ...

    @property
    def cancelled(self) -> threading.Event: ...

    @property
    def interrupted(self) -> threading.Event:
        """Set where a person asked for the end; ``cancelled`` alone may also be a failure elsewhere, or a lost lock."""
        ...

    @property
    def run_folder(self) -> Path:
        """The folder of this run's record, on the machine where sparkyard runs."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be kept in any file of the record."""
        ...

    @property
    def own_folder(self) -> Path:
        """sparkyard's state folder on this machine (manifests, known_hosts)."""
        ...

    @property
    def watches(self) -> Watches:
        """The watched containers of this run: ``Watches(run_folder / "logs")``, closed when the run ends."""
        ...

    def shell(self, node: str) -> Shell: ...

    def ssh_words(self, node: str) -> tuple[str, ...]:
        """The ssh program with the options that every path shares: HostKeyAlias, known_hosts, strict checking, batch mode,
        user, port and key. Without the address: append ``user-less`` link or management address."""
        ...

    def say(self, line: str) -> None:
        """One line of output of the running step."""
        ...

    def progress(
        self,
        done: int,
        total: int,
        label: str,
        unit: str = "bytes",
        *,
        node: str = "",
        rate: float = 0.0,
        at_most: bool = False,
    ) -> None:
        """Progress of the running step; the view computes the time left, and the rate where none is given. May be called often.

        ``node`` is where it is, if not on the step's own. ``total`` is 0 when nobody knows it; with ``at_most`` it may be less.
        """
        ...

    def tell(self, lines: Sequence[str], **facts: Mapping[str, int]) -> None:
        """What people read below the step once it has ended, and facts for the event that says so."""
        ...

    def verdict(
        self, asked: str, answered: str, result: Result, found: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """The result of a verify check, with what was asked and what came back, both shortened; ``found`` are its parts, for machines."""
        ...


def must(shell: Shell, command: Command, what: str, *, on_line: OnLine | None = None) -> Completed:
    """Run and demand status 0. Raises StepFailed with the command, its status and its last lines."""
    done = shell.run(command, on_line=on_line)
    if done.status != 0:
        raise StepFailed(
            f"{what} failed with status {done.status}",
            node=shell.node.name,
            details=[
                f"command: {command.shown()}",
                *(mask(line, command.secrets) for line in done.last_lines()),
            ],
        )
    return done
