"""Steps of a change of lanes beyond stop and start: ports beside the old lane, memory that comes back, what is purged. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sparkyard.actions import Run
from sparkyard.command import Command, fill
from sparkyard.facts import CONTAINERS, containers, folder, folder_question, image, image_question
from sparkyard.manifest import place
from sparkyard.model import Lane, Manifest, Node
from sparkyard.plan import Answers, Judge, Plan, Step, Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedJob
from sparkyard.scopes import lane_root
from sparkyard.steps import job_purge, memory
from sparkyard.steps import made as made_image
from sparkyard.steps.preflight import free_ports


def beside(
    steps: Sequence[Step], lane: Lane, rendered: RenderedLane, others: Sequence[RenderedLane]
) -> tuple[Step, ...]:
    """Preflight steps of a lane that will follow ``others``: a port that none of these holds must be free already."""
    return tuple(
        replace(step, judge=_ports_judge(step.node, lane, rendered, others)) if step.name == "ports" else step
        for step in steps
    )


def _ports_judge(node: str, lane: Lane, rendered: RenderedLane, others: Sequence[RenderedLane]) -> Judge:
    wanted = rendered.ports.get(node, {})
    theirs = {port for other in others for port in other.ports.get(node, {}).values()}
    strange = {name: port for name, port in wanted.items() if port not in theirs}
    kit = tuple(c.name for c in rendered.containers_of(node)) if rendered.scripts else ()

    def judge(answers: Answers) -> Verdict:
        mine = any(
            c.lane == lane.name or c.name in kit for c in containers(answers) if c.running and not c.job
        )
        if mine:
            return Verdict("ok", f"lane {lane.name} holds its ports")
        return free_ports(answers, strange, excuse=False)

    return judge


def memory_steps(lane: Lane, jobs: Sequence[RenderedJob], needs: Sequence[str]) -> tuple[Step, ...]:
    """A step a node that waits, once the old lane is gone, until the new one's need is available.

    Where a job of the new lane's start frees memory, that start waits itself, behind the job.
    """
    later = memory.freed_nodes(jobs)
    waiting = [node for node in lane.nodes if node.name not in later]
    return tuple(memory.back_step(node, lane.recipe.limits.memory, needs) for node in waiting)


def as_if_stopped(plan: Plan, lanes: Sequence[str]) -> Plan:
    """A start as ``--check`` looks at it: the lanes that the steps before would stop run still, and are not in its way."""
    gone = Verdict("ok", f"lane {', '.join(lanes)} is stopped before" if lanes else "no other lane runs here")
    steps = (
        replace(step, judge=lambda _answers: gone)
        if step.noun == "service" and step.name == "others"
        else step
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))


# --- purge ------------------------------------------------------------------------------------------------------------


def purge_steps(
    lane: Lane, rendered: RenderedLane, manifests: Mapping[str, Manifest], needed: Collection[tuple[str, str]]
) -> tuple[Step, ...]:
    """Steps that remove a stopped lane's image, own folders and checkpoints, but those (repo, commit) that are ``needed``."""
    going = {
        name: manifest
        for name, manifest in manifests.items()
        if (manifest.repo, manifest.commit) not in needed
    }
    return tuple(step for node in lane.nodes for step in _purge_node(lane, rendered, going, node))


def _purge_node(
    lane: Lane, rendered: RenderedLane, manifests: Mapping[str, Manifest], node: Node
) -> list[Step]:
    places = {name: place(node, manifest) for name, manifest in manifests.items()}
    made = job_purge.purge_steps(rendered.jobs, node.name)
    steps = [_purge_image(lane, rendered, node), *made]
    if rendered.image.made is not None and node == lane.head:
        steps.append(made_image.purge_step(rendered.image, node))
    steps += [
        _purge_folder(lane, node, "checkpoint", name, (here.folder, here.ledger, here.seal))
        for name, here in places.items()
    ]
    if node == lane.head:
        steps += [_purge_folder(lane, node, "file", name, (path,)) for name, path in _secrets(lane)]
    folder_ = _purge_folder(lane, node, "file", "lane", (lane_root(lane, node),))
    return [*steps, replace(folder_, needs=tuple(step.id for step in made))]


def _secrets(lane: Lane) -> list[tuple[str, str]]:
    """Settings of the lane that are made where nobody sets them, and the file of each on the head."""
    made = (name for name, spec in lane.recipe.settings.items() if spec.generated)
    return [(name, f"{lane.head.root}/secrets/{lane.name}-{name}") for name in made]


def _purge_image(lane: Lane, rendered: RenderedLane, node: Node) -> Step:
    reference = rendered.image.reference
    asked = image_question(reference)

    def judge(answers: Answers) -> Verdict:
        if blocked := _serves(lane, answers):
            return blocked
        if image(answers, asked) is None:
            return Verdict("ok", f"no image {reference}")
        words = f"image {reference} on {node.name}"
        remove = Run(f"remove {reference}", Command.of("docker", "image", "rm", reference, timeout=300))
        return Verdict("change", words, (remove,), destroys=words)

    return Step(
        "image", "purge", node.name, f"lane {lane.name}: remove its image", judge, (CONTAINERS, asked)
    )


def _purge_folder(lane: Lane, node: Node, noun: str, name: str, paths: tuple[str, ...]) -> Step:
    asked = folder_question(paths[0])

    def judge(answers: Answers) -> Verdict:
        if blocked := _serves(lane, answers):
            return blocked
        filled = tuple(fill(path, answers.discovered) for path in paths)
        if folder(answers, asked).kind == "missing":
            return Verdict("ok", f"no {filled[0]}")
        words = f"{filled[0]} on {node.name}"
        remove = Run(f"remove {filled[0]}", Command.of("rm", "-rf", "--", *filled, timeout=600))
        above = filled[0].rpartition("/")[0]
        tidy = Run(
            f"remove {above} if it is empty", Command.of("rmdir", "--ignore-fail-on-non-empty", "--", above)
        )
        return Verdict("change", words, (remove, tidy), destroys=words)

    title = f"lane {lane.name}: remove {'its own folder' if name == 'lane' else name}"
    return Step(noun, f"purge-{name}", node.name, title, judge, (CONTAINERS, asked))


def _serves(lane: Lane, answers: Answers) -> Verdict | None:
    if not any(fact.lane == lane.name for fact in containers(answers)):
        return None
    return Verdict(
        "blocked",
        f"lane {lane.name} still has containers here; nothing of it is removed",
        next_step=f"invoke stop --lane={lane.name}",
    )
