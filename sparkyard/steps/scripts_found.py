"""Which containers are a kit's own, by exact name and image, and the words that run its scripts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparkyard.command import Command, fill
from sparkyard.facts import ContainerFact, containers
from sparkyard.model import Container, Lane, Node
from sparkyard.plan import Answers, Question, Verdict
from sparkyard.rendered import RenderedLane, RenderedScripts
from sparkyard.steps.service import unfit


def with_containers(lane: Lane, rendered: RenderedLane) -> tuple[Node, ...]:
    """The nodes on which the kit has containers."""
    return tuple(node for node in lane.nodes if rendered.containers_of(node.name))


def kit(rendered: RenderedLane) -> RenderedScripts:
    assert rendered.scripts is not None
    return rendered.scripts


def command(rendered: RenderedLane, words: Sequence[str], answers: Answers, limit: float) -> Command:
    """A script of the kit, run in the clone."""
    folder = fill(kit(rendered).folder, answers.discovered)
    inside = ("env", f"--chdir={folder}", *words)
    return Command(inside, secrets=rendered.secrets, timeout=limit).filled(answers.discovered)


def same_image(fact: ContainerFact, wanted: Container, rendered: RenderedLane) -> bool:
    """Whether a container runs the kit's image: under our name for it, or under any tag or digest of its repository."""
    pulled = rendered.image.pulled.partition("@")[0]
    repository = fact.image.partition("@")[0]
    if ":" in repository.rpartition("/")[2]:
        repository = repository.rpartition(":")[0]
    return fact.image == wanted.image or (bool(pulled) and repository == pulled)


def found(answers: Answers, wanted: Sequence[Container]) -> tuple[tuple[ContainerFact, Container], ...]:
    """The containers of a node that have the kit's exact names."""
    by_name = {container.name: container for container in wanted}
    return tuple((fact, by_name[fact.name]) for fact in containers(answers) if fact.name in by_name)


def stranger(fact: ContainerFact, wanted: Container, rendered: RenderedLane) -> Verdict | None:
    """Blocked when a container has the kit's name and another image; it is never touched."""
    if fact.lane == rendered.lane or same_image(fact, wanted, rendered):
        return None
    return Verdict(
        "blocked",
        f"a container named {fact.name} runs the image {fact.image}, expected {wanted.image}: it is not the kit's, and was left alone",
        next_step=f"docker rename {fact.name} {fact.name}-other, or remove it",
    )


def clone_question(rendered: RenderedLane) -> Question:
    """Asks the head what is checked out in the clone."""
    return Question("ask_clone", (kit(rendered).folder,))


def checked_out(answers: Answers, rendered: RenderedLane) -> str:
    """The commit in the clone; empty when there is no clone, or nothing checked out."""
    answer = answers.of(clone_question(rendered))
    return answer.out.split("\n", 1)[0].strip() if not answer.status else ""


def unfit_reason(rendered: RenderedLane, fact: ContainerFact) -> str:
    wanted = next(container for container in rendered.containers if container.name == fact.name)
    return "was started by hand" if not fact.lane else unfit(fact, wanted)


def together_name(lane: Lane, prefix: str) -> str:
    return f"{lane.name} {prefix}"
