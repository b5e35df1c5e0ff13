"""The verbs that change nodes: each builds its plan from pure steps and hands it to the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparkyard.bringing import still_to_set, tell_what_jobs_brought
from sparkyard.errors import ConfigError, SparkyardError, StepFailed, UsageError, VerifyFailed
from sparkyard.fetched import texts, texts_here
from sparkyard.line import Line, LineEnded
from sparkyard.looking import absent, containers, running_lanes
from sparkyard.model import Lane
from sparkyard.plan import Plan, Step, required
from sparkyard.rendered import RenderedLane
from sparkyard.selection import chosen_nodes
from sparkyard.steps import adopt as adopting
from sparkyard.steps import checkpoint, clone, files, image, job, life, logs, patch, preflight
from sparkyard.steps import verify as checking


def download(line: Line) -> None:
    """Checkpoints: to the head, then to the other nodes, every byte proven."""
    lane = line.lane
    _ahead(line, lane)
    steps = checkpoint.download_steps(lane, line.manifests(lane), deep=line.options.deep)
    line.run(Plan("download", lane.name, steps), lane.secrets())


def build(line: Line) -> None:
    """The engine image: on the head, then on the workers; edited texts on every node; the jobs that come after it."""
    lane = line.lane
    _ahead(line, lane)
    line.locked(lane)
    placed = texts(line, lane)
    rendered = line.rendered(lane)
    images = image.build_steps(lane, rendered)
    steps = (*images, *clone.clone_steps(lane, rendered), *patch.patch_steps(rendered, placed))
    if job.build_jobs(rendered):
        wanted = checkpoint.mounted_steps(lane, line.manifests(lane), job.build_jobs(rendered))
        steps = (*(required(step, f"download --lane={lane.name}") for step in wanted), *steps)
    line.run(Plan("build", lane.name, (*steps, *jobs_of_build(lane, rendered, steps))), rendered.secrets)
    tell_what_jobs_brought(line, lane, rendered)


def jobs_of_build(lane: Lane, rendered: RenderedLane, before: Sequence[Step]) -> tuple[Step, ...]:
    """The files that the jobs of a build read, then these jobs, after all that is there before."""
    jobs = job.build_jobs(rendered)
    read = {(file.node, file.name) for each in jobs for file in each.files}
    written = [step for step in files.file_steps(rendered) if (step.node, step.name) in read]
    needs = [step.id for step in (*before, *written)]
    return (*written, *job.job_steps(lane, rendered, jobs, needs))


def start(line: Line) -> None:
    """Preflight, files, ranks in order, and a real request."""
    lane = line.lane
    _ahead(line, lane)
    line.locked(lane)
    rendered = line.rendered(lane)
    tell_passing_secrets(line, lane)
    line.run(start_plan(line, lane, rendered, "start"), rendered.secrets, rendered)
    look_at_logs(line, lane, rendered)


def tell_passing_secrets(line: Line, lane: Lane) -> None:
    """A secret of this line alone is unknown to later lines: they cannot mask it in logs, and they see other settings."""
    for name, value in lane.settings.items():
        if value.secret and value.value and value.origin.place == "--set":
            line.say(
                f"{name} is known to this line alone: later lines cannot mask it in the engine's logs, and find other settings",
                next=f"write it into the inventory: lanes: {{{lane.name}: {{{name}: …}}}}",
            )


def start_plan(line: Line, lane: Lane, rendered: RenderedLane, verb: str) -> Plan:
    """Everything that a start checks first, then the ranks."""
    before = before_start(line, lane, rendered)
    ranks = life.start_steps(lane, rendered, [step.id for step in before])
    return Plan(verb, lane.name, (*before, *ranks), life.on_failure(lane, rendered))


def look_at_logs(line: Line, lane: Lane, rendered: RenderedLane) -> None:
    """Whether the ranks' logs say what the settings promise. A check that fails is told (status 3), and the lane goes on serving."""
    if not rendered.logs or line.options.check or (line.nouns and "verify" not in line.nouns):
        return
    if failure := absent(lane, containers(line, [lane.head.name])):  # --only=verify may have started nothing
        raise failure
    try:
        line.run(Plan("verify", lane.name, logs.log_steps(rendered)), rendered.secrets)
    except LineEnded as ended:
        if ended.status != VerifyFailed.status:
            raise
        line.say(f"lane {lane.name} serves, but not as its settings say: see what failed above")


def restart(line: Line) -> None:
    """Everything that can be checked first, then a stop and a start of every rank."""
    lane = running_lane(line)
    if lane is None:
        raise UsageError("nothing runs that could be restarted", next_step="invoke start")
    _ahead(line, lane)
    line.locked(lane)
    rendered = line.rendered(lane)
    before = before_start(line, lane, rendered)
    ranks = life.restart_steps(lane, rendered, [step.id for step in before])
    plan = Plan("restart", lane.name, (*before, *ranks), life.on_failure(lane, rendered))
    line.run(plan, rendered.secrets, rendered)
    look_at_logs(line, lane, rendered)


def stop(line: Line) -> None:
    """Stop every rank of what runs; nodes that do not answer are named, the others are stopped."""
    lane = running_lane(line, jobs=True)
    if lane is None:
        line.say("nothing of sparkyard runs on these nodes")
        return
    _whole(line, lane, "stop")
    steps = life.stop_steps(lane, line.rendered(lane))
    line.run(Plan("stop", lane.name, steps, partial=True), lane.secrets())


def verify(line: Line) -> None:
    """The recipe's checks, against the API on the head."""
    lane = running_lane(line) or line.lane
    rendered = line.rendered(lane)
    steps = (*checking.verify_steps(lane, rendered), *logs.log_steps(rendered))
    if not steps:
        raise UsageError(f"the recipe of lane {lane.name} has no checks")
    if not line.options.check and (failure := absent(lane, containers(line, [lane.head.name]))):
        raise failure
    line.run(Plan("verify", lane.name, steps), rendered.secrets)


def adopt(line: Line, folder: str, node: str) -> None:
    """Files that are there already. ``folder`` is absolute on the nodes, or begins with ``~/``."""
    if not folder.startswith(("/", "~/")):
        raise UsageError(
            f"--from takes an absolute folder, or one below ~/, not {folder!r}",
            next_step="invoke adopt --from=/path/on/the/node",
        )
    lane = line.lane
    plan = Plan("adopt", lane.name, adopting.adopt_steps(lane, line.manifests(lane), folder))
    before = len(line.events)
    line.run(plan.chosen(chosen_nodes(line.inventory, node, "--node"), ()) if node else plan, lane.secrets())
    if all(event.type in ("run-start", "step-skipped") for event in line.events[before:]):
        raise StepFailed(
            f"nothing was taken: on no node is there a folder {folder} with files that are wanted",
            next_step="look at the path; without one: invoke download",
        )


def before_start(line: Line, lane: Lane, rendered: RenderedLane) -> tuple[Step, ...]:
    """Preflight; what other verbs bring, as requirements; then the rendered files. Raises ConfigError for rules of a start."""
    _startable(rendered)
    from_download = checkpoint.download_steps(lane, line.manifests(lane))
    there = [required(s, f"download --lane={lane.name}") for s in from_download if s.noun == "checkpoint"]
    there += [required(s, f"build --lane={lane.name}") for s in image.build_steps(lane, rendered)]
    there += [
        required(s, f"build --lane={lane.name}") for s in patch.patch_steps(rendered, texts_here(line, lane))
    ]
    there += [required(s, f"build --lane={lane.name}") for s in job.sealed_steps(job.build_jobs(rendered))]
    checks = (*preflight.preflight_steps(lane, rendered), *clone.ssh_steps(lane, rendered))
    first = (*checks, *(replace(step, needs=()) for step in there))
    cloned = clone.clone_steps(lane, rendered, [step.id for step in first])
    before = tuple(step.id for step in (*first, *cloned))
    return (*first, *cloned, *(replace(step, needs=before) for step in files.file_steps(rendered)))


def _ahead(line: Line, lane: Lane) -> None:
    """What a verb of this line would refuse is refused before the first one asks for anything."""
    starts = [verb for verb in line.verbs if verb in ("start", "restart")]
    for verb in starts:
        _whole(line, lane, verb)
    if starts or "build" in line.verbs:
        rendered = line.rendered(lane)
        if starts:
            _startable(rendered)


def _startable(rendered: RenderedLane) -> None:
    """Refuse what the recipe's rules for a start forbid. Raises ConfigError with all of it."""
    if rendered.start_faults:
        raise ConfigError(rendered.start_faults, next_step=still_to_set(rendered))


def _whole(line: Line, lane: Lane, verb: str) -> None:
    """A lane's ranks work together: refuse a limit that would leave some of them out."""
    chosen = chosen_nodes(line.inventory, line.options.limit)
    left_out = [node.name for node in lane.nodes if node.name not in chosen]
    if left_out:
        raise UsageError(
            f"--limit leaves out {', '.join(left_out)}, and {verb} needs every rank of lane {lane.name}",
            next_step=f"invoke {verb} --lane={lane.name}, without --limit",
        )


def running_lane(line: Line, *, jobs: bool = False) -> Lane | None:
    """The lane that was named, else the one that has containers on the nodes (``jobs``: also of jobs alone); None when there is none.

    Raises UsageError when several are there, and the error of a node that did not answer when none is seen.
    """
    if line.options.lane:
        return line.lane
    found = containers(line, [node.name for node in line.inventory.nodes])
    lanes = running_lanes(found, jobs=jobs)
    if len(lanes) > 1:
        raise UsageError(f"several lanes are there: {', '.join(lanes)}", next_step="name one with --lane")
    if lanes:
        return line.lane_named(lanes[0])
    errors = [error for error in found.values() if isinstance(error, SparkyardError)]
    if errors:
        raise errors[0]
    return None
