"""``invoke switch`` and ``invoke revert``: from the lane that runs to another one, as a transaction.

What can be checked, downloaded, built and shipped beside the old lane is done while it still serves. Then it is stopped on every
node, the memory is proven back, the new lane is started and asked real requests. If that fails, the old lane is put back.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sparkyard.errors import SparkyardError, UsageError
from sparkyard.fetched import texts, texts_here
from sparkyard.line import Line, LineEnded
from sparkyard.looking import Found, containers, running_lanes
from sparkyard.manifest import place
from sparkyard.model import Lane
from sparkyard.plan import Plan, Step
from sparkyard.rendered import RenderedLane
from sparkyard.reporting.amounts import size
from sparkyard.resolve import known_lock
from sparkyard.scopes import lane_root
from sparkyard.steps import checkpoint, clone, image, life, patch, preflight
from sparkyard.steps import switch as changing
from sparkyard.steps import verify as checking
from sparkyard.verbs import jobs_of_build, look_at_logs, start_plan


@dataclass(frozen=True, slots=True)
class Side:
    """A lane of a switch, rendered."""

    lane: Lane
    rendered: RenderedLane

    @property
    def name(self) -> str:
        return self.lane.name


def switch(line: Line) -> None:
    """Go to the lane that is named; put the old one back if it does not verify."""
    if line.options.lane is None:
        raise UsageError("switch needs the lane to go to", next_step="invoke switch --lane=NAME")
    target = line.lane
    _refuse_limit(line, "switch")
    change(line, target, lanes_in_the_way(line, target), "switch")


def revert(line: Line, purge: bool) -> None:
    """Go back to the inventory's ``revert_to``; ``--lane`` may name the lane that is left."""
    target = _revert_target(line)
    _refuse_limit(line, "revert")
    if purge and not line.options.yes and not line.options.check and not sys.stdin.isatty():
        raise UsageError(
            "--purge removes an image and checkpoints, and asks first; nothing was changed",
            next_step="type the same line with --yes if that is wanted",
        )
    old = lanes_in_the_way(line, target)
    left = old or _left_before(line, target)
    change(line, target, old, "revert")
    for lane in left:
        side = Side(lane, line.rendered(lane))
        if purge:
            _purge(line, side, target)
        else:
            _tell_left(line, side)
    if left and not line.options.check:
        line.say(f"forward again: invoke switch --lane={left[0].name}")


def _revert_target(line: Line) -> Lane:
    name = line.inventory.revert_to
    if name is None:
        raise UsageError(
            "this inventory does not say what to go back to", next_step="set revert_to: kit in hosts.yml"
        )
    if line.options.lane == name:
        raise UsageError(
            f"lane {name} is what revert goes back to, not a lane to leave",
            next_step="invoke revert, without --lane",
        )
    return line.lane_named(name)


def _refuse_limit(line: Line, verb: str) -> None:
    if line.options.limit or line.nouns:
        raise UsageError(
            f"{verb} is all or nothing: --limit and --only cannot be used with it",
            next_step=f"invoke {verb}, without them",
        )


def lanes_in_the_way(line: Line, target: Lane) -> tuple[Lane, ...]:
    """The other lanes with containers on the target's nodes. Raises the error of a node of any of them that does not answer."""
    asked = [node.name for node in target.nodes]
    names = [name for name in running_lanes(_all_answers(line, asked)) if name != target.name]
    lanes = tuple(line.lane_named(name, sets=()) for name in names)
    _all_answers(line, sorted({node.name for lane in lanes for node in lane.nodes} - set(asked)))
    return lanes


def _all_answers(line: Line, nodes: Sequence[str]) -> Found:
    """The containers of every node. Raises the error of one that does not answer: a lane is left whole or not at all."""
    found = containers(line, nodes)
    for error in found.values():
        if isinstance(error, SparkyardError):
            error.details = (*error.details, "nothing was changed")
            raise error
    return found


def _left_before(line: Line, target: Lane) -> tuple[Lane, ...]:
    """The lane that was left by an earlier revert: as named, else the inventory's own."""
    name = line.options.lane or line.inventory.default_lane
    return (line.lane_named(name, sets=()),) if name and name != target.name else ()


# --- the transaction --------------------------------------------------------------------------------------------------


def change(line: Line, target: Lane, old: Sequence[Lane], verb: str) -> None:
    """The whole walk. Raises LineEnded when the target does not serve at its end."""
    line.rendered(target)  # what it forbids is refused before anything is asked
    line.locked(target)
    new = Side(target, line.rendered(target))
    left = [Side(lane, line.rendered(lane)) for lane in old]
    for side in left:
        line.around.secrets = (*line.around.secrets, *side.rendered.secrets)
    _prepare(line, new, left, verb)
    for side in left:
        _stop(line, side, new, verb)
    mark = len(line.events)
    try:
        start = start_plan(line, target, new.rendered, verb)
        if line.options.check:
            start = changing.as_if_stopped(start, [side.name for side in left])
        line.run(start, new.rendered.secrets, new.rendered)
        if new.rendered.checks:
            checks = checking.verify_steps(target, new.rendered)
            line.run(Plan("verify", target.name, checks), new.rendered.secrets)
    except SparkyardError as ended:
        if line.options.check:
            raise
        if not left or line.around.interrupted.is_set():
            _tell_ended(line, new, left)
            raise
        why = _failure(line, mark) if isinstance(ended, LineEnded) else ended.message
        _put_back(line, new, left, why, ended)
    look_at_logs(line, target, new.rendered)
    if verb == "revert":
        _put_texts_back(line, left)


def _prepare(line: Line, new: Side, left: Sequence[Side], verb: str) -> None:
    """Everything that is safe beside the old lane; when it fails, the old lane has not been touched."""
    lane, rendered = new.lane, new.rendered
    checks = preflight.preflight_steps(lane, rendered)
    steps: list[Step] = [
        *changing.beside(checks, lane, rendered, [side.rendered for side in left]),
        *clone.ssh_steps(lane, rendered),
        *checkpoint.download_steps(lane, line.manifests(lane), deep=line.options.deep),
        *image.build_steps(lane, rendered),
        *clone.clone_steps(lane, rendered),
        *patch.patch_steps(rendered, texts(line, lane)),
    ]
    steps += jobs_of_build(lane, rendered, steps)
    try:
        line.run(Plan(verb, lane.name, tuple(steps)), rendered.secrets)
    except LineEnded:
        if left:
            serving = ", ".join(side.name for side in left)
            line.say(f"lane {serving} was not touched: lane {lane.name} cannot take its place yet")
        raise


def _put_texts_back(line: Line, left: Sequence[Side]) -> None:
    """Edited texts of the lanes that were left become what was fetched again; the next switch edits them anew."""
    for side in left:
        steps = patch.pristine_steps(side.rendered, texts_here(line, side.lane))
        if steps:
            line.run(Plan("revert", side.name, steps), side.rendered.secrets)


def _stop(line: Line, side: Side, new: Side, verb: str) -> None:
    """Stop one old lane on every node, and see its memory come back."""
    stops = life.stop_steps(side.lane, side.rendered)
    memory = changing.memory_steps(new.lane, new.rendered.jobs, [step.id for step in stops])
    try:
        line.run(Plan(verb, side.name, (*stops, *memory)), side.rendered.secrets)
    except LineEnded:
        line.say(
            f"lane {side.name} is not gone from every node, and lane {new.name} was not started",
            next=f"invoke status --lane={side.name}; then type the same line again, or invoke restart --lane={side.name}",
        )
        raise


def _failure(line: Line, mark: int) -> str:
    """The first failure since then, in its own words."""
    bad = ("step-failed", "node-unreachable")
    return next((f"{e.node}: {e.message}" for e in line.events[mark:] if e.type in bad), "it did not verify")


def _put_back(line: Line, new: Side, left: Sequence[Side], failure: str, ended: SparkyardError) -> None:
    """Stop what is left of the new lane, start the old ones again, tell both stories. Raises LineEnded with status 1."""
    names = ", ".join(side.name for side in left)
    line.say(f"lane {new.name} does not serve: {failure}")
    line.say(f"putting lane {names} back")
    stops = life.stop_steps(new.lane, new.rendered)
    mark = len(line.events)
    try:
        line.run(Plan("stop", new.name, stops), new.rendered.secrets)
        for side in left:
            line.run(
                start_plan(line, side.lane, side.rendered, "start"), side.rendered.secrets, side.rendered
            )
    except SparkyardError as error:
        why = _failure(line, mark) if isinstance(error, LineEnded) else error.message
        line.say(
            f"lane {names} could not be put back either: {why}",
            details=[f"lane {new.name}: {failure}"],
            next=f"invoke start --lane={left[0].name}",
        )
        raise LineEnded(1) from ended
    line.say(
        f"lane {names} serves again; lane {new.name} was tried and is stopped",
        details=[f"lane {new.name}: {failure}"],
        next="its logs are in the record of this run",
    )
    raise LineEnded(1) from ended


def _tell_ended(line: Line, new: Side, left: Sequence[Side]) -> None:
    if left:
        names = ", ".join(side.name for side in left)
        line.say(
            f"interrupted after lane {names} was stopped; lane {new.name} does not serve yet",
            next=f"type the same line again, or invoke start --lane={left[0].name}",
        )


# --- what is left -----------------------------------------------------------------------------------------------------


def _tell_left(line: Line, side: Side) -> None:
    """What of a lane lies where; it makes the way forward short."""
    manifests = known_lock(side.lane).manifests
    lines = [
        f"{node.name}: {place(node, manifest).folder} ({size(manifest.size)})"
        for node in side.lane.nodes
        for manifest in manifests.values()
    ]
    lines += [f"{node.name}: image {side.rendered.image.reference}" for node in side.lane.nodes]
    lines += [f"{node.name}: {lane_root(side.lane, node)}" for node in side.lane.nodes]
    lines += [f"{output.node}: {output.path}" for job in side.rendered.jobs for output in job.makes]
    home = "<discovered: home>"
    line.say(f"left of lane {side.name}:", details=[text.replace(home, "~") for text in lines])


def _purge(line: Line, side: Side, target: Lane) -> None:
    """Remove what the old lane alone needs, after a yes."""
    needed = {(m.repo, m.commit) for m in known_lock(target).manifests.values()}
    steps = changing.purge_steps(side.lane, side.rendered, known_lock(side.lane).manifests, needed)
    line.run(Plan("purge", side.name, steps), side.rendered.secrets)
