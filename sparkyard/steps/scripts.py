"""Steps that start a lane by a kit's own scripts, from a clone on the head. Pure.

Its containers carry no label of ours: they are known by exact name and image. Those that we started are on record (records.py);
one that a person started by hand is stopped only after a yes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkyard.actions import Action, StartScripts, StopContainer, WriteFile
from sparkyard.command import fill
from sparkyard.docker_words import MARK
from sparkyard.facts import CONTAINERS
from sparkyard.model import Lane, Node
from sparkyard.plan import Answers, Judge, Step, Verdict
from sparkyard.records import Record, path, records
from sparkyard.render_scripts import used
from sparkyard.rendered import RenderedLane
from sparkyard.steps.files import not_discovered
from sparkyard.steps.scripts_found import command, found, kit, together_name, unfit_reason, with_containers
from sparkyard.steps.scripts_stop import stop_steps, stop_sweeps
from sparkyard.steps.service import moved, others_steps, ready_step
from sparkyard.system import SYSTEM

START_MARGIN = 300.0
"""Seconds that the kit's start script may take beyond the lane's own ready timeout: it warms up after that."""


def start_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """Stop what is in the way, put on record what is begun, run the kit's start script, wait for an answer, record the ids."""
    clear = others_steps(lane, needs)
    first = (*needs, *(step.id for step in clear))
    gone = stop_sweeps(lane, rendered, first, outdated=True)
    before = (*first, *(step.id for step in gone))
    begun = tuple(
        _record_step(lane, rendered, node, before, whole=False) for node in with_containers(lane, rendered)
    )
    start = _start_step(lane, rendered, (*before, *(step.id for step in begun)))
    ready = ready_step(lane, rendered, (start.id,))
    ended = tuple(
        _record_step(lane, rendered, node, (ready.id,), whole=True)
        for node in with_containers(lane, rendered)
    )
    return (*clear, *gone, *begun, start, ready, *ended)


def restart_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """A stop, then a start."""
    stops = stop_steps(lane, rendered, needs)
    return (*stops, *start_steps(lane, rendered, (*needs, *(step.id for step in stops))))


def on_failure(lane: Lane, rendered: RenderedLane) -> Mapping[str, tuple[Action, ...]]:
    """What undoes a failed start, by node: the kit leaves its containers running when it gives up."""
    return {
        node.name: tuple(
            StopContainer(c.name, lane.recipe.stop.grace, c.image) for c in rendered.containers_of(node.name)
        )
        for node in lane.nodes
    }


def _record_step(
    lane: Lane, rendered: RenderedLane, node: Node, needs: Sequence[str], *, whole: bool
) -> Step:
    """Before the scripts run: that they are begun. After: which containers they made."""
    wanted = rendered.containers_of(node.name)
    names = used([file.content for file in rendered.files_of(node.name)])

    def judge(answers: Answers) -> Verdict:
        facts = {fact.name: fact for fact, _ in found(answers, wanted)}
        known = records(answers)
        writes: list[WriteFile] = []
        for container in wanted:
            fact = facts.get(container.name)
            if fact is not None and fact.lane == lane.name and (not whole or known[container.name].id):
                continue
            if whole and fact is None:
                return Verdict(
                    "blocked", f"{container.name} is not there", next_step=f"invoke logs --node={node.name}"
                )
            got = {name: fill(f"<discovered: {name}>", answers.discovered) for name in names}
            id_ = fact.id if fact is not None and whole else ""
            record = Record(
                container.name, lane.name, container.hash, _names(lane), container.image, id_, got
            )
            if known.get(container.name) != record:
                writes.append(
                    WriteFile(fill(path(container.name), answers.discovered), record.text().encode(), 0o600)
                )
        if not writes:
            return Verdict("ok", "on record")
        words = "which containers were started" if whole else "what is about to be started"
        return Verdict("change", words, tuple(writes))

    name = "record" if whole else "begin"
    title = f"lane {lane.name}: put on record"
    return Step("service", name, node.name, title, judge, (SYSTEM, CONTAINERS), tuple(needs))


def _names(lane: Lane) -> str:
    return ",".join(node.name for node in lane.nodes)


def _start_step(lane: Lane, rendered: RenderedLane, needs: Sequence[str]) -> Step:
    """The kit's own start, on the head. It is right when every container of the head runs as wanted."""
    wanted = rendered.containers_of(lane.head.name)
    pairs = tuple((container.node, container.name) for container in rendered.containers)

    def judge(answers: Answers, again: bool = False) -> Verdict:
        here = found(answers, wanted)
        reasons = [unfit_reason(rendered, fact) for fact, _ in here]
        if len(here) == len(wanted) and not any(reasons) and not again:
            first = here[0][0]
            return Verdict("ok", f"the kit is running since {first.since}", details=moved(first, answers))
        if rendered.unlocked:
            names = ", ".join(rendered.unlocked)
            return Verdict(
                "blocked", f"{names} is not locked yet", next_step=f"invoke lock --lane={lane.name}"
            )
        start = command(rendered, kit(rendered).start, answers, lane.recipe.ready.timeout + START_MARGIN)
        unknown = sorted({name for word in start.words for name in MARK.findall(word)})
        if unknown:
            return not_discovered(unknown, answers.node)
        action = StartScripts(start, pairs, lane.recipe.ready.log_silence)
        return Verdict("change", "by the kit's own script", (action,))

    def others_go(answers: Answers) -> Judge:
        """Another rank must be started: start all, until the head's container is another one than now."""
        before = {fact.id for fact, _ in found(answers, wanted)}

        def judge_again(later: Answers) -> Verdict:
            now = {fact.id for fact, _ in found(later, wanted)}
            return judge(later, again=bool(now & before))

        return judge_again

    return Step(
        "service",
        "start",
        lane.head.name,
        f"lane {lane.name}: the kit's own start",
        judge,
        (SYSTEM, CONTAINERS),
        tuple(needs),
        together=together_name(lane, "outdated"),
        again=others_go,
    )
