"""TCP ports of a lane that two things on one node would listen on at the same time. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

from sparkyard.model import Lane, Origin
from sparkyard.rendered import RenderedLane

RECIPE = "recipe.yml"
SETTING = re.compile(r"\blane\.(\w+)")


def twins(ports: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Names of every two ports of a node that are one number."""
    for (first, one), (second, other) in combinations(sorted(ports.items()), 2):
        if one == other:
            yield first, second


def typed_at(lane: Lane, template: str) -> tuple[str, Origin] | None:
    """(key, place) of the first setting in a port's template that somebody set; None where all have the recipe's values."""
    named = {name: lane.settings[name].origin for name in SETTING.findall(template) if name in lane.settings}
    typed = {name: origin for name, origin in named.items() if Path(origin.place).name != RECIPE}
    return next(((f"lanes.{lane.name}.{name}", origin) for name, origin in typed.items()), None)


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
