"""The value of a lane's setting: its type, its bounds, and where it was set."""

from __future__ import annotations

from typing import Any

from sparkyard.loading.patterns import fits
from sparkyard.loading.phrases import describe, expected
from sparkyard.recipe import Setting

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def kind_of(setting: Setting) -> type:
    """The type of a setting, from its default; without one, from its choices and bounds."""
    if setting.default is not None:
        return type(setting.default)
    if setting.choices:
        return type(setting.choices[0])
    return str if setting.minimum is None and setting.maximum is None else float


def check_value(setting: Setting, value: Any) -> str:
    """What is wrong with a value of the setting; nothing when it fits. A secret that does not fit its pattern is not quoted, in no part."""
    if value is None:
        return "" if setting.default is None else f"{_WORDS[kind_of(setting)]} is expected, found nothing"
    if fault := _type_fault(kind_of(setting), value):
        return fault
    if setting.choices and value not in setting.choices:
        return expected(setting.choices, value)
    return _bounds_fault(setting, value) or _pattern_fault(setting, value)


def _pattern_fault(setting: Setting, value: Any) -> str:
    if not setting.pattern or not isinstance(value, str) or fits(setting.pattern, value):
        return ""
    found = f"another text of {len(value)} characters" if setting.secret else describe(value)
    return f"{setting.looks_like} is expected, found {found}"


def _type_fault(kind: type, value: Any) -> str:
    of_kind = isinstance(value, int | float) if kind is float else isinstance(value, kind)
    if of_kind and isinstance(value, bool) is (kind is bool):
        return ""
    found = f"{_WORDS[kind]} is expected, found {describe(value)}"
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return f'{found}; quote it: "{value}"'
    quotes = isinstance(value, str) and kind in (int, float) and value.replace(".", "", 1).isdecimal()
    return f"{found}; take the quotes away" if quotes else found


def _bounds_fault(setting: Setting, value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    if setting.minimum is not None and value < setting.minimum:
        return f"at least {setting.minimum:.15g} is expected, found {value}"
    if setting.maximum is not None and value > setting.maximum:
        return f"at most {setting.maximum:.15g} is expected, found {value}"
    return ""
