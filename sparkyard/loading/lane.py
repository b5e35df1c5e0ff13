"""A recipe resolved against an inventory: which nodes, and every setting with the place that set it.

Least to most: the recipe's default, the chosen profile, ``lanes.X.<setting>`` of the inventory, ``SPARKYARD_<SETTING>``, ``--set``. A setting belongs
to the lane, so all its nodes must agree on it; ``env`` merges by key in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparkyard.command import MASK, generated, mask
from sparkyard.loading.kinds import left_open
from sparkyard.loading.marked import UNREADABLE, Faults
from sparkyard.loading.overrides import ENVIRONMENT, SET, Overrides, override
from sparkyard.loading.phrases import describe, unknown, unknown_setting
from sparkyard.loading.profiles import PROFILE, chosen, name_fault
from sparkyard.loading.profiles import values as profile_values
from sparkyard.loading.recipe_file import RecipeFile, SoundRecipe
from sparkyard.loading.secrets import is_secret
from sparkyard.loading.settings import check_value, kind_of
from sparkyard.loading.wiring import env_fault, per_node
from sparkyard.model import Inventory, Lane, Node, Origin, Value

Values = Mapping[str, Mapping[str, Value]]


def choose_lane(
    inventory: Inventory, known: Sequence[str], lane: str | None, environ: Mapping[str, str], faults: Faults
) -> str | None:
    """The name of the lane: as asked, else from the environment, else the inventory's default."""
    asked = [(lane, "--lane"), *((environ.get(name), name) for name in ("SPARKYARD_LANE", "INVOKE_LANE"))]
    name, place = next(((name, place) for name, place in asked if name), (None, ""))
    if name is None:
        name, place = inventory.default_lane, ""
    if name is None and faults.found:
        return None
    if name is None:
        faults.add(
            "--lane", 0, "", f"no lane given, and the inventory has no default; known: {', '.join(known)}"
        )
    elif name not in known:
        _unknown_lane(inventory, name, place, known, faults)
    return name if name in known else None


def _unknown_lane(inventory: Inventory, name: str, place: str, known: Sequence[str], faults: Faults) -> None:
    message = f"{describe(name)} is {unknown('lane', name, known)}"
    if place:
        file, key = (ENVIRONMENT, place) if place != "--lane" else (place, "")
        faults.add(file, 0, key, message)
    else:
        _at(_first(inventory.values, "lane"), "lane", message, faults)


def check_lane_names(values: Values, known: Sequence[str], faults: Faults) -> None:
    """Refuse lanes that no recipe defines, in ``lanes`` and in ``revert_to``."""
    for of_host in values.values():
        for key, value in of_host.items():
            steps = key.split(".")
            if steps[0] == "lanes" and len(steps) > 1 and steps[1] not in known:
                _at(value, f"lanes.{steps[1]}", unknown("lane", steps[1], known), faults)
        revert = of_host.get("revert_to")
        if revert and isinstance(revert.value, str) and revert.value not in known:
            _at(
                revert,
                "revert_to",
                f"{describe(revert.value)} is {unknown('lane', revert.value, known)}",
                faults,
            )


def check_settings(values: Values, name: str, file: RecipeFile, faults: Faults) -> None:
    """Check what the inventory says of a lane, on every node, against the lane's recipe."""
    settings = file.settings
    prefix = f"lanes.{name}."
    for of_host in values.values():
        for key, value in of_host.items():
            setting = key.removeprefix(prefix)
            if not key.startswith(prefix) or value.value is UNREADABLE or setting == "nodes":
                continue
            if setting == "env" or setting.startswith("env."):
                fault = _env_fault(setting, value.value)
            elif setting == PROFILE and file.profiles:
                fault = name_fault(value.value, file.profiles)
            elif setting in settings:
                known = settings[setting]
                fault = mask(check_value(known, value.value), [str(value.value)] if known.secret else [])
            else:
                fault = "" if setting in file.names else _strange(setting, file.names)
            if fault:
                _at(value, key, fault, faults)


def _strange(setting: str, settings: Sequence[str]) -> str:
    if setting.split(".", maxsplit=1)[0] in settings:
        return "one value is expected, found a mapping"
    return per_node(setting) or unknown_setting(setting, [*settings, "nodes", "env"])


def _env_fault(setting: str, value: Any) -> str:
    if setting == "env":
        return (
            ""
            if value in ({}, None)
            else f"a mapping of names and texts is expected, found {describe(value)}"
        )
    if fault := env_fault(setting.removeprefix("env."), value):
        return fault
    if isinstance(value, str):
        return ""
    shown = str(value).lower() if isinstance(value, bool) else value
    quote = f'; quote it: "{shown}"' if isinstance(value, int | float) else ""
    return f"text is expected, found {describe(value)}{quote}"


def resolve(
    inventory: Inventory,
    name: str,
    file: SoundRecipe,
    overrides: Overrides,
    faults: Faults,
    *,
    sound: bool = True,
) -> Lane:
    """The lane. ``sound`` is False for an inventory with faults, whose nodes are not worth counting."""
    nodes = lane_nodes(inventory, name, file, faults) if sound else inventory.nodes
    values = {node.name: inventory.values[node.name] for node in nodes}
    profile = chosen(_agreed(values, f"lanes.{name}.{PROFILE}", faults), file, overrides, faults)
    below = profile_values(profile, file)
    settings: dict[str, Value] = {}
    for setting in file.recipe.settings:
        settings[setting] = _setting(values, name, setting, file, overrides, below, faults)
    env = _env(values, name, file, overrides, faults)
    return Lane(name, file.recipe, file.folder, inventory, nodes, settings, env, profile=profile)


def lane_nodes(inventory: Inventory, name: str, file: SoundRecipe, faults: Faults) -> tuple[Node, ...]:
    """The nodes of ``lanes.X.nodes``, in rank order, or the first by rank that the recipe can use."""
    given = _agreed(inventory.values, f"lanes.{name}.nodes", faults, partial_ok=True)
    least, most = file.recipe.nodes.at_least, file.recipe.nodes.at_most
    if given is not None:
        return _named_nodes(inventory, given, f"lanes.{name}.nodes", (least, most), faults)
    if len(inventory.nodes) < least:
        place = (
            os.path.relpath(inventory.folder)
            if inventory.folder.is_relative_to(Path.cwd())
            else inventory.folder
        )
        faults.add(
            str(place),
            0,
            "",
            f"lane {name} needs {_count(least, most)} nodes, the inventory has {len(inventory.nodes)}",
        )
    return tuple(sorted(inventory.nodes, key=lambda node: node.rank))[:most]


def _count(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _named_nodes(
    inventory: Inventory, given: Value, key: str, bounds: tuple[int, int], faults: Faults
) -> tuple[Node, ...]:
    names = given.value
    known = {node.name: node for node in inventory.nodes}
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        _at(given, key, f"a list of node names is expected, found {describe(names)}", faults)
        return ()
    strangers = [name for name in names if name not in known]
    for name in strangers:
        _at(given, key, f"{describe(name)} is {unknown('node', name, list(known))}", faults)
    nodes = tuple(known[name] for name in names if name in known)
    if not strangers and (fault := _order_fault(nodes, bounds)):
        _at(given, key, fault, faults)
    return tuple(dict.fromkeys(nodes))


def _order_fault(nodes: tuple[Node, ...], bounds: tuple[int, int]) -> str:
    if len(set(nodes_names := [node.name for node in nodes])) < len(nodes):
        return f"a node stands there twice: {', '.join(nodes_names)}"
    if not bounds[0] <= len(nodes) <= bounds[1]:
        return f"the lane needs {_count(*bounds)} nodes, found {len(nodes)}"
    ordered = sorted(nodes, key=lambda node: node.rank)
    if list(nodes) != ordered:
        return f"not in rank order; write [{', '.join(node.name for node in ordered)}]"
    if not nodes[0].local:
        return f"its first node {nodes[0].name} is not local; run this lane from {nodes[0].name}, with an inventory of its own"
    return ""


def _setting(
    values: Values,
    lane: str,
    name: str,
    file: SoundRecipe,
    overrides: Overrides,
    below: Mapping[str, Value],
    faults: Faults,
) -> Value:
    setting = file.recipe.settings[name]
    above = override(
        overrides, name, kind_of(setting), partial(check_value, setting), faults, secret=setting.secret
    )
    given = _agreed(values, f"lanes.{lane}.{name}", faults)
    mark = file.root.nearest(["settings", name, "default"])
    value = above or given or below.get(name) or Value(setting.default, Origin(mark.file, mark.line))
    if value.value is None and setting.generated:
        return Value(generated(name), value.origin)
    return Value(value.value, value.origin, setting.secret)


def _env(
    values: Values, lane: str, file: SoundRecipe, overrides: Overrides, faults: Faults
) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for name, text in file.recipe.env.items():
        mark = file.root.nearest(["env", name])
        merged[name] = Value(text, Origin(mark.file, mark.line))
    prefix = f"lanes.{lane}.env."
    for key in _keys(values, prefix):
        given = _agreed(values, key, faults)
        if given is not None:
            merged[key.removeprefix(prefix)] = given
    for key, text in overrides.sets.items():
        if key.startswith("env."):
            if fault := left_open(text) or env_fault(key.removeprefix("env."), text):
                faults.add(SET, 0, key, fault)
            merged[key.removeprefix("env.")] = Value(text, Origin(SET))
    return {name: Value(v.value, v.origin, v.secret or is_secret(name)) for name, v in merged.items()}


def _keys(values: Values, prefix: str) -> list[str]:
    return list(
        dict.fromkeys(key for of_host in values.values() for key in of_host if key.startswith(prefix))
    )


def _agreed(values: Values, key: str, faults: Faults, *, partial_ok: bool = False) -> Value | None:
    """The one value that the nodes have; a fault when they differ, or (unless ``partial_ok``) when some lack it."""
    given = {host: of_host[key] for host, of_host in values.items() if key in of_host}
    first = next(iter(given.values()), None)
    if first is None:
        return None
    host = next(iter(given))
    other = next((name for name, value in given.items() if value.value != first.value), None)
    missing = next((name for name in values if name not in given), None)
    if other is not None:
        shown = [MASK if v.secret else _brief(v.value) for v in (given[other], first)]
        why = f"{shown[0]} on {other} but {shown[1]} on {host}"
        _at(given[other], key, f"{why}; a lane has one value", faults)
    elif missing is not None and not partial_ok:
        _at(
            first,
            key,
            f"set for {host} but not for {missing}; a lane has one value",
            faults,
        )
    return first


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else describe(value)


def _first(values: Values, key: str) -> Value:
    found: Iterable[Value] = (of_host[key] for of_host in values.values() if key in of_host)
    return next(iter(found), Value(None, Origin("default")))


def _at(value: Value, key: str, message: str, faults: Faults) -> None:
    faults.add(value.origin.place, value.origin.line, key, message)
