"""``SPARKYARD_*`` and ``--set``: their names, their syntax, and the reading of their text by type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkyard.command import mask
from sparkyard.loading.kinds import left_open
from sparkyard.loading.marked import Faults
from sparkyard.loading.phrases import nearest, quoted, unknown_setting
from sparkyard.model import Origin, Value

PREFIX = "SPARKYARD_"
SET = "--set"
ENVIRONMENT = "environment"

RESERVED: Mapping[str, str] = {
    "SPARKYARD_LANE": "the lane, as --lane",
    "SPARKYARD_INVENTORY": "the inventory, as --inventory",
    "SPARKYARD_RECIPES": "folders of more recipes, as --recipes",
    "SPARKYARD_STATE": "the folder of run records and ledgers on this machine",
    "SPARKYARD_CACHE": "the folder of what can be made again on this machine",
    "SPARKYARD_LAB": "the folder of the lab's nodes",
    "SPARKYARD_LAB_CACHE": "the folder of the lab's base images",
    "SPARKYARD_LAB_NODE": "set by the lab inside its nodes",
    "SPARKYARD_LAB_STATE": "the lab's own records",
}
"""Every SPARKYARD_ name that is not a setting, in this one place."""

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the environment and the command line set: text by setting name, not yet read by type."""

    environ: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> tuple[str, Origin] | None:
        """The text of a setting and where it comes from; ``--set`` wins."""
        if name in self.sets:
            return self.sets[name], Origin(SET)
        variable = variable_of(name)
        if variable in self.environ:
            return self.environ[variable], Origin(variable)
        return None


def variable_of(setting: str) -> str:
    """The environment's name of a setting: ``SPARKYARD_CONTEXT``."""
    return PREFIX + setting.upper().replace("-", "_")


def read_overrides(environ: Mapping[str, str], sets: Sequence[str], faults: Faults) -> Overrides:
    """The overrides that are well formed; the others are collected."""
    ours = {
        name: value for name, value in environ.items() if name.startswith(PREFIX) and name not in RESERVED
    }
    return Overrides(ours, _read_sets(sets, faults))


def _read_sets(sets: Sequence[str], faults: Faults) -> dict[str, str]:
    given: dict[str, str] = {}
    for entry in sets:
        key, sign, value = entry.partition("=")
        if not sign or not key:
            faults.add(SET, 0, "", f"NAME=VALUE is expected, found {quoted(entry)}")
        elif key in given:
            faults.add(SET, 0, key, "given twice; keep one")
        else:
            given[key] = value
    return given


def refuse_unknown(
    overrides: Overrides, settings: Sequence[str], everywhere: Sequence[str], faults: Faults
) -> None:
    """Refuse names that nothing reads.

    ``settings`` may be given with ``--set``; ``everywhere`` are the settings of all lanes, which the environment may hold too.
    """
    for key in overrides.sets:
        if key.startswith("env."):
            if not _ENV_NAME.fullmatch(key[4:]):
                faults.add(SET, 0, key, f"{quoted(key[4:])} is no name of an environment variable")
        elif key in RESERVED_FLAGS:
            faults.add(SET, 0, key, f"not a setting; type --{key}={overrides.sets[key]}")
        elif key not in settings:
            faults.add(SET, 0, key, unknown_setting(key, settings))
    names = [*RESERVED, *(variable_of(name) for name in everywhere)]
    for name in overrides.environ:
        if name not in names:
            near = nearest(name.removeprefix(PREFIX), [known.removeprefix(PREFIX) for known in names])
            hint = f" (did you mean {PREFIX}{near}?)" if near else ""
            faults.add(ENVIRONMENT, 0, name, f"not a known variable of sparkyard{hint}")


RESERVED_FLAGS = ("lane", "inventory", "recipes")


def parse(text: str, kind: type) -> Any:
    """The text as a value of the setting's type. Raises ValueError with the words of the fault."""
    if kind is bool:
        return _parse_flag(text)
    if kind is int and not _INT.fullmatch(text):
        raise ValueError(f"a whole number is expected, found {quoted(text)}")
    if kind is float and not _FLOAT.fullmatch(text):
        raise ValueError(f"a number is expected, found {quoted(text)}")
    if fault := left_open(text):
        raise ValueError(fault)
    return kind(text)


def _parse_flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"true or false is expected, found {quoted(text)}")
    return text == "true"


def override(
    overrides: Overrides,
    name: str,
    kind: type,
    check: Callable[[Any], str],
    faults: Faults,
    *,
    secret: bool = False,
) -> Value | None:
    """The overriding value of a setting, read and checked; None when there is none or it is at fault."""
    given = overrides.of(name)
    if given is None:
        return None
    text, origin = given
    value, fault = _read(text, kind, check)
    if fault:
        file, key = (SET, name) if origin.place == SET else (ENVIRONMENT, origin.place)
        faults.add(file, 0, key, mask(fault, [text] if secret else []))
        return None
    return Value(value, origin)


def _read(text: str, kind: type, check: Callable[[Any], str]) -> tuple[Any, str]:
    try:
        value = parse(text, kind)
    except ValueError as error:
        return None, str(error)
    return value, check(value)
