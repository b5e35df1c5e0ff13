"""Folders that services fill and that outlive them: what they grow to, what lies there, and what is still to come. Pure.

Sizes are bytes. An engine may delete what another setting, recipe or version of it wrote, so the path holds all of that, and what
lies beside it was written with other settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkyard.manifest import unanswered
from sparkyard.plan import Answers, Question
from sparkyard.trees import refuse_cut

_ANSWER = re.compile(
    r"kept 1\nfs ([0-9a-f]+)\navailable (\d+)\nat ([^\n]+)\nused (\d+|unknown)\n((?:beside [^\n]+\n)*)//done\n?"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder on one node that grows to ``size`` bytes."""

    name: str
    path: str
    size: int

    @property
    def asked(self) -> Question:
        return Question("ask_kept", (self.path,))


@dataclass(frozen=True, slots=True)
class Room:
    """What a node says of a kept folder: its filesystem, the bytes free there, the bytes that it holds (None when they
    cannot be counted), and the names of the folders beside it."""

    fs: str
    available: int
    at: str
    used: int | None
    beside: tuple[str, ...]


def parse_room(answers: Answers, kept: Kept) -> Room:
    """What the node says of it. Raises CouldNotCheck for an answer that failed or was cut short."""
    answer = answers.of(kept.asked)
    refuse_cut(answer, answers.node, kept.path)
    found = _ANSWER.fullmatch(answer.out)
    if not found:
        raise unanswered(answers.node, kept.path, f"it began with {answer.out[:80]!r}")
    fs, available, at, used, beside = found.groups()
    names = tuple(line.removeprefix("beside ") for line in beside.splitlines())
    return Room(fs, int(available), at, None if used == "unknown" else int(used), names)


def to_come(answers: Answers, folders: Iterable[Kept]) -> Mapping[str, int]:
    """Filesystem → bytes that the folders will still take there.

    A folder that the engine closed to us counts as full: its services wrote it, and most of it is there.
    """
    found: dict[str, int] = {}
    for kept in folders:
        room = parse_room(answers, kept)
        missing = 0 if room.used is None else max(0, kept.size - room.used)
        found[room.fs] = found.get(room.fs, 0) + missing
    return found


def left_beside(answers: Answers, folders: Iterable[Kept]) -> tuple[str, ...]:
    """One line for each folder that other settings or versions left, with the way to be rid of it."""
    return tuple(
        f"{kept.name}: {name} was written with other settings, and is not used by these; "
        f"to be rid of it: sudo rm -r {kept.path.rpartition('/')[0]}/{name}"
        for kept in folders
        for name in parse_room(answers, kept).beside
    )
