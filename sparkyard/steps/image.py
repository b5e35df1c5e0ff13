"""Steps that bring a lane's engine image onto its nodes: built, made or pulled on the head, shipped to the workers. Pure."""

from __future__ import annotations

from sparkyard.actions import Run
from sparkyard.actions_image import BuildImage, ShipImage
from sparkyard.command import Command, fill
from sparkyard.facts import CONTAINERS, ImageFact, containers, image, image_question
from sparkyard.model import Lane, Node
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedImage, RenderedLane
from sparkyard.reporting.amounts import gigabytes
from sparkyard.steps import source
from sparkyard.steps.image_found import difference
from sparkyard.steps.made import made_steps
from sparkyard.steps.memory import guarded
from sparkyard.system import SYSTEM, system

BESIDE = 8 << 30
"""Bytes that stay free beside a serving lane when an image is built."""


def build_steps(lane: Lane, rendered: RenderedLane) -> tuple[Step, ...]:
    """The head's steps (git sources, then build or pull), then one a worker that ships the image there."""
    wanted = rendered.image
    ours = _ours(wanted, lane.head)
    shipped = (_shipped(wanted, node, lane.head, ours[-1].id) for node in lane.workers)
    return (*ours, *shipped)


def _ours(wanted: RenderedImage, head: Node) -> tuple[Step, ...]:
    if wanted.made is not None:
        return made_steps(wanted, head)
    return _built(wanted, head) if wanted.mark else (_pulled(wanted, head),)


def _built(wanted: RenderedImage, node: Node) -> tuple[Step, ...]:
    asked = image_question(wanted.reference)
    base = (image_question(wanted.local_base),) if wanted.local_base else ()

    def missing(answers: Answers) -> str:
        return difference(wanted, image(answers, asked), system(answers))

    def judge(answers: Answers) -> Verdict:
        reason = missing(answers)
        if not reason:
            return Verdict("ok", f"{wanted.reference} is built", data={"build": wanted.mark})
        blocked = _no_base(wanted, answers) or _no_room(wanted, answers)
        if blocked:
            return blocked
        build = _build(wanted, answers)
        return Verdict("change", f"{wanted.reference} {reason}", (*source.context(wanted, answers), build))

    first = source.source_steps(wanted, node, lambda answers: not missing(answers), (SYSTEM, asked))
    title, questions = f"image {wanted.name}: build", (SYSTEM, CONTAINERS, asked, *base)
    needs = tuple(step.id for step in first)
    return (*first, Step("image", wanted.name, node.name, title, judge, questions, needs))


def _build(wanted: RenderedImage, answers: Answers) -> BuildImage:
    """The build, the head's home filled in where the context lies below it."""
    command = Command(wanted.words).filled(answers.discovered)
    return BuildImage(wanted.reference, command, fill(wanted.context, answers.discovered), wanted.guard)


def _no_base(wanted: RenderedImage, answers: Answers) -> Verdict | None:
    """Blocked when a base that comes from no registry is not here: Docker would look for it on Docker Hub."""
    if not wanted.local_base or image(answers, image_question(wanted.local_base)) is not None:
        return None
    return Verdict(
        "blocked",
        f"the base image {wanted.local_base} is not on this machine, and its name has no registry in it",
        next_step="bring it here (the lab's: invoke lab.up), or write the registry too: docker.io/library/NAME:TAG",
    )


def _no_room(wanted: RenderedImage, answers: Answers) -> Verdict | None:
    """Blocked when a build beside a serving lane would leave it too little memory, or when it would be killed at once."""
    lanes = sorted({c.lane for c in containers(answers) if c.lane and c.running and not c.job})
    free = system(answers).memory_available
    if not lanes or free >= wanted.memory + BESIDE:
        return guarded(free, wanted.guard, "the build")
    seen = f"{gigabytes(free)} are free beside lane {', '.join(lanes)}"
    return Verdict(
        "blocked",
        f"the build needs the lane stopped: {seen}, expected {gigabytes(wanted.memory + BESIDE)}",
        next_step=f"invoke stop --lane={lanes[0]}",
    )


def _pulled(wanted: RenderedImage, node: Node) -> Step:
    asked = image_question(wanted.reference)
    digest = wanted.pulled.partition("@")[2]

    def judge(answers: Answers) -> Verdict:
        fact = image(answers, asked)
        reason = difference(wanted, fact, system(answers))
        if not reason and fact is not None and not any(d.endswith(f"@{digest}") for d in fact.digests):
            reason = f"is not the image of {digest}"
        if not reason:
            return Verdict("ok", f"{wanted.reference} is {wanted.pulled}", data={"digest": digest})
        pull = Run(f"pull {wanted.pulled}", Command(wanted.words), stream=True)
        tag = Run(f"name it {wanted.reference}", Command.of("docker", "tag", wanted.pulled, wanted.reference))
        return Verdict("change", f"{wanted.reference} {reason}", (pull, tag))

    return Step("image", wanted.name, node.name, f"image {wanted.name}: pull", judge, (SYSTEM, asked))


def _shipped(wanted: RenderedImage, node: Node, head: Node, built: str) -> Step:
    asked = image_question(wanted.reference)

    def judge(answers: Answers) -> Verdict:
        fact = image(answers, asked)
        reason = difference(wanted, fact, system(answers)) or other_layers(
            asked, fact, answers.others.get(head.name)
        )
        if reason:
            action = ShipImage(wanted.reference, node.link.address)
            return Verdict("change", f"{wanted.reference} {reason}", (action,))
        layers = list(fact.layers) if fact else []
        return Verdict("ok", f"{wanted.reference} is there", data={"layers": layers})

    title = f"image {wanted.name}: ship"
    also = {head.name: (asked,)}
    return Step("image", wanted.name, node.name, title, judge, (SYSTEM, asked), needs=(built,), also=also)


def other_layers(asked: Question, fact: ImageFact | None, there: Answers | None) -> str:
    """How a worker's image differs in content from the head's of the same name; empty when it does not, or when the head was not asked."""
    ours = image(there, asked) if there is not None else None
    if ours is None or fact is None or ours.layers == fact.layers:
        return ""
    same = len(set(ours.layers) & set(fact.layers))
    return f"has other content than the head's: {same} of its {len(fact.layers)} layers are the same"
