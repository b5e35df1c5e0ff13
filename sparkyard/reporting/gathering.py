"""The same told of several nodes is told once, with the nodes in front. Pure; for people only: ``--json`` and the record keep every event.

Gathered are steps that ended without being begun: what was found by asking. They come in one burst from all nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from sparkyard.events import Event
from sparkyard.reporting.lines import explained
from sparkyard.tables import TABLES, Row, cell

GATHERED = ("step-ok", "step-skipped", "step-would-change", "step-failed", "node-unreachable")
RANK = re.compile(r"\brank (\d+)\b")
FOUND = "rank"
"""Data of a finding that tells of one rank (``status``): the same of several ranks is one line too."""
MANY = 2
"""More nodes than this are not listed one by one, when they are all that the verb is for and nothing is wrong with them."""


def gathers(event: Event) -> bool:
    """Whether the same may come from other nodes too; for steps, if they have not begun to act."""
    found = event.type == "finding" and FOUND in event.data and "table" not in event.data
    return bool(event.node) and (found or event.type in GATHERED)


def gathered(
    events: Sequence[Event], everyone: Sequence[str], below: Callable[[Event], Hashable]
) -> list[Event]:
    """The events, those that differ in their nodes (and their reasons) only as one, in the order of their first.

    ``everyone`` are the nodes of the verb; ``below`` is what is shown under the line of an event: it must be the same.
    """
    groups: dict[Hashable, list[Event]] = {}
    seen: dict[Hashable, int] = {}
    for event in events:
        words = _title(event) or event.message
        alike = (event.type, RANK.sub("rank", words), below(event))
        times = seen[alike, event.node] = seen.get((alike, event.node), 0) + 1
        groups.setdefault((alike, times), []).append(event)
    return [_one(group, everyone) for group in groups.values()]


def rows_gathered(table: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a table, those that differ in their node alone as one, in the order of their first."""
    columns = [key for key in TABLES[table] if key != "node"]
    groups: dict[Hashable, list[Row]] = {}
    for number, row in enumerate(rows):
        alike = tuple(cell(row.get(key)) for key in columns)
        groups.setdefault(alike if row.get("node") else number, []).append(row)
    return [
        {**group[0], "node": [row["node"] for row in group]} if len(group) > 1 else group[0]
        for group in groups.values()
    ]


def _title(event: Event) -> str:
    return str(event.data.get("title") or "")


def _one(group: list[Event], everyone: Sequence[str]) -> Event:
    """One event for a group; the first one itself where it is alone."""
    if len(group) == 1:
        return group[0]
    group = sorted(group, key=lambda event: _place(event.node, everyone))
    first, nodes = group[0], [event.node for event in group]
    good = first.type in ("step-ok", "step-skipped")
    whole = good and len(nodes) > MANY and set(nodes) == set(everyone)
    place = f"all {len(nodes)} nodes" if whole else ", ".join(nodes)
    if not _title(first):
        return replace(first, message=_ranks([event.message for event in group]), node=place)
    data = {**first.data, "title": _ranks([_title(event) for event in group]), "reason": ""}
    return replace(first, message=_reasons(group), node=place, data=data)


def _place(node: str, everyone: Sequence[str]) -> int:
    return list(everyone).index(node) if node in everyone else len(everyone)


def _ranks(titles: Sequence[str]) -> str:
    """``follower ranks 1, 2, 3: start``."""
    if len(set(titles)) == 1:
        return titles[0]
    numbers = ", ".join(match[1] for match in map(RANK.search, titles) if match)
    return RANK.sub(f"ranks {numbers}", titles[0], count=1)


def _reasons(group: Sequence[Event]) -> str:
    """Why, once; where the nodes have reasons of their own, each behind the names of its nodes."""
    whys: dict[str, list[str]] = {}
    for event in group:
        whys.setdefault(explained(event), []).append(event.node)
    if len(whys) == 1:
        return next(iter(whys))
    return "; ".join(f"{', '.join(nodes)}: {why}" if why else ", ".join(nodes) for why, nodes in whys.items())
