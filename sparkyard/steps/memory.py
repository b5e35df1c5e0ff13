"""Steps that wait until a node has the memory that a lane needs: after an old lane's stop, after a job that gives some back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparkyard.actions import WaitMemory
from sparkyard.facts import CONTAINERS, containers
from sparkyard.model import Lane, Node
from sparkyard.plan import Answers, Step, Verdict
from sparkyard.rendered_job import RenderedJob
from sparkyard.reporting.amounts import gigabytes
from sparkyard.system import SYSTEM, system

END_IT = "end what holds it: ps -eo rss,pid,args --sort=-rss | head"
MEMORY_BACK = 90.0
"""Seconds that a node may take to give back what a stopped engine held."""


def guarded(free: int, guard: int, what: str) -> Verdict | None:
    """Blocked where the memory guard would kill it at once: fewer bytes are free than it leaves."""
    if free >= guard:
        return None
    seen = f"{gigabytes(free)} of memory are free; {what} would be killed below {gigabytes(guard)} (limits.guard)"
    return Verdict("blocked", seen, next_step=END_IT)


def back_step(node: Node, wanted: int, needs: Sequence[str]) -> Step:
    """Waits until so many bytes are available."""

    def judge(answers: Answers) -> Verdict:
        free = system(answers).memory_available
        words = f"{gigabytes(free)} are free; {gigabytes(wanted)} are needed"
        if free >= wanted:
            return Verdict("ok", words)
        return Verdict("change", words, (WaitMemory(wanted, MEMORY_BACK),))

    return Step("service", "memory", node.name, "memory is back", judge, (SYSTEM,), tuple(needs))


def freed_steps(lane: Lane, jobs: Sequence[RenderedJob], needs: Sequence[str]) -> tuple[Step, ...]:
    """The memory of a start, asked for on the nodes of jobs that free some, once these are through."""
    names = freed_nodes(jobs)
    return tuple(_freed_step(lane, node, needs) for node in lane.nodes if node.name in names)


def freed_nodes(jobs: Sequence[RenderedJob]) -> set[str]:
    """The nodes on which a job of the start frees memory."""
    return {node for job in jobs if job.frees_memory for node in job.nodes}


def _freed_step(lane: Lane, node: Node, needs: Sequence[str]) -> Step:
    step = back_step(node, lane.recipe.limits.memory, needs)

    def judge(answers: Answers) -> Verdict:
        if any(c.lane == lane.name and c.running and not c.job for c in containers(answers)):
            return Verdict("ok", f"lane {lane.name} runs here, and has its memory")
        return step.judge(answers)

    return replace(step, title="enough memory", judge=judge, questions=(*step.questions, CONTAINERS))
