"""TCP ports of a lane that two things on one node would listen on at the same time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from sparkyard.model import Lane
from sparkyard.rendered import RenderedLane


def twins(ports: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """(name, message) of every port of a node that is for two things."""
    for (first, one), (second, other) in combinations(sorted(ports.items()), 2):
        if one == other:
            yield second, f"{one} is the port of {first} too; give one of them another number"


def port_faults(lane: Lane, rendered: RenderedLane) -> Iterator[tuple[str, str, str]]:
    """(key, message, node) of gates that wait for one port on one node: of two services, or of a job beside a service that runs already."""
    stages = {name: number for number, names in enumerate(rendered.stages) for name in names}
    services = set(lane.recipe.services)
    for node in lane.nodes:
        for one, other in combinations(sorted(_gates(rendered, node.name), key=lambda g: stages[g[0]]), 2):
            (first, port), (second, same) = one, other
            if port == same and first in services:
                kind = "services" if second in services else "jobs"
                message = f"{port} is the gate's port of services.{first} too, which listens there already"
                yield f"{kind}.{second}.gate.port", message, node.name


def _gates(rendered: RenderedLane, node: str) -> Iterator[tuple[str, int]]:
    """(service or job of a start, port that its gate waits for) on a node."""
    named = [(c.service, c.name) for c in rendered.containers_of(node)]
    named += [
        (j.name, j.container_of(node).name) for j in rendered.jobs if j.at == "start" and node in j.nodes
    ]
    for name, container in named:
        gate = rendered.gates.get(container)
        if gate is not None and gate.port is not None:
            yield name, gate.port[1]
