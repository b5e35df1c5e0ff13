"""What one plan has come to so far, and what its actions mean for it. Data and pure functions, used by the engine alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sparkyard.actions import (
    Action,
    Prove,
    Request,
    SaveLogs,
    StartContainer,
    StartScripts,
    WaitMemory,
    WaitReady,
)
from sparkyard.actions_log import CheckLog
from sparkyard.plan import Answers, Plan, Step

READS = (Request, WaitReady, CheckLog)
"""Actions after which every answer of a node is still true. A proof is none: it writes the ledger and may throw a file away."""

REQUESTS = (Request, WaitReady, CheckLog)
"""Actions that are not even made under ``--check``."""


def changes_nothing(action: Action) -> bool:
    """Whether an action only adds to what we know of a node: requests, and proofs of files that lie in their places."""
    if isinstance(action, Prove):
        return not (action.arrived or action.offered)
    return isinstance(action, (*READS, SaveLogs, WaitMemory))


def begun(node: str, action: Action) -> set[tuple[str, str]]:
    """The containers (node, name) that an action on a node may leave behind."""
    if isinstance(action, StartScripts):
        return set(action.containers)
    return {(node, action.container)} if isinstance(action, StartContainer) else set()


@dataclass
class Walk:
    """What one plan has come to so far."""

    plan: Plan
    answers: dict[str, Answers] = field(default_factory=dict)
    stamps: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    started: set[tuple[str, str]] = field(default_factory=set)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def seen(self, step: Step) -> Answers:
        """The answers of the step's node, and of the others that it asks, as far as they are part of the plan."""
        own = self.answers[step.node]
        others = {node: self.answers[node] for node in step.also if node in self.answers}
        return replace(own, others=others) if others else own


def settled(walk: Walk, need: str) -> bool:
    known = {step.id for step in walk.plan.steps}
    return need not in known or walk.outcomes.get(need) in ("ok", "changed", "skipped")
