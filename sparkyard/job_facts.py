"""What a node says of a job: its two records, and the files at the paths of its outputs. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sparkyard.manifest import unanswered
from sparkyard.plan import Answers, Question
from sparkyard.rendered_job import RenderedJob
from sparkyard.trees import refuse_cut

VERSION = 1
"""Of the records."""
_ANSWER = re.compile(r"job 1 (-?\d+)\n//seal\n(.*)\n//begun\n(.*)\n//made\n(.*)//done\n?", re.DOTALL)
_MADE = re.compile(r"([0-9a-f]+)\|([a-z ]+)\|(\d+)\|(\d+)\|(\d+)\|(-?\d+)\.(\d{9})\|(-?\d+)\.(\d{9})\|(\d+)")
_MISSING = re.compile(r"([0-9a-f]+)\|missing")


@dataclass(frozen=True, slots=True)
class Made:
    """What lies at the path of an output. Sizes are bytes; ``allocated`` is what it takes on its filesystem ``fs``, ``links`` its names."""

    fs: str
    kind: Literal["missing", "regular", "other"] = "missing"
    inode: int = 0
    size: int = 0
    allocated: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    links: int = 1

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What changes whenever the file does: size, inode, and both times."""
        return (self.size, self.inode, self.mtime_ns, self.ctime_ns)


@dataclass(frozen=True, slots=True)
class JobFact:
    """A job on one node. ``seal`` and ``begun`` are the records as parsed; None without one, or when it cannot be read.

    ``made`` goes by the path as it was asked for. ``age`` is of the seal, by the node's own clock, in seconds. ``damaged``: there
    is a seal, and it cannot be read.
    """

    seal: Mapping[str, Any] | None
    begun: Mapping[str, Any] | None
    made: Mapping[str, Made]
    age: int = 0
    damaged: bool = False


def job_question(job: RenderedJob, node: str) -> Question:
    """Asks a node for the records and outputs of a job."""
    return Question(
        "ask_job", (job.seal(node), job.begun(node), *(output.path for output in job.outputs_of(node)))
    )


def made_question(paths: tuple[str, ...]) -> Question:
    """Asks a node for outputs alone."""
    return Question("ask_job", ("/dev/null", "/dev/null", *paths))


def made_fact(answers: Answers, asked: Question) -> dict[str, Made]:
    """Path → what lies there. Raises CouldNotCheck for an answer that failed or was cut short."""
    return dict(job_fact(answers, asked).made)


def job_fact(answers: Answers, asked: Question) -> JobFact:
    """What the node says. Raises CouldNotCheck for an answer that failed or was cut short."""
    answer, what = answers.of(asked), f"job record {asked.arguments[0]}"
    refuse_cut(answer, answers.node, what)
    found = _ANSWER.fullmatch(answer.out)
    paths = asked.arguments[2:]
    lines = found[4].splitlines() if found else []
    if not found or len(lines) != len(paths):
        raise unanswered(answers.node, what, f"it began with {answer.out[:80]!r}")
    made = {path: _made(line, answers.node, path) for path, line in zip(paths, lines, strict=True)}
    seal, begun = _record(found[2]), _record(found[3])
    return JobFact(seal, begun, made, int(found[1]), damaged=seal is None and bool(found[2].strip()))


def _made(line: str, node: str, path: str) -> Made:
    if missing := _MISSING.fullmatch(line):
        return Made(missing[1])
    found = _MADE.fullmatch(line)
    if not found:
        raise unanswered(node, path, f"it was told as {line[:80]!r}")
    fs, kind, inode, size, blocks, *times = found.groups()
    mtime, mtime_part, ctime, ctime_part, links = map(int, times)
    return Made(
        fs,
        "regular" if kind.startswith("regular") else "other",
        int(inode),
        int(size),
        int(blocks) * 512,
        mtime * 10**9 + mtime_part,
        ctime * 10**9 + ctime_part,
        links,
    )


def _record(text: str) -> Mapping[str, Any] | None:
    """A record of this version; None for anything else, as nothing can be known from it."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("version") == VERSION else None


def begun_text(job: RenderedJob, node: str) -> str:
    """The record that a job is begun: of which hash, and which outputs are its own from now on."""
    body = {
        "version": VERSION,
        "job": job.name,
        "hash": job.hash,
        "outputs": [output.path for output in job.outputs_of(node)],
    }
    return json.dumps(body) + "\n"


def sealed_outputs(made: Mapping[str, Made]) -> list[dict[str, Any]]:
    """The outputs of a node as a seal keeps them, by path."""
    return [
        {
            "path": path,
            "bytes": each.size,
            "inode": each.inode,
            "mtime_ns": each.mtime_ns,
            "ctime_ns": each.ctime_ns,
        }
        for path, each in made.items()
    ]


def sealed_identities(seal: Mapping[str, Any]) -> dict[str, tuple[int, int, int, int]]:
    """Path → identity of each output that a seal names; empty for one that cannot be used."""
    try:
        return {
            str(one["path"]): (
                int(one["bytes"]),
                int(one["inode"]),
                int(one["mtime_ns"]),
                int(one["ctime_ns"]),
            )
            for one in seal["outputs"]
        }
    except (KeyError, TypeError, ValueError):
        return {}
