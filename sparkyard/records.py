"""Records of containers that a kit's own scripts started for us: they carry no label, so a small file on the node says whose they are.

One line of JSON a container, in ``~/.local/state/sparkyard/started/<container>`` on the node it runs on. It is written before the
scripts run (without an id: they are killed before they could tell one) and again, with the id, when they have ended well. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sparkyard.command import discovered
from sparkyard.facts import CONTAINERS, ContainerFact
from sparkyard.plan import Answers

FOLDER = ".local/state/sparkyard/started"
"""Below the node's home, so that every question about containers finds it."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was started: by which lane, with which wanted state, on which nodes, as which container.

    ``id`` is empty from the moment the scripts are begun until they have ended well. ``known`` are the discovered values it got.
    """

    container: str
    lane: str
    hash: str
    nodes: str
    image: str
    id: str = ""
    known: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps({"sparkyard": 1, **asdict(self)}) + "\n"

    def is_of(self, fact: ContainerFact) -> bool:
        """Whether a container is the recorded one: by its id, or, while that is not known, by name and image."""
        return fact.name == self.container and fact.id == self.id if self.id else self._looks_like(fact)

    def _looks_like(self, fact: ContainerFact) -> bool:
        return (fact.name, fact.image) == (self.container, self.image)

    def labels(self) -> dict[str, str]:
        """The labels that the container would carry if it were started by us."""
        return {
            "sparkyard.lane": self.lane,
            "sparkyard.hash": self.hash,
            "sparkyard.nodes": self.nodes,
            "sparkyard.discovered": json.dumps(dict(self.known)),
        }


def path(container: str) -> str:
    """Where the record of a container lies on its node."""
    return f"{discovered('home')}/{FOLDER}/{container}"


def parse(line: str) -> Record | None:
    """The record in a line of JSON; None for anything else, also for a damaged one."""
    try:
        told: dict[str, Any] = json.loads(line)
        if told.pop("sparkyard", None) != 1:
            return None
        return Record(**told)
    except (ValueError, TypeError, AttributeError):
        return None


def records(answers: Answers) -> dict[str, Record]:
    """The records of a node by container. Raises CouldNotCheck when it was not asked for its containers."""
    found = (parse(line) for line in answers.of(CONTAINERS).out.splitlines() if line.startswith("{"))
    return {record.container: record for record in found if record is not None}


def with_records(facts: Iterable[ContainerFact], known: Mapping[str, Record]) -> tuple[ContainerFact, ...]:
    """The containers; those that are on record have the labels that their scripts could not give them."""
    return tuple(_with_record(fact, known.get(fact.name)) for fact in facts)


def _with_record(fact: ContainerFact, record: Record | None) -> ContainerFact:
    if record is None or fact.lane or not record.is_of(fact):
        return fact
    return replace(fact, labels={**fact.labels, **record.labels()}, scripted=True)
