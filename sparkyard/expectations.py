"""Judges a reply against the expectations of a verify check. Pure.

A path is dotted, with list indexes and ``*`` for any element: ``choices.0.message.content``, ``data.*.id``. With ``*`` an expectation
holds when at least one of the values found fulfils it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparkyard.recipe import ExpectSpec

SHOWN = 160
"""Characters of a value shown in a message."""


def values_at(document: Any, path: str) -> list[Any]:
    """The values at a path: one, with ``*`` any number, none when it leads to nothing."""
    return list(_walk(document, path.split(".") if path else []))


def _walk(value: Any, parts: list[str]) -> Iterator[Any]:
    if not parts:
        yield value
        return
    head, rest = parts[0], parts[1:]
    if head == "*":
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for child in children:
            yield from _walk(child, rest)
    elif isinstance(value, dict) and head in value:
        yield from _walk(value[head], rest)
    elif isinstance(value, list) and re.fullmatch(r"-?\d+", head) and -len(value) <= int(head) < len(value):
        yield from _walk(value[int(head)], rest)


def judge(document: Any, expect: ExpectSpec) -> str:
    """Empty when the expectation holds; else one line: what was seen and what was expected."""
    place = expect.path or "the reply"
    found = values_at(document, expect.path)
    if not found:
        return "" if expect.present is False else f"{place} is missing; expected {wanted(expect)}"
    if expect.present is False:
        return f"{place} is {shortened(found[0])}; expected it to be absent"
    faults = [_fault(value, expect) for value in found]
    return "" if "" in faults else f"{place} {faults[0]}{_of(len(faults))}"


def judge_all(document: Any, expectations: list[ExpectSpec]) -> tuple[str, ...]:
    """The faults of a reply, in the order of the expectations; empty when all hold."""
    return tuple(fault for expect in expectations if (fault := judge(document, expect)))


def distinct_faults(documents: Sequence[Any], expectations: list[ExpectSpec]) -> tuple[str, ...]:
    """The faults of all replies together: too many or too few different values at a path."""
    return tuple(fault for expect in expectations if (fault := _distinct(documents, expect)))


def _distinct(documents: Sequence[Any], expect: ExpectSpec) -> str:
    least, most = expect.distinct_at_least, expect.distinct_at_most
    if least is None and most is None:
        return ""
    found = [value for document in documents for value in values_at(document, expect.path)]
    different = list(dict.fromkeys(json.dumps(value, sort_keys=True, default=str) for value in found))
    count = len(different)
    if (most is None or count <= most) and (least is None or count >= least):
        return ""
    wanted_count = " and ".join(
        f"at {word} {number}" for word, number in (("least", least), ("most", most)) if number is not None
    )
    shown = "; ".join(shortened(json.loads(text), 60) for text in different[:3])
    return (
        f"{expect.path or 'the reply'} has {count} different value{'' if count == 1 else 's'} in "
        f"{len(documents)} replies; expected {wanted_count}: {shown}"
    )


def _of(count: int) -> str:
    return f" (the first of {count} values; none fits)" if count > 1 else ""


def _fault(value: Any, expect: ExpectSpec) -> str:
    if expect.json_text:
        try:
            value = json.loads(value)
        except (TypeError, ValueError, RecursionError):
            return f"is {shortened(value)}; expected JSON text"
    for test in _TESTS:
        if fault := test(value, expect):
            return fault
    return ""


def _equals(value: Any, expect: ExpectSpec) -> str:
    if expect.equals is None or (
        value == expect.equals and isinstance(value, bool) == isinstance(expect.equals, bool)
    ):
        return ""
    return f"is {shortened(value)}; expected {shortened(expect.equals)}{_case(value, expect.equals)}"


def _contains(value: Any, expect: ExpectSpec) -> str:
    if expect.contains is None:
        return ""
    if isinstance(value, str | list | dict) and expect.contains in value:
        return ""
    return f"is {shortened(value)}; expected it to contain {shortened(expect.contains)}{_case(value, expect.contains)}"


def _matches(value: Any, expect: ExpectSpec) -> str:
    if expect.matches is None or (isinstance(value, str) and re.search(expect.matches, value)):
        return ""
    return f"is {shortened(value)}; expected text that matches /{expect.matches}/"


def _at_least(value: Any, expect: ExpectSpec) -> str:
    if expect.at_least is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= expect.at_least:
        return ""
    return f"is {shortened(value)}; expected a number of at least {expect.at_least:g}"


def _valid(value: Any, expect: ExpectSpec) -> str:
    if expect.valid_for is None:
        return ""
    import jsonschema  # noqa: PLC0415 - larger than all the rest of verify

    kind: Any = jsonschema.validators.validator_for(expect.valid_for, default=jsonschema.Draft202012Validator)
    error = jsonschema.exceptions.best_match(kind(expect.valid_for).iter_errors(value))
    if error is None:
        return ""
    place = ".".join(str(part) for part in error.absolute_path)
    return f"is {shortened(value)}; its schema refuses {place or 'it'}: {shortened(error.message)}"


_TESTS: tuple[Callable[[Any, ExpectSpec], str], ...] = (_equals, _contains, _matches, _at_least, _valid)


def _case(value: Any, wanted_value: Any) -> str:
    if isinstance(value, str) and isinstance(wanted_value, str) and value.lower() == wanted_value.lower():
        return " (only the case differs)"
    return ""


def wanted(expect: ExpectSpec) -> str:
    """What an expectation asks for, in words."""
    words: dict[str, Callable[[Any], str]] = {
        "equals": shortened,
        "contains": lambda v: f"something that contains {shortened(v)}",
        "matches": lambda v: f"text that matches /{v}/",
        "at_least": lambda v: f"a number of at least {v:g}",
        "valid_for": lambda _: "JSON that its schema accepts",
    }
    asked = [say(getattr(expect, name)) for name, say in words.items() if getattr(expect, name) is not None]
    return " and ".join(asked) or "it to be there"


def shortened(value: Any, limit: int = SHOWN) -> str:
    """The value as JSON on one line, cut in the middle when it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} … {text[-limit // 4 :]}"
