"""pydantic's errors in sparkyard's words: one fault a place, with what was found, what is allowed and a suggestion."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from sparkyard.loading.marked import UNREADABLE, Faults, Marked, dotted
from sparkyard.loading.phrases import expected, quoted, unknown

Error = dict[str, Any]

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_PATTERNS = {
    r"^[\w.-]+/[\w.-]+$": "OWNER/NAME of a Hugging Face repository",
    r"^sha256:[0-9a-f]{64}$": "sha256: and 64 hex digits",
    r"^[a-z0-9][a-z0-9_-]*$": "lower-case letters, digits, _ and -",
    r"^[A-Za-z][A-Za-z0-9_-]*$": "letters, digits, _ and -, with a letter first",
}


def collect(errors: Sequence[Error], root: Marked, model: type[BaseModel], faults: Faults) -> None:
    """Turn the errors of one model into faults; the several errors of one union become one."""
    grouped: dict[tuple[str | int, ...], list[Error]] = {}
    for error in errors:
        grouped.setdefault(_place(error, root), []).append(error)
    for place, group in grouped.items():
        _fault(place, group, root, model, faults)


def _place(error: Error, root: Marked) -> tuple[str | int, ...]:
    """The error's location as far as the file has it; a missing key keeps its name, a union's label falls away."""
    location = tuple(error["loc"])
    for length in range(len(location), -1, -1):
        if root.find(location[:length]) is not None:
            kept = location[:length]
            return (
                (*kept, location[length]) if error["type"] == "missing" and length < len(location) else kept
            )
    return ()


def _fault(
    place: tuple[str | int, ...], group: list[Error], root: Marked, model: type[BaseModel], faults: Faults
) -> None:
    near = root.nearest(place)
    if near.value is UNREADABLE:
        return
    message = _message(place, group, near, model)
    faults.at(near, dotted(*place), message)


def _message(place: tuple[str | int, ...], group: list[Error], near: Marked, model: type[BaseModel]) -> str:
    error = group[0]
    kind = error["type"]
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        return unknown("key", str(place[-1]), known_keys(model, place[:-1]))
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"{words} {error['ctx'][key]:g} is expected, found {near.plain()}"
    if error["loc"][-1:] == ("[key]",):
        return f"a name of {_pattern(error)} is expected"
    return _wanted(group, near.plain())


def _wanted(group: list[Error], value: Any) -> str:
    """``X or Y is expected, found Z`` over all members of a union."""
    words: dict[str, None] = {}
    for error in group:
        if error["type"] == "literal_error":
            words.update(dict.fromkeys(literals(error)))
        elif error["type"] == "string_pattern_mismatch":
            words[_pattern(error)] = None
        else:
            words[_EXPECTED.get(error["type"], f"{error['msg']}; something else")] = None
    if "a number" in words:
        words.pop("a whole number", None)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    quote = f'; quote it: "{value}"' if "text" in words and number else ""
    return f"{expected(list(words), value)}{quote}"


def literals(error: Error) -> list[str]:
    """The words of a literal, which pydantic gives as ``'a', 'b' or 'c'``."""
    text = str(error["ctx"]["expected"]).replace(" or ", ", ")
    return [word.strip().strip("'") for word in text.split(",")]


def _pattern(error: Error) -> str:
    pattern = str(error["ctx"]["pattern"])
    return _PATTERNS.get(pattern, f"text like {quoted(pattern)}")


def known_keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The keys that a part of the model has, at a path of keys and indexes."""
    here: Any = model
    for step in path:
        here = _inside(here, step)
    parts = [part for part in _members(here) if _is_model(part)]
    return [name for part in parts for name in part.model_fields]


def _inside(annotation: Any, step: str | int) -> Any:
    for member in _members(annotation):
        if _is_model(member) and step in member.model_fields:
            return member.model_fields[step].annotation
        if get_origin(member) in (dict, list):
            return get_args(member)[-1]
    return None


def _members(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, without Annotated."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [member for part in get_args(annotation) for member in _members(part)]
    return [] if origin is Literal else [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
