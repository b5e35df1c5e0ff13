"""What happens, as a stream: the engine emits events, a view shows them. The names are a closed list (design.md section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EventType = Literal[
    "run-start",
    "step-ok",
    "step-would-change",
    "step-start",
    "step-output",
    "step-changed",
    "step-failed",
    "step-skipped",
    "node-unreachable",
    "finding",
    "recap",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        type: from the closed list.
        node, step: where; empty when it concerns the whole run. ``step`` is a step id.
        message: one line for people, secrets masked.
        data: details; JSON values only. Known keys: ``actions`` (shown commands, list), ``diff`` (list of
            [path, before, after]), ``details`` (list of lines), ``next``, ``reason``, ``title``, ``seconds``,
            ``progress`` ({done, total, unit: "bytes"|"files", rate, label, at_most}) in step-output, ``line`` in step-output,
            ``asked``/``answered``/``result`` for verify checks, ``nodes`` (recap: node → counts) and ``status`` (exit).
            run-start: ``verb``, ``lane``, ``nodes`` (list), ``check``, ``stand_in``. recap also: ``seconds``, ``record``
            (the run's folder), ``check``, ``stand_in``. ``shipped``: bytes of an image that were ``moved`` and ``left_out``
            (step-changed, and the sum in recap). finding: ``table`` names the table whose row this is (tables.py).
    """

    type: EventType
    message: str = ""
    node: str = ""
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


Emit = Callable[[Event], None]
