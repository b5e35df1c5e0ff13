"""A job of two ranks, and the raw answers of their nodes about it: what the tests of its steps judge from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkyard import facts
from sparkyard.facts import folder_question
from sparkyard.job_facts import job_question
from sparkyard.job_written import places, written_question
from sparkyard.model import Node
from sparkyard.plan import Answers, Step, Verdict
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.steps import job as jobs
from sparkyard.steps.job_gates import room_question
from tests.unit import raw, sample

GIB = 2**30
HOME = "/home/spark/.local/share/sparkyard/lanes/T"
SOURCE = {"kind": "chosen", "why": "for a test"}
NODES = (raw.HEAD, raw.WORKER)
MISSING = "ab|missing"
WHOLE = "ab|regular file|7|4096|8|1700000000.000000001|1700000000.000000002|1"
THERE = {"path": f"{HOME}/rows/rows-0.bin", "bytes": 4096, "inode": 7}
TIMES = {"mtime_ns": 1_700_000_000_000_000_001, "ctime_ns": 1_700_000_000_000_000_002}


def rows(**changes: Any) -> dict[str, Any]:
    """A job of both ranks that leaves a file of 4,096 bytes on each."""
    made: dict[str, Any] = {
        "about": "packs",
        "source": SOURCE,
        "nodes": "all",
        "timeout": 60.0,
        "words": ["pack", "{{ rank }}"],
        "mounts": [{"source": "{{ root }}/rows", "target": "/out", "read_only": False, "create": True}],
        "makes": [{"path": "{{ root }}/rows/rows-{{ rank }}.bin", "bytes": "4096"}],
        "room": [{"path": "{{ root }}/rows", "bytes": "1000000"}],
    }
    return made | changes


def rendered(**changes: Any) -> RenderedLane:
    data = sample.recipe_data() | {"jobs": {"rows": rows(**changes)}}
    return render_lane(sample.lane(data=data), {})


LANE = sample.lane(data=sample.recipe_data() | {"jobs": {"rows": rows()}})
RENDERED = rendered()
(JOB,) = RENDERED.jobs


def steps(lane: RenderedLane = RENDERED) -> dict[str, Step]:
    return {step.id: step for step in jobs.job_steps(LANE, lane, lane.jobs)}


def seal(rank: int, **changes: Any) -> str:
    output = THERE | TIMES | {"path": f"{HOME}/rows/rows-{rank}.bin"}
    return json.dumps({"version": 1, "hash": JOB.hash, "outputs": [output]} | changes)


def begun(rank: int, **changes: Any) -> str:
    path = JOB.outputs_of(NODES[rank].name)[0].path
    return json.dumps({"version": 1, "job": "rows", "hash": JOB.hash, "outputs": [path]} | changes)


def told(
    rank: int,
    sealed: str = "",
    started: str = "",
    made: str = MISSING,
    found: tuple[Mapping[str, Any], ...] = (),
    available: int = 10**12,
    age: int = 0,
    written: str = "since none\nplace ab 9\n",
    **more: Any,
) -> Answers:
    """The answers of one node about the job."""
    node: Node = NODES[rank]
    asked = job_question(JOB, node.name)
    text = f"job 1 {age}\n//seal\n{sealed}\n//begun\n{started}\n//made\n{made}\n//done\n"
    disk = f"disk 1\nfs ab\navailable {available}\nat {HOME}/rows\n//done\n"
    given = {
        asked: (0, text, ""),
        facts.CONTAINERS: raw.containers(*found),
        room_question(JOB.room_of(node.name)[0]): (0, disk, ""),
        written_question(JOB.begun(node.name), places(JOB, node.name)): (
            0,
            f"written 1\n{written}//done\n",
            "",
        ),
        folder_question(f"{sample.node(rank).root}/lanes/T/rows"): (0, "directory|755|spark\nwritable\n", ""),
    }
    return raw.answers(node, given, **more)


def container(rank: int, state: str = "running", **changes: Any) -> dict[str, Any]:
    labels = {"sparkyard.lane": "T", "sparkyard.job": "rows", "sparkyard.hash": JOB.hash}
    return {"name": f"sparkyard-T-job-rows-{rank}", "labels": labels, "state": state} | changes


def judge(id_: str, *answers: Answers, lane: RenderedLane = RENDERED) -> Verdict:
    """The verdict of a step, with the other node's answers beside its own."""
    step = steps(lane)[id_]
    own = next(each for each in answers if each.node == step.node)
    others = {each.node: each for each in answers if each is not own}
    return step.judge(replace(own, others=others))


def acts(verdict: Verdict) -> tuple[Any, ...]:
    """Its actions, each of the kind that the test expects."""
    return verdict.actions


def both(**more: Any) -> tuple[Answers, Answers]:
    return told(0, **more), told(1, **more)


def kinds(verdict: Verdict) -> list[type]:
    return [type(action) for action in verdict.actions]


def sealed_both() -> tuple[Answers, Answers]:
    return told(0, seal(0), made=WHOLE), told(1, seal(1), made=WHOLE)
