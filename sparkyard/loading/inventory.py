"""An inventory folder to an Inventory: every variable with its origin, nodes checked against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkyard.loading import ansible
from sparkyard.loading.ansible import Layout, Vars
from sparkyard.loading.folder import read_hosts, read_vars
from sparkyard.loading.hosts_file import read_layout, variable_sets
from sparkyard.loading.marked import Faults, Marked, dotted
from sparkyard.loading.nodes import build_nodes
from sparkyard.loading.overrides import Overrides, override, read_overrides
from sparkyard.loading.secrets import is_secret
from sparkyard.loading.variables import OVERRIDABLE, SCALARS, check_variables
from sparkyard.model import Inventory, Node, Origin, Value

DEFAULTS: Mapping[str, str] = {"root": "~/.local/share/sparkyard"}


@dataclass(frozen=True, slots=True)
class Merged:
    """The folder as Ansible sees it, before sparkyard's own checks."""

    layout: Layout
    host_vars: Mapping[str, Vars]
    files: Sequence[tuple[str, Vars]]

    def groups(self) -> dict[str, tuple[str, ...]]:
        return {name: self.layout.members(name) for name in self.layout.groups}


def merge_folder(folder: Path, faults: Faults) -> Merged | None:
    """Read the folder and merge each host's variables in Ansible's order. None without a usable hosts file."""
    root = read_hosts(folder, faults)
    if root is None:
        return None
    layout = read_layout(root, faults)
    group_files = read_vars(folder, "group_vars", layout.groups, faults)
    host_files = read_vars(folder, "host_vars", layout.hosts, faults)
    merged = {host: ansible.host_vars(layout, host, group_files, host_files) for host in layout.hosts}
    files = [("", variables) for sets in (*group_files.values(), *host_files.values()) for variables in sets]
    return Merged(layout, merged, files)


def draft_inventory(
    folder: Path, environ: Mapping[str, str], sets: Sequence[str], faults: Faults
) -> Inventory:
    """As much of the inventory as can be read; everything that is wrong with it is collected."""
    merged = merge_folder(folder, faults)
    if merged is None:
        return Inventory(folder, (), {}, None, None)
    for key, variables in (*variable_sets(merged.layout), *merged.files):
        check_variables(variables, key, faults)
    if not merged.layout.hosts and not faults.found:
        top = merged.layout.groups["all"].mark
        faults.at(top, "", "no nodes; write them below hosts:")
    overrides = read_overrides(environ, sets, faults)
    values = {host: _values(variables, overrides, faults) for host, variables in merged.host_vars.items()}
    _refuse_stand_in(values, faults)
    nodes = build_nodes(merged.layout.marks, merged.host_vars, values, environ, faults)
    return _inventory(folder, nodes, merged, values, faults)


def _values(variables: Vars, overrides: Overrides, faults: Faults) -> dict[str, Value]:
    """Dotted key to value; ``root`` and ``models`` always, the environment and ``--set`` last."""
    values = {name: Value(text, Origin("default")) for name, text in DEFAULTS.items()}
    for name, marked in variables.items():
        values.update(_flat(name, marked))
    for name in OVERRIDABLE:
        value = override(overrides, name, str, SCALARS[name], faults)
        if value:
            values[name] = value
    root = values["root"]
    if "models" not in values and isinstance(root.value, str):
        values["models"] = Value(f"{root.value.rstrip('/')}/models", Origin("default"))
    return values


def _flat(key: str, marked: Marked) -> dict[str, Value]:
    """Mappings by dotted key, lists whole."""
    if isinstance(marked.value, dict) and marked.value:
        found: dict[str, Value] = {}
        for name, item in marked.value.items():
            found.update(_flat(dotted(key, name), item))
        return found
    secret = is_secret(key.rsplit(".", 1)[-1])
    return {key: Value(marked.plain(), Origin(marked.file, marked.line), secret)}


def _inventory(
    folder: Path, nodes: tuple[Node, ...], merged: Merged, values: dict[str, dict[str, Value]], faults: Faults
) -> Inventory:
    order = {node.name: node.rank for node in nodes}
    groups = {
        name: tuple(sorted((m for m in members if m in order), key=order.__getitem__))
        for name, members in merged.groups().items()
    }
    return Inventory(
        folder=folder,
        nodes=nodes,
        groups=groups,
        default_lane=_common(values, "lane", str, faults),
        revert_to=_common(values, "revert_to", str, faults),
        hub_endpoint=_common(values, "hub_endpoint", str, faults),
        lab=bool(_common(values, "lab", bool, faults)),
        stand_in=bool(_common(values, "stand_in", bool, faults)),
        values=values,
        mirrors=_mirrors(merged, faults),
    )


def _mirrors(merged: Merged, faults: Faults) -> dict[str, str]:
    """The mirrors, the same for every node: what they stand in for is fetched once, on the head."""
    given = {host: of_host.get("mirrors") for host, of_host in merged.host_vars.items()}
    first, others = next(iter(given.values()), None), list(given.values())[1:]
    plain = first.plain() if first else None
    for other in others:
        if (other.plain() if other else None) != plain:
            mark = other or first
            assert mark is not None
            faults.at(
                mark, "mirrors", "not the same on every node; it belongs to the whole inventory: all: vars:"
            )
            break
    return dict(plain) if isinstance(plain, dict) else {}


def _refuse_stand_in(values: Mapping[str, Mapping[str, Value]], faults: Faults) -> None:
    """Stand-ins are for simulated Sparks only; whether the nodes are some is asked of them before anything acts."""
    for of_host in values.values():
        stand_in, lab = of_host.get("stand_in"), of_host.get("lab")
        if stand_in and stand_in.value is True and not (lab and lab.value is True):
            origin = stand_in.origin
            faults.add(
                origin.place, origin.line, "stand_in", "is only for a lab: it needs lab: true beside it"
            )


def _common(values: Mapping[str, Mapping[str, Value]], name: str, kind: type, faults: Faults) -> Any:
    """The value of a variable that belongs to the whole inventory: the same on every node, or a fault."""
    given = {host: of_host[name] for host, of_host in values.items() if name in of_host}
    first = next(iter(given.values()), None)
    if first is None:
        return None
    missing = [host for host in values if host not in given]
    other = next((host for host, value in given.items() if value.value != first.value), None)
    if other or missing:
        host = other or next(iter(given))
        origin = given[host].origin
        why = (
            f"not the same as on {next(iter(given))}" if other else f"set for {host} but not for {missing[0]}"
        )
        faults.add(origin.place, origin.line, name, f"{why}; it belongs to the whole inventory: all: vars:")
    return first.value if isinstance(first.value, kind) else None
