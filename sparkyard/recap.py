"""What a run came to, counted from its events with Ansible's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sparkyard.events import Event

WORDS: Mapping[str, str] = {
    "step-ok": "ok",
    "step-changed": "changed",
    "step-skipped": "skipped",
    "step-failed": "failed",
    "step-would-change": "would-change",
    "node-unreachable": "unreachable",
}
"""Ansible's word for each event that settles a step."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters of one node. As in Ansible, a changed step is also an ok one."""

    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    unreachable: int = 0
    would_change: int = 0

    def plus(self, word: str) -> Counts:
        """The counters with one more step that ended with ``word``."""
        name = word.replace("-", "_")
        more = replace(self, **{name: getattr(self, name) + 1})
        return replace(more, ok=more.ok + 1) if word == "changed" else more

    def data(self) -> dict[str, int]:
        """The counters under the names that recaps and ``--json`` use."""
        return {name.replace("_", "-"): number for name, number in asdict(self).items()}


def settled(events: Iterable[Event]) -> dict[tuple[str, ...], tuple[str, str]]:
    """The node and last word of each step, so that a step planned and then changed counts once.

    The same step in two verbs of one line is two steps; an event without a step stands for itself; a node is unreachable
    once a verb, whatever was asked of it.
    """
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    verb = 0
    for number, event in enumerate(events):
        verb += event.type == "run-start"
        word = WORDS.get(event.type)
        if word and event.node:
            place = word if word == "unreachable" else event.step or f"#{number}"
            found[str(verb), event.node, place] = (event.node, word)
    return found


def count(events: Iterable[Event], nodes: Iterable[str] = ()) -> dict[str, Counts]:
    """The counters of every node, in the order of ``nodes`` and then of appearance."""
    counts = {node: Counts() for node in nodes}
    for node, word in settled(events).values():
        counts[node] = counts.get(node, Counts()).plus(word)
    return counts


def counters(events: Sequence[Event]) -> dict[str, dict[str, int]]:
    """The counters of a line as its recap has them: every node that one of its verbs was for, and those that an event names."""
    nodes = [node for event in events if event.type == "run-start" for node in event.data["nodes"]]
    return {node: counts.data() for node, counts in count(events, dict.fromkeys(nodes)).items()}


def shipped(events: Iterable[Event]) -> dict[str, int]:
    """Bytes of images that were sent to all nodes, and that were left out because they were there; empty when none was sent."""
    found = [
        event.data["shipped"] for event in events if event.type == "step-changed" and "shipped" in event.data
    ]
    return {name: sum(part[name] for part in found) for name in ("moved", "left_out")} if found else {}
