"""What must be free before a job begins: the GPU, memory, room on the filesystems of what it makes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from sparkyard.facts import ContainerFact, containers
from sparkyard.job_facts import JobFact
from sparkyard.job_written import places, written_fact, written_question
from sparkyard.model import Lane
from sparkyard.plan import Answers, Question, Verdict
from sparkyard.rendered_job import RenderedJob, RenderedRoom
from sparkyard.reporting.amounts import gigabytes
from sparkyard.steps.job_standing import begun_for
from sparkyard.steps.memory import END_IT, guarded
from sparkyard.steps.preflight import gpu, no_other_engine
from sparkyard.system import system
from sparkyard.trees import parse_disk

GIB = 2**30
BESIDE = 8 * GIB
"""Bytes that stay free beside a serving lane (design.md section 4)."""


def room_question(room: RenderedRoom) -> Question:
    return Question("ask_disk", (room.path,))


def room_questions(job: RenderedJob, node: str) -> tuple[Question, ...]:
    """What is asked of a node about the room that a job needs; nothing when it needs none."""
    rooms = tuple(room_question(room) for room in job.room_of(node))
    return (*rooms, written_question(job.begun(node), places(job, node))) if rooms else ()


def refused(
    job: RenderedJob, lane: Lane, answers: Answers, fact: JobFact, beside: Collection[str]
) -> Verdict | None:
    """Why the job cannot begin on a node; None when it can. ``beside`` are services of the lane that serve it, and may run."""
    return (
        _serving(job, lane, answers, beside)
        or _read(job, lane, answers, fact)
        or _gpu(job, lane, answers)
        or _memory(job, lane, answers)
        or _room(job, answers, fact)
    )


def _serving(job: RenderedJob, lane: Lane, answers: Answers, beside: Collection[str]) -> Verdict | None:
    found = [fact for fact in containers(answers) if _in_the_way(fact, lane, beside)]
    if not found:
        return None
    if job.at == "start":
        seen = ", ".join(fact.name for fact in found)
        return _stopped(job, f"{seen} runs, and comes after it", f"invoke restart --lane={lane.name}")
    free, wanted = system(answers).memory_available, job.memory + BESIDE
    serving = found[0].lane
    if job.gpu:
        return _stopped(job, f"it needs the GPU, and lane {serving} serves", f"invoke stop --lane={serving}")
    if free < wanted:
        seen = f"{gigabytes(free)} are free beside lane {serving}, expected {gigabytes(wanted)}"
        return _stopped(job, seen, f"invoke stop --lane={serving}")
    return None


def _read(job: RenderedJob, lane: Lane, answers: Answers, fact: JobFact) -> Verdict | None:
    """A lane that serves reads what its jobs of a build left: that is neither removed nor made again below it."""
    ranks = [each for each in containers(answers) if _in_the_way(each, lane, ()) and each.lane == lane.name]
    there = [each for each in job.outputs_of(answers.node) if fact.made[each.path].kind != "missing"]
    if job.at == "start" or not ranks or not there:
        return None
    seen = f"{ranks[0].name} runs, and reads what the job left and would make again"
    return _stopped(job, seen, f"invoke stop --lane={lane.name}")


def _in_the_way(fact: ContainerFact, lane: Lane, beside: Collection[str]) -> bool:
    mine = fact.lane == lane.name and fact.labels.get("sparkyard.service") in beside
    return bool(fact.lane) and not fact.job and fact.running and not mine


def _stopped(job: RenderedJob, seen: str, next_step: str) -> Verdict:
    return Verdict("blocked", f"the job {job.name} needs the lane stopped: {seen}", next_step=next_step)


def _gpu(job: RenderedJob, lane: Lane, answers: Answers) -> Verdict | None:
    if not job.gpu:
        return None
    verdicts = (no_other_engine(answers, gpu=True, lane=lane.name), gpu(answers))
    return next((verdict for verdict in verdicts if verdict.state != "ok"), None)


def _memory(job: RenderedJob, lane: Lane, answers: Answers) -> Verdict | None:
    free, guard = system(answers).memory_available, lane.recipe.limits.guard
    if free < job.memory:
        seen = f"{gigabytes(free)} of memory are free; the job {job.name} needs {gigabytes(job.memory)}"
        return Verdict("blocked", seen, next_step=END_IT)
    return guarded(free, guard, f"the job {job.name}")


def _room(job: RenderedJob, answers: Answers, fact: JobFact) -> Verdict | None:
    """What an unfinished run of it has written counts as free, and so do outputs that are removed before it begins."""
    wanted: dict[str, int] = {}
    disks = {
        room.path: parse_disk(answers.of(room_question(room)), answers.node, "free disk")
        for room in job.room_of(answers.node)
    }
    for room in job.room_of(answers.node):
        fs = disks[room.path].fs
        wanted[fs] = wanted.get(fs, 0) + (room.size or 0)
    own = _held(job, answers, fact) if disks else {}
    for disk in disks.values():
        held = own.get(disk.fs, 0)
        if disk.available + held < wanted[disk.fs]:
            what = f" and {held} are held by what it left" if held else ""
            seen = f"{disk.available} bytes are free on {disk.at}{what}; the job {job.name} needs {wanted[disk.fs]} bytes"
            lack = wanted[disk.fs] - disk.available - held
            return Verdict("blocked", seen, next_step=f"free {lack} bytes there ({gigabytes(lack)})")
    return None


def _held(job: RenderedJob, answers: Answers, fact: JobFact) -> dict[str, int]:
    """Filesystem → bytes that are the job's own already: written since it was begun, or in outputs whose removal gives them back.

    An output that was written since is among the first. One of which there are more names goes on taking its bytes when it is removed.
    """
    written = written_fact(answers, written_question(job.begun(answers.node), places(job, answers.node)))
    begun = written.since if begun_for(job, fact) else None
    held = dict(written.allocated) if begun is not None else {}
    older = [made for made in fact.made.values() if begun is None or made.mtime_ns <= begun]
    names = Counter((made.fs, made.inode) for made in older)
    for made in {(made.fs, made.inode): made for made in older}.values():
        if made.links <= names[made.fs, made.inode]:
            held[made.fs] = held.get(made.fs, 0) + made.allocated
    return held
