"""Steps that start, stop and restart the containers of a lane's ranks. Pure. Those of a kit's own scripts: ``scripts.py``.

A start is three sweeps: stop what is in the way on every node (other lanes, outdated or dead ranks), then start the ranks in
the recipe's order, then wait until the API answers. A rank cannot rejoin alone: when one of them must be started, the
others, if they still run, are stopped first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sparkyard.actions import Action, Run, StartContainer, StopContainer, WaitReady
from sparkyard.command import Command, fill
from sparkyard.docker_words import MARK
from sparkyard.facts import CONTAINERS, ContainerFact, containers, folder, folder_question
from sparkyard.model import Container, Lane, Node
from sparkyard.plan import Answers, Judge, Step, Verdict
from sparkyard.rendered import RenderedGate, RenderedLane
from sparkyard.steps import job, memory
from sparkyard.steps.files import not_discovered
from sparkyard.system import SYSTEM

OTHERS_GRACE = 60.0
"""Seconds between TERM and KILL for containers of another lane, whose recipe is not at hand."""


RUN_LIMIT = 300.0
"""Seconds that ``docker run --detach`` may take before the engine itself starts."""


def start_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """Every step of a start, each after ``needs`` (ids of preflight, image, file and checkpoint steps)."""
    clear = others_steps(lane, needs)
    outdated = tuple(_outdated_step(lane, container, needs) for container in rendered.containers)
    before = (*needs, *(step.id for step in (*clear, *outdated)))
    started: list[Step] = []
    for number in range(len(rendered.stages)):
        steps = _stage_steps(lane, rendered, number, before)
        started += steps
        before = (*before, *(step.id for step in steps))
    ready = ready_step(lane, rendered, tuple(step.id for step in started))
    return (*clear, *outdated, *started, ready)


def _stage_steps(lane: Lane, rendered: RenderedLane, number: int, before: tuple[str, ...]) -> list[Step]:
    """The steps of one stage: a job, or services whose ranks start in the recipe's order."""
    stage = rendered.stages[number]
    jobs = [each for each in rendered.jobs if each.name in stage]
    if jobs:
        earlier = [name for names in rendered.stages[:number] for name in names]
        ran = job.job_steps(lane, rendered, jobs, before, beside=earlier)
        return [*ran, *memory.freed_steps(lane, jobs, (*before, *(step.id for step in ran)))]
    started: list[Step] = []
    for group in rendered.order:
        ranks = [
            _start_step(lane, rendered, container, before)
            for container in rendered.containers
            if container.rank in group and container.service in stage
        ]
        started += ranks
        before = (*before, *(step.id for step in ranks))
    return started


def stop_steps(lane: Lane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """A step a node that stops and removes every container of the lane, in the recipe's stop order."""
    spec = lane.recipe.stop
    steps = {node: _stop_step(lane.name, node, spec.grace, needs) for node in lane.nodes}
    head, workers = lane.nodes[:1], lane.nodes[1:]
    groups = {
        "together": (lane.nodes,),
        "head-first": (head, workers),
        "workers-first": (workers, head),
    }[spec.order]
    ordered: list[Step] = []
    before = tuple(needs)
    for group in groups:
        ranks = [_after(steps[node], before) for node in group]
        ordered += ranks
        before = (*before, *(step.id for step in ranks))
    return tuple(ordered)


def restart_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """A stop of every rank, then a start of every rank."""
    stops = stop_steps(lane, needs)
    return (*stops, *start_steps(lane, rendered, (*needs, *(step.id for step in stops))))


def on_failure(lane: Lane, rendered: RenderedLane) -> Mapping[str, tuple[Action, ...]]:
    """What undoes a failed start, by node: a stop of each container (of those that the run started)."""
    return {
        node.name: tuple(
            StopContainer(c.name, lane.recipe.stop.grace) for c in rendered.containers_of(node.name)
        )
        for node in lane.nodes
    }


def _after(step: Step, needs: tuple[str, ...]) -> Step:
    return Step(step.noun, step.name, step.node, step.title, step.judge, step.questions, needs)


# --- in the way ------------------------------------------------------------------------------------------------------


def others_steps(lane: Lane, needs: Sequence[str]) -> tuple[Step, ...]:
    """A step a node that stops what other lanes run there."""
    return tuple(_others_step(lane, node, needs) for node in lane.nodes)


def _others_step(lane: Lane, node: Node, needs: Sequence[str]) -> Step:
    def judge(answers: Answers) -> Verdict:
        others = [c for c in containers(answers) if c.lane not in ("", lane.name) and c.running and not c.job]
        if not others:
            return Verdict("ok", "no other lane runs here")
        beyond = sorted({n for c in others for n in _nodes_of(c)} - {n.name for n in lane.nodes})
        name = others[0].lane
        where = ", ".join(_nodes_of(others[0])) or node.name
        if beyond:
            return Verdict(
                "blocked",
                f"lane {name} is running on {where}, and lane {lane.name} has only some of these nodes",
                next_step=f"invoke stop --lane={name}",
            )
        stops = tuple(StopContainer(c.name, OTHERS_GRACE, c.image if c.scripted else "") for c in others)
        words = f"lane {name} is running on {where}"
        return Verdict("change", words, stops, destroys=words)

    return Step("service", "others", node.name, "other lanes: stop", judge, (CONTAINERS,), tuple(needs))


def _nodes_of(fact: ContainerFact) -> tuple[str, ...]:
    return tuple(name for name in fact.labels.get("sparkyard.nodes", "").split(",") if name)


def _outdated_step(lane: Lane, wanted: Container, needs: Sequence[str]) -> Step:
    """Stops a rank whose container is not what is wanted now: other settings, dead, or restarted by somebody.

    It asks for what is discovered too, whatever ``--only`` leaves of the preflight, and is blocked without it: nothing is
    stopped on any node for a rank that cannot be started.
    """

    def judge(answers: Answers) -> Verdict:
        fact = _find(answers, wanted)
        reason = unfit(fact, wanted) if fact else ""
        if fact is not None and not reason:
            return Verdict("ok", "nothing outdated runs here")
        if fact is not None and (foreign := _foreign(fact, lane.name, answers.node)):
            return foreign
        if unknown := _unknown(Command(wanted.words).filled(answers.discovered)):
            return not_discovered(unknown, answers.node)
        if fact is None:
            return Verdict("ok", "nothing outdated runs here")
        return _stop(fact, wanted, lane, reason, answers.node)

    def again(answers: Answers) -> Judge:
        seen = _find(answers, wanted)

        def without_it(later: Answers) -> Verdict:
            fact = _find(later, wanted)
            if seen is None or fact is None or fact.id != seen.id or unfit(fact, wanted):
                return judge(later)
            stop = StopContainer(wanted.name, lane.recipe.stop.grace)
            return Verdict("change", "another rank must be started, and a rank cannot rejoin alone", (stop,))

        return without_it

    title = f"{called(wanted)}: stop what is outdated"
    return Step(
        "service",
        f"{wanted.service}-outdated",
        wanted.node,
        title,
        judge,
        (CONTAINERS, SYSTEM),
        tuple(needs),
        together=lane.name,
        again=again,
    )


def _stop(fact: ContainerFact, wanted: Container, lane: Lane, reason: str, node: str) -> Verdict:
    words = f"{wanted.name} on {node} is running and would be replaced: it {reason}"
    return Verdict(
        "change",
        f"{wanted.name} {reason}",
        (StopContainer(wanted.name, lane.recipe.stop.grace),),
        destroys=words if fact.running else "",
    )


def called(wanted: Container) -> str:
    """``server rank 0``; of a service that is named ``rank`` only that."""
    return f"rank {wanted.rank}" if wanted.service == "rank" else f"{wanted.service} rank {wanted.rank}"


def _find(answers: Answers, wanted: Container) -> ContainerFact | None:
    return next((fact for fact in containers(answers) if fact.name == wanted.name), None)


def _foreign(fact: ContainerFact, lane: str, node: str) -> Verdict | None:
    """Blocked when a container has our name and is not ours; it is never touched."""
    if fact.lane == lane:
        return None
    of = f"has the label of lane {fact.lane}" if fact.lane else "has no label of sparkyard"
    return Verdict(
        "blocked",
        f"a container named {fact.name} {of}: it is not ours, and was left alone",
        next_step=f"on {node}: docker rename {fact.name} {fact.name}-other, or remove it",
    )


def unfit(fact: ContainerFact, wanted: Container) -> str:
    """Why a container cannot stay; empty when it runs as wanted."""
    if not fact.lane:
        return "is not ours"
    if fact.state != "running":
        return f"is {fact.state}" + (
            f" (exit code {fact.exit_code})" if fact.state in ("exited", "dead") else ""
        )
    if fact.restarts:
        return f"was restarted {fact.restarts} times, and a rank cannot rejoin alone"
    if fact.labels.get("sparkyard.hash") != wanted.hash:
        return "was started with other settings"
    return ""


# --- start -----------------------------------------------------------------------------------------------------------


def _start_step(lane: Lane, rendered: RenderedLane, wanted: Container, needs: Sequence[str]) -> Step:
    folders = tuple(folder_question(path) for path in wanted.folders)

    def judge(answers: Answers) -> Verdict:
        fact = _find(answers, wanted)
        if fact is not None and (foreign := _foreign(fact, lane.name, answers.node)):
            return foreign
        reason = unfit(fact, wanted) if fact else "is not there"
        if fact is not None and not reason:
            return Verdict("ok", f"{wanted.name} is running since {fact.since}", details=moved(fact, answers))
        command = Command(wanted.words, secrets=rendered.secrets, timeout=RUN_LIMIT).filled(
            answers.discovered
        )
        if rendered.unlocked:
            return Verdict(
                "blocked",
                f"the commit of checkpoint {', '.join(rendered.unlocked)} is not known yet",
                next_step=f"invoke lock --lane={lane.name}",
            )
        if unknown := _unknown(command):
            return not_discovered(unknown, answers.node)
        stop = (StopContainer(wanted.name, lane.recipe.stop.grace),) if fact else ()
        missing = [q.arguments[0] for q in folders if folder(answers, q).kind == "missing"]
        made = tuple(_make_folder(fill(path, answers.discovered)) for path in missing)
        start = _start(wanted, command, rendered.gates.get(wanted.name), lane)
        return Verdict("change", f"{wanted.name} {reason}", (*stop, *made, start))

    title = f"{called(wanted)}: start"
    questions = (CONTAINERS, *folders)
    return Step(
        "service", wanted.service, wanted.node, title, judge, questions, tuple(needs), together=lane.name
    )


def _unknown(command: Command) -> list[str]:
    """What should have been discovered on the node, and was not."""
    return sorted({name for word in command.words for name in MARK.findall(word)})


def _make_folder(path: str) -> Run:
    return Run(f"make {path}", Command.of("mkdir", "-p", "--", path, timeout=30))


def _start(wanted: Container, command: Command, gate: RenderedGate | None, lane: Lane) -> StartContainer:
    silence, guard = lane.recipe.ready.log_silence, lane.recipe.limits.guard
    if gate is None:
        return StartContainer(wanted.name, command, log_silence=silence, guard=guard)
    return StartContainer(wanted.name, command, gate.log, gate.port, gate.timeout, silence, guard)


def moved(fact: ContainerFact, answers: Answers) -> tuple[str, ...]:
    """Discovered values that changed since the container was started. Reported; never a reason to replace it."""
    try:
        then: dict[str, str] = json.loads(fact.labels.get("sparkyard.discovered", "{}"))
    except ValueError:
        return ("its label sparkyard.discovered cannot be read",)
    now = answers.discovered
    return tuple(
        f"{name} moved from {before} to {now.get(name, 'nothing')} since it was started: all ranks need a restart"
        for name, before in then.items()
        if now.get(name) != before
    )


def ready_step(lane: Lane, rendered: RenderedLane, needs: tuple[str, ...]) -> Step:
    """Wait on the head until the API answers a real request, all ranks watched."""
    ready = rendered.ready
    wait = WaitReady(
        url=ready.url,
        health=ready.health,
        body=ready.body,
        timeout=ready.timeout,
        log_silence=ready.log_silence,
        api_key=ready.api_key,
        containers=tuple((container.node, container.name) for container in rendered.containers),
        guard=lane.recipe.limits.guard,
    )
    verdict = Verdict("change", f"API at {ready.url}", (wait,))
    return Step(
        "service",
        "ready",
        lane.head.name,
        f"lane {lane.name}: wait until it answers",
        lambda _answers: verdict,
        needs=needs,
        recheck=False,
    )


# --- stop ------------------------------------------------------------------------------------------------------------


def _stop_step(lane: str, node: Node, grace: float, needs: Sequence[str]) -> Step:
    def judge(answers: Answers) -> Verdict:
        ours = [fact for fact in containers(answers) if fact.lane == lane]
        if not ours:
            return Verdict("ok", f"nothing of lane {lane} is here")
        names = ", ".join(f"{fact.name} ({fact.state})" for fact in ours)
        return Verdict("change", names, tuple(StopContainer(fact.name, grace) for fact in ours))

    return Step("service", "stop", node.name, f"lane {lane}: stop", judge, (CONTAINERS,), tuple(needs))
