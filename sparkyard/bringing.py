"""Tells a person, after a build, where the values are that its jobs brought forth and that only a person can write into the inventory."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

from sparkyard.asking import ask
from sparkyard.command import fill
from sparkyard.errors import CouldNotCheck, SparkyardError
from sparkyard.executors.watch import split_stamp
from sparkyard.line import Line
from sparkyard.model import Lane
from sparkyard.plan import Question
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedBringing, RenderedJob
from sparkyard.trees import Seen, parse_tree

FILES = LINES = 12
"""At most so many files, and so many line numbers of a log, are named."""


def still_to_set(rendered: RenderedLane) -> str:
    """What to type for a lane that cannot start before a job of its build has brought forth a setting; empty when there is none."""
    names = dict.fromkeys(one.setting for job in rendered.jobs for one in job.brings)
    if not names:
        return ""
    said = " and ".join(names)
    return f"invoke download build --lane={rendered.lane} needs no {said}, and ends with where to find it"


def tell_what_jobs_brought(line: Line, lane: Lane, rendered: RenderedLane) -> None:
    """For each setting that a sealed job brings forth and the inventory lacks: the files and the lines of its log to look at.

    Names and numbers alone are told: what is in them may be a secret.
    """
    if line.options.check:
        return
    for job in rendered.jobs:
        for one in job.brings:
            if _sealed(line, job):
                _tell(line, lane, job, one)


def _sealed(line: Line, job: RenderedJob) -> bool:
    """Whether this line saw the job done."""
    step = f"job:{job.name}@{job.nodes[0]}"
    return any(event.step == step and event.type in ("step-ok", "step-changed") for event in line.events)


def _tell(line: Line, lane: Lane, job: RenderedJob, one: RenderedBringing) -> None:
    line.say(
        f"the build is done; a start still needs {one.setting}: {lane.recipe.settings[one.setting].about}",
        details=[*_files(line, lane, one), *_log(line, lane, job, one)],
        next=f"write it into {line.folder}/hosts.yml: lanes: {{{lane.name}: {{{one.setting}: …}}}}, then type: invoke start --lane={lane.name}",
    )


def _files(line: Line, lane: Lane, one: RenderedBringing) -> list[str]:
    head, asked = lane.head.name, Question("ask_offer", (one.folder, "-P"))
    folder = one.folder
    try:
        answers = ask(line.around, head, (asked,))
        folder = fill(one.folder, answers.discovered)
        files = parse_tree(answers.of(asked), head, folder).files
    except CouldNotCheck:
        return [f"look on {head} into {folder}: sudo ls -lR {shlex.quote(folder)}"]
    except SparkyardError as error:
        return [f"{folder} on {head} could not be looked at: {error.message}"]
    newest = sorted((seen for seen in files.values() if seen.kind == "f"), key=lambda seen: -seen.mtime_ns)
    if not newest:
        return [f"no file is in {folder} on {head}"]
    more = [f"and {len(newest) - FILES} more"] if len(newest) > FILES else []
    return [
        f"files in {folder} on {head}, the newest first:",
        *(f"  {_named(s)}" for s in newest[:FILES]),
        *more,
    ]


def _named(seen: Seen) -> str:
    name = seen.path if seen.path.isprintable() else ascii(seen.path)
    return f"{name} ({seen.size} bytes, {_when(seen.mtime_ns // 10**9)})"


def _when(seconds: int) -> str:
    """A file's time; filesystems keep ones that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s after 1970"


def _log(line: Line, lane: Lane, job: RenderedJob, one: RenderedBringing) -> list[str]:
    """The newest log of the job that a run of ours saved on this machine, and its lines that may tell."""
    saved = sorted(line.folders.runs.glob(f"*/logs/{lane.head.name}-{one.container}.log"))
    if not saved:
        return []
    found = _matching(saved[-1], one.log)
    if not found:
        return [f"no line of the log of job {job.name} speaks of it: {saved[-1]}"]
    which = ", ".join(map(str, found[-LINES:]))
    return [f"line{'' if len(found) == 1 else 's'} {which} of the log of job {job.name}: {saved[-1]}"]


def _matching(log: Path, pattern: str) -> list[int]:
    wanted = re.compile(pattern)
    with log.open(encoding="utf-8", errors="replace") as lines:
        return [
            number for number, text in enumerate(lines, 1) if wanted.search(split_stamp(text.rstrip("\n"))[1])
        ]
