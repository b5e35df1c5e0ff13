"""Every value with the place that set it, for ``invoke config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkyard.command import MASK
from sparkyard.model import Inventory, Lane, Value


@dataclass(frozen=True, slots=True)
class Row:
    """One value.

    Attributes:
        owner: the node, or ``lane A``.
        key: the dotted key.
        value: as people read it; masked when it is secret.
        origin: file and line, ``SPARKYARD_PORT``, ``--set`` or ``default``.
        data: the value for JSON; masked likewise.
    """

    owner: str
    key: str
    value: str
    origin: str
    data: Any


def explain(what: Lane | Inventory) -> tuple[Row, ...]:
    """The rows of a lane (its settings, its env, its nodes' variables) or of an inventory (every node's variables)."""
    if isinstance(what, Inventory):
        return tuple(row for node in what.nodes for row in _rows(node.name, what.values[node.name]))
    return tuple(_lane_rows(what))


def explain_json(what: Lane | Inventory) -> list[dict[str, Any]]:
    """The same rows as JSON objects with owner, key, value and origin."""
    rows = explain(what)
    return [{"owner": row.owner, "key": row.key, "value": row.data, "origin": row.origin} for row in rows]


def _lane_rows(lane: Lane) -> Iterator[Row]:
    owner = f"lane {lane.name}"
    yield Row(owner, "nodes", _shown(names := [node.name for node in lane.nodes]), _nodes_origin(lane), names)
    if lane.profile is not None:
        yield from _rows(owner, {"profile": lane.profile})
    yield from _rows(owner, lane.settings)
    yield from _rows(owner, {f"env.{name}": value for name, value in lane.env.items()})
    for node in lane.nodes:
        own = lane.inventory.values[node.name]
        yield from _rows(
            node.name, {key: value for key, value in own.items() if not key.startswith("lanes.")}
        )


def _nodes_origin(lane: Lane) -> str:
    key = f"lanes.{lane.name}.nodes"
    given = (of_host[key] for of_host in lane.inventory.values.values() if key in of_host)
    value = next(given, None)
    return str(value.origin) if value else "first by rank"


def _rows(owner: str, values: Mapping[str, Value]) -> Iterator[Row]:
    for key in sorted(values):
        value = values[key]
        data = MASK if value.secret and value.value else value.value
        yield Row(owner, key, _shown(data), str(value.origin), data)


def _shown(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
