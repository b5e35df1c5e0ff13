"""What a job has written on a node since it was begun, wherever it does so: the question, its answer, and how much it will be. Pure.

Programs write under other names until a file is whole, and fill caches; so all files below the folders of a job's outputs and room are
measured that are younger than the record that it was begun, not the outputs alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkyard.manifest import unanswered
from sparkyard.plan import Answers, Question
from sparkyard.rendered_job import UNKNOWN, Expected, RenderedJob
from sparkyard.trees import refuse_cut

WINDOW = 60.0
"""Seconds that the rate of a job looks back: disks and compilers go in bursts."""
_ANSWER = re.compile(
    r"written 1\nsince (?:none|(?P<since>\d+\.\d{9}))\n(?P<places>(?:place [0-9a-f]+ \d+\n)*)"
    r"(?P<held>(?:held \d+ \d+ \d+\n)*)(?P<closed>closed\n)?//done\n?"
)


@dataclass(frozen=True, slots=True)
class Written:
    """What was written since the job was begun, each file once.

    Attributes:
        since: when that was, by the node's clock, in nanoseconds; None when it was not begun.
        allocated: filesystem → bytes that it takes there.
        content: bytes of content, holes and the rest of last blocks apart.
        closed: there are folders that could not be looked into, so it may be more.
    """

    since: int | None
    allocated: Mapping[str, int]
    content: int
    closed: bool


def places(job: RenderedJob, node: str) -> tuple[str, ...]:
    """The folders below which a job writes on a node, as far as its recipe says."""
    parents = (output.path.rpartition("/")[0] for output in job.outputs_of(node))
    return tuple(dict.fromkeys((*(room.path for room in job.room_of(node)), *parents)))


def written_question(begun: str, where: tuple[str, ...]) -> Question:
    """Asks for what was written below some folders since the record ``begun``."""
    return Question("ask_written", (begun, *where))


def written_fact(answers: Answers, asked: Question) -> Written:
    """What the node says. Raises CouldNotCheck for an answer that failed or was cut short."""
    answer, what = answers.of(asked), f"what was written since {asked.arguments[0]}"
    refuse_cut(answer, answers.node, what)
    found = _ANSWER.fullmatch(answer.out)
    if not found:
        raise unanswered(answers.node, what, f"it began with {answer.out[:80]!r}")
    filesystems = {device: fs for _, fs, device in (line.split() for line in found["places"].splitlines())}
    allocated: dict[str, int] = {}
    content = 0
    for _, device, taken, size in (line.split() for line in found["held"].splitlines()):
        fs = filesystems.get(device, "")
        allocated[fs] = allocated.get(fs, 0) + int(taken)
        content += int(size)
    since = found["since"] and int(found["since"].replace(".", ""))
    return Written(since or None, allocated, content, bool(found["closed"]))


def expected(job: RenderedJob, node: str) -> Expected:
    """The sizes of its outputs where the recipe knows all of them; else the room that it asks for, as the most that it may be."""
    sizes = [output.size for output in job.outputs_of(node)]
    known = [size for size in sizes if size is not None]
    if known and len(known) == len(sizes):
        return Expected(sum(known))
    rooms = [room.size for room in job.room_of(node)]
    return Expected(sum(room for room in rooms if room), at_most=True) if rooms and all(rooms) else UNKNOWN


def shown(wanted: Expected, content: int) -> tuple[int, int]:
    """How many bytes of how many; of 0, which is of nobody knows how many, where more was written than there was to be room for.

    Beside outputs whose sizes are known a program may write other files; they are done when they are.
    """
    if content <= wanted.size:
        return content, wanted.size
    return (content, 0) if wanted.at_most else (wanted.size or content, wanted.size)


@dataclass
class Pace:
    """Bytes a second over the last minute. Times are seconds of a clock that only goes forward."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, done: int, now: float) -> float:
        """Take in how much is there now; 0 when the rate cannot be known, or nothing was written."""
        self._samples.append((now, done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()
        first, before = self._samples[0]
        return max((done - before) / (now - first), 0.0) if now > first else 0.0
