"""A text for each of the exact formats that a request may demand: one of several choices, a JSON schema, a regular expression."""

from __future__ import annotations

import json
import re._parser as parser  # type: ignore[import-not-found]  # the standard library's own, under no public name
from collections.abc import Mapping
from typing import Any

from scripted import example

LETTERS = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}


def demanded(ask: Mapping[str, Any]) -> str | None:
    """The text that the request's format allows; None when it demands none. Raises ValueError for a pattern that cannot be met."""
    given = {**(ask.get("structured_outputs") or {})}
    given |= {name: ask[f"guided_{name}"] for name in ("choice", "json", "regex") if f"guided_{name}" in ask}
    if given.get("choice"):
        return str(given["choice"][0])
    if "json" in given:
        schema = given["json"]
        return json.dumps(example(json.loads(schema) if isinstance(schema, str) else schema))
    return matching(given["regex"]) if "regex" in given else None


def matching(pattern: str) -> str:
    """A short text that a regular expression matches whole. Raises ValueError."""
    try:
        return _sequence(parser.parse(pattern))
    except parser.error as fault:
        raise ValueError(f"not a regular expression: {fault}") from fault


def _sequence(parts: Any) -> str:
    return "".join(_part(str(kind), value) for kind, value in parts)


def _part(kind: str, value: Any) -> str:
    made = {
        "LITERAL": lambda: chr(value),
        "ANY": lambda: "a",
        "NOT_LITERAL": lambda: "a" if value != ord("a") else "b",
        "IN": lambda: _one_of(value),
        "MAX_REPEAT": lambda: _sequence(value[2]) * int(value[0]),
        "MIN_REPEAT": lambda: _sequence(value[2]) * int(value[0]),
        "SUBPATTERN": lambda: _sequence(value[3]),
        "BRANCH": lambda: _sequence(value[1][0]),
        "AT": lambda: "",
    }
    if kind not in made:
        raise ValueError(f"{kind} of regular expressions is not understood here")
    return made[kind]()


def _one_of(members: Any) -> str:
    """The first of a set of characters; of a negated one, any that is not in it."""
    kind, value = members[0]
    if str(kind) == "NEGATE":
        taken = {chr(inner) for name, inner in members[1:] if str(name) == "LITERAL"}
        return next(letter for letter in "a1 -_." if letter not in taken)
    if str(kind) == "RANGE":
        return chr(value[0])
    return chr(value) if str(kind) == "LITERAL" else LETTERS.get(str(value), "-")
