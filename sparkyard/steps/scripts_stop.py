"""Steps that stop what a kit's own scripts started, on every node. Pure.

Four sweeps: logs are saved on every node, the kit's own stop script runs on the head, what is left is stopped one by one, old
records go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sparkyard.actions import Run, SaveLogs, StopContainer, StopScripts
from sparkyard.command import Command, fill
from sparkyard.facts import CONTAINERS, ContainerFact, containers
from sparkyard.model import Lane, Node
from sparkyard.plan import Answers, Judge, Step, Verdict
from sparkyard.records import path, records
from sparkyard.rendered import RenderedLane
from sparkyard.steps.scripts_found import (
    checked_out,
    clone_question,
    command,
    found,
    kit,
    stranger,
    together_name,
    unfit_reason,
    with_containers,
)

STOP_LIMIT = 180.0
"""Seconds for the kit's stop script."""

Leave = Callable[[ContainerFact], str]
"""Why a container must go; empty when it may stay."""


def stop_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """Stop every container of the kit on every node."""
    return stop_sweeps(lane, rendered, tuple(needs), outdated=False)


def stop_sweeps(
    lane: Lane, rendered: RenderedLane, needs: Sequence[str], *, outdated: bool
) -> tuple[Step, ...]:
    prefix, leave = ("outdated", partial(unfit_reason, rendered)) if outdated else ("stop", _any)
    nodes = with_containers(lane, rendered)
    saved = tuple(_save_step(lane, rendered, node, needs, prefix, leave) for node in nodes)
    scripts = _stop_script_step(lane, rendered, tuple(step.id for step in saved), prefix, leave)
    before = (*needs, *(step.id for step in saved), scripts.id)
    left = tuple(_left_step(lane, rendered, node, before, prefix, leave) for node in nodes)
    return (*saved, scripts, *left)


def _any(fact: ContainerFact) -> str:
    return f"is {fact.state}"


def _too(leave: Leave, fact: ContainerFact) -> str:
    """Why it goes when another rank must."""
    return leave(fact) or "must go because another rank must be started, and a rank cannot rejoin alone"


def _going(
    answers: Answers, rendered: RenderedLane, leave: Leave
) -> Verdict | tuple[tuple[ContainerFact, str], ...]:
    """(container, why) of each that must go; a verdict when one of them must not be touched."""
    pairs = found(answers, rendered.containers_of(answers.node))
    for fact, wanted in pairs:
        if blocked := stranger(fact, wanted, rendered):
            return blocked
    reasons = ((fact, leave(fact)) for fact, _ in pairs)
    return tuple((fact, why) for fact, why in reasons if why)


def _save_step(
    lane: Lane, rendered: RenderedLane, node: Node, needs: Sequence[str], prefix: str, leave: Leave
) -> Step:
    def judge(answers: Answers, why: Leave = leave) -> Verdict:
        going = _going(answers, rendered, why)
        if isinstance(going, Verdict):
            return going
        if not going:
            return Verdict("ok", "no log is to be saved")
        words = ", ".join(f"{fact.name} {reason}" for fact, reason in going)
        lost = [
            f"{f.name} on {answers.node} {r}"
            for f, r in going
            if f.running and (not f.lane or (prefix == "outdated" and leave(f)))
        ]
        destroys = f"{', '.join(lost)}, and would be stopped" if lost else ""
        return Verdict("change", words, tuple(SaveLogs(fact.name) for fact, _ in going), destroys=destroys)

    def again(_answers: Answers) -> Judge:
        return partial(judge, why=partial(_too, leave))

    title = f"lane {lane.name}: save its logs"
    return Step(
        "service",
        f"{prefix}-logs",
        node.name,
        title,
        judge,
        (CONTAINERS,),
        tuple(needs),
        recheck=False,
        together=together_name(lane, prefix),
        again=again,
    )


def _stop_script_step(
    lane: Lane, rendered: RenderedLane, needs: tuple[str, ...], prefix: str, leave: Leave
) -> Step:
    """The kit's own stop, for all nodes at once; left out where its clone is not there (a kit that was started elsewhere)."""

    def judge(answers: Answers, why: Leave = leave) -> Verdict:
        going = _going(answers, rendered, why)
        if isinstance(going, Verdict):
            return going
        if not going:
            return Verdict("ok", "nothing of the kit is to be stopped")
        if checked_out(answers, rendered) != kit(rendered).commit:
            return Verdict("skipped", "the kit's clone is not here: its containers are stopped one by one")
        stop = StopScripts(command(rendered, kit(rendered).stop, answers, STOP_LIMIT))
        return Verdict("change", "by the kit's own script", (stop,))

    def again(_answers: Answers) -> Judge:
        return partial(judge, why=partial(_too, leave))

    return Step(
        "service",
        f"{prefix}-script",
        lane.head.name,
        f"lane {lane.name}: the kit's own stop",
        judge,
        (CONTAINERS, clone_question(rendered)),
        needs,
        recheck=False,
        together=together_name(lane, prefix),
        again=again,
    )


def _left_step(
    lane: Lane, rendered: RenderedLane, node: Node, needs: Sequence[str], prefix: str, leave: Leave
) -> Step:
    """What the kit's script left is stopped by us; records of containers that are gone are removed."""
    names = [container.name for container in rendered.containers_of(node.name)]

    def judge(answers: Answers, why: Leave = leave) -> Verdict:
        going = _going(answers, rendered, why)
        if isinstance(going, Verdict):
            return going
        there = {fact.name for fact in containers(answers)}
        old = [name for name in records(answers) if name in names and name not in there]
        if not going and not old:
            none = (
                "nothing outdated runs here"
                if prefix == "outdated"
                else f"nothing of lane {lane.name} is here"
            )
            return Verdict("ok", none)
        stops = tuple(StopContainer(fact.name, lane.recipe.stop.grace, fact.image) for fact, _ in going)
        forget = tuple(_forget(name, answers) for name in old)
        words = ", ".join(f"{fact.name} {reason}" for fact, reason in going) or "its record is old"
        return Verdict("change", words, (*stops, *forget))

    def again(_answers: Answers) -> Judge:
        return partial(judge, why=partial(_too, leave))

    title = f"lane {lane.name}: stop" if prefix == "stop" else f"lane {lane.name}: stop what is outdated"
    return Step(
        "service",
        prefix,
        node.name,
        title,
        judge,
        (CONTAINERS,),
        tuple(needs),
        together=together_name(lane, prefix),
        again=again,
    )


def _forget(container: str, answers: Answers) -> Run:
    where = fill(path(container), answers.discovered)
    return Run(f"forget {container}", Command.of("rm", "-f", "--", where, timeout=30))
