"""Ansible's own rules for an inventory: groups, membership, depth, and the order in which variables replace each other.

Least to most: ``all``'s inline vars, other groups' inline vars, ``group_vars/all``, other ``group_vars``, inline host vars,
``host_vars``. Groups of one kind come by depth (longest way down from ``all``), ``ansible_group_priority``, name. A later value
replaces the whole earlier one; the one exception is the variable ``lanes``, which merges by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkyard.loading.marked import Marked

Vars = dict[str, Marked]
MERGED = "lanes"


@dataclass(slots=True)
class Group:
    """A group while the file is read: own hosts, child groups, inline vars."""

    name: str
    mark: Marked
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    vars: Vars = field(default_factory=dict)
    priority: int = 1


@dataclass(slots=True)
class Layout:
    """What ``hosts.yml`` says: the groups, and every host with its inline vars and its place."""

    groups: dict[str, Group]
    hosts: dict[str, Vars] = field(default_factory=dict)
    marks: dict[str, Marked] = field(default_factory=dict)

    def group(self, name: str, mark: Marked) -> Group:
        return self.groups.setdefault(name, Group(name, mark))

    def complete(self) -> None:
        """Give every group without a parent to ``all``, and every host that is in no other group to ``ungrouped``."""
        top = self.groups["all"]
        ungrouped = self.group("ungrouped", top.mark)
        placed = {child for group in self.groups.values() for child in group.children}
        for name in self.groups:
            if name != "all" and name not in placed:
                top.children[name] = None
        grouped = {h for g in self.groups.values() if g.name not in {"all", "ungrouped"} for h in g.hosts}
        ungrouped.hosts = {host: None for host in self.hosts if host not in grouped}

    def below(self, name: str) -> set[str]:
        """The group and every group below it. Safe on loops."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            here = waiting.pop()
            if here not in seen:
                seen.add(here)
                waiting.extend(self.groups[here].children)
        return seen

    def loops(self) -> list[str]:
        """Groups that lie below themselves."""
        return [
            name for name, group in self.groups.items() if any(name in self.below(c) for c in group.children)
        ]

    def depths(self) -> dict[str, int]:
        """How far each group lies below ``all``, by the longest way. The groups must hold no loop."""
        depth = dict.fromkeys(self.groups, 0)
        waiting = ["all"]
        while waiting:
            here = waiting.pop()
            for child in self.groups[here].children:
                if depth[child] <= depth[here]:
                    depth[child] = depth[here] + 1
                    waiting.append(child)
        return depth

    def members(self, name: str) -> tuple[str, ...]:
        """The hosts of a group and of all groups below it, in the order of the file."""
        below = self.below(name)
        found = {host for group in below for host in self.groups[group].hosts}
        return tuple(host for host in self.hosts if name == "all" or host in found)

    def groups_of(self, host: str) -> list[Group]:
        """The groups a host belongs to, without ``all``, least important first."""
        depth = self.depths()
        names = [name for name in self.groups if name != "all" and host in self.members(name)]
        ordered = sorted(names, key=lambda name: (depth[name], self.groups[name].priority, name))
        return [self.groups[name] for name in ordered]


def merge(layers: Iterable[Vars]) -> Vars:
    """One set of variables from layers, least important first."""
    merged: Vars = {}
    for layer in layers:
        for name, value in layer.items():
            if name == MERGED and name in merged:
                merged[name] = merge_by_key(merged[name], value)
            else:
                merged[name] = value
    return merged


def merge_by_key(below: Marked, above: Marked) -> Marked:
    """The upper value over the lower one; mappings key by key, everything else replaced."""
    if not (isinstance(below.value, dict) and isinstance(above.value, dict)):
        return above
    entries = dict(below.value)
    for key, value in above.value.items():
        entries[key] = merge_by_key(entries[key], value) if key in entries else value
    return Marked(entries, above.file, above.line)


def host_vars(
    layout: Layout,
    host: str,
    group_files: Mapping[str, Sequence[Vars]],
    host_files: Mapping[str, Sequence[Vars]],
) -> Vars:
    """Every variable of a host, merged in Ansible's order."""
    groups = layout.groups_of(host)
    layers = [layout.groups["all"].vars, *(group.vars for group in groups), *group_files.get("all", ())]
    for group in groups:
        layers.extend(group_files.get(group.name, ()))
    return merge([*layers, layout.hosts[host], *host_files.get(host, ())])
