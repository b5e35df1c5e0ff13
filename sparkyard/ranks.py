"""What the ranks of a lane were started with, for the run record: asked of Docker after a start."""

from __future__ import annotations

import json

from sparkyard import facts
from sparkyard.asking import ask_all
from sparkyard.errors import SparkyardError
from sparkyard.facts import ContainerFact
from sparkyard.model import Container
from sparkyard.plan import Answers
from sparkyard.rendered import RenderedLane
from sparkyard.state import Rank
from sparkyard.step_world import Surroundings


def ranks_of(around: Surroundings, rendered: RenderedLane) -> tuple[Rank, ...]:
    """Argv, image id, hash and discovered values of every rank that is there; ranks that cannot be asked are left out."""
    nodes = dict.fromkeys(container.node for container in rendered.containers)
    answers = ask_all(around, dict.fromkeys(nodes, (facts.CONTAINERS,)))
    found = [(wanted, _fact(answers[wanted.node], wanted)) for wanted in rendered.containers]
    return tuple(_rank(rendered, wanted, fact) for wanted, fact in found if fact is not None)


def _fact(answer: Answers | SparkyardError, wanted: Container) -> ContainerFact | None:
    if isinstance(answer, SparkyardError):
        return None
    try:
        return next(
            (fact for fact in facts.containers(answer) if fact.name == wanted.name and fact.lane), None
        )
    except SparkyardError:
        return None


def _rank(rendered: RenderedLane, wanted: Container, fact: ContainerFact) -> Rank:
    files = {file.path: file.content for file in rendered.files_of(wanted.node) if not file.secret}
    return Rank(
        node=wanted.node,
        rank=wanted.rank,
        argv=wanted.words,
        environment=files,
        image=fact.image_id,
        hash=fact.labels.get("sparkyard.hash", ""),
        discovered=_discovered(fact),
    )


def _discovered(fact: ContainerFact) -> dict[str, str]:
    try:
        found = json.loads(fact.labels.get("sparkyard.discovered", "{}"))
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in found.items()}
