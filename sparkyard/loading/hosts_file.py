"""``hosts.yml`` to groups and hosts, refusing what sparkyard does not support by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkyard.loading.ansible import Group, Layout, merge
from sparkyard.loading.marked import UNREADABLE, Faults, Marked, dotted
from sparkyard.loading.phrases import describe, quoted, unknown
from sparkyard.loading.variables import KNOWN

PARTS = ("hosts", "vars", "children")
PRIORITY = "ansible_group_priority"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def read_layout(root: Marked, faults: Faults) -> Layout:
    """The groups and hosts of the file; what cannot be used is left out and collected as a fault."""
    reader = _Walk(root, faults)
    if _is_tree(root, faults):
        for name, group in root.fields.items():
            reader.group(name, group, "")
    reader.refuse_loops()
    reader.layout.complete()
    reader.refuse_twins()
    return reader.layout


def _is_tree(root: Marked, faults: Faults) -> bool:
    if not isinstance(root.value, dict):
        faults.at(root, "", f"an inventory starts with all:, found {describe(root.value)}")
        return False
    if plugin := root.find(["plugin"]):
        faults.at(plugin, "plugin", "inventory plugins are not supported; write the nodes out below all:")
        return False
    if "all" not in root.value:
        faults.at(root, "", "no group all; an inventory starts with all:")
    return True


class _Walk:
    """One pass over the file, in its order, as Ansible makes it."""

    def __init__(self, root: Marked, faults: Faults) -> None:
        self.layout = Layout({"all": Group("all", root)})
        self.faults = faults

    def group(self, name: str, marked: Marked, parent: str) -> None:
        if not self._usable(name, marked, parent):
            return
        group = self.layout.group(name, marked)
        if parent:
            self.layout.groups[parent].children[name] = None
        for part, content in marked.fields.items():
            self._part(group, part, content)

    def _usable(self, name: str, marked: Marked, parent: str) -> bool:
        fault = ""
        if not parent and name in KNOWN:
            fault = "a variable, not a group: put it below all: vars:"
        elif name == "all" and parent:
            fault = "all holds every group and cannot be below one"
        elif not _GROUP.fullmatch(name):
            fault = f"{quoted(name)} is no group name; use letters, digits, _ and -"
        elif not isinstance(marked.value, dict) and marked.value is not None:
            fault = f"a group holds hosts, vars and children; found {describe(marked.value)}"
        if fault and marked.value is not UNREADABLE:
            self.faults.at(marked, name, fault)
        return not fault

    def _part(self, group: Group, part: str, content: Marked) -> None:
        key = dotted(group.name, part)
        if part not in PARTS:
            hint = (
                "a variable: put it below vars:" if part in KNOWN else unknown("key of a group", part, PARTS)
            )
            self.faults.at(content, key, hint)
        elif not isinstance(content.value, dict):
            if content.value is not None and content.value is not UNREADABLE:
                self.faults.at(
                    content, key, f"a mapping is expected, found {describe(content.value)}{_colon(content)}"
                )
        elif part == "vars":
            self._vars(group, content)
        elif part == "children":
            for name, child in content.value.items():
                self.group(name, child, group.name)
        else:
            for name, host in content.value.items():
                self._host(group, name, host)

    def _vars(self, group: Group, content: Marked) -> None:
        for name, value in content.fields.items():
            if name == PRIORITY:
                self._priority(group, value)
            else:
                group.vars = merge([group.vars, {name: value}])

    def _priority(self, group: Group, value: Marked) -> None:
        if isinstance(value.value, int) and not isinstance(value.value, bool):
            group.priority = value.value
        elif value.value is not UNREADABLE:
            found = describe(value.value)
            self.faults.at(
                value, dotted(group.name, "vars", PRIORITY), f"a whole number is expected, found {found}"
            )

    def _host(self, group: Group, name: str, marked: Marked) -> None:
        if fault := _host_name_fault(name):
            self.faults.at(marked, dotted(group.name, "hosts"), fault)
            return
        if not isinstance(marked.value, dict) and marked.value is not None:
            if marked.value is not UNREADABLE:
                found = describe(marked.value)
                self.faults.at(marked, name, f"a node holds a mapping of variables, found {found}")
            return
        group.hosts[name] = None
        self.layout.marks.setdefault(name, marked)
        self.layout.hosts[name] = merge([self.layout.hosts.get(name, {}), marked.fields])

    def refuse_loops(self) -> None:
        for name in self.layout.loops():
            group = self.layout.groups[name]
            self.faults.at(group.mark, name, "a group below itself; take it out of its own children")
            group.children.clear()

    def refuse_twins(self) -> None:
        for name in sorted(self.layout.hosts.keys() & self.layout.groups.keys()):
            mark = self.layout.marks[name]
            self.faults.at(mark, name, "both a node and a group have this name; rename one of them")


def _colon(content: Marked) -> str:
    text = isinstance(content.value, str)
    return " (a colon is missing after the name)" if text else ""


def _host_name_fault(name: str) -> str:
    if _HOST.fullmatch(name):
        return ""
    if "[" in name:
        return f"host ranges are not supported; write the nodes of {quoted(name)} out"
    if any(sign in name for sign in "*!&,?"):
        return f"{quoted(name)} is a host pattern, which is not supported; name each node"
    if ":" in name:
        return f"{quoted(name)}: a port in a name is not supported; set ansible_port"
    if "{" in name:
        return f"{quoted(name)}: Jinja is not evaluated here; write the name out"
    return f"{quoted(name)} is no node name; use letters, digits, dots and dashes"


def variable_sets(layout: Layout) -> Iterator[tuple[str, dict[str, Marked]]]:
    """Every set of inline variables with the key path it has in messages."""
    for group in layout.groups.values():
        yield dotted(group.name, "vars"), group.vars
    yield from layout.hosts.items()
