"""The files of an inventory folder: which are read, which are left alone, which are refused by name.

Read: ``hosts.yml`` (or ``.yaml``), ``group_vars/`` and ``host_vars/``. Left alone: ``locks/``, ``README.md``, hidden files and
those that end in ``~``. Anything else is a fault, so that no file is ever ignored by a slip of its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sparkyard.loading.ansible import Vars
from sparkyard.loading.marked import Faults, Marked
from sparkyard.loading.phrases import describe, did_you_mean, unknown
from sparkyard.loading.yaml_file import read_yaml, shown

HOSTS = ("hosts.yml", "hosts.yaml")
VARS_FOLDERS = ("group_vars", "host_vars")
LEFT_ALONE = ("locks", "README.md")
SLIPS = 5
"""Strange files of a folder without hosts.yml that may be slips of somebody who writes an inventory."""
EXTENSIONS = (".yml", ".yaml", ".json")


def ignored(name: str) -> bool:
    """Hidden files and editors' backups, as in Ansible."""
    return name.startswith(".") or name.endswith("~")


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not ignored(path.name))


def read_hosts(folder: Path, faults: Faults) -> Marked | None:
    """The content of the hosts file; strange files in the folder are collected as faults."""
    strangers = [p for p in entries(folder) if p.name not in (*HOSTS, *VARS_FOLDERS, *LEFT_ALONE)]
    found = [folder / name for name in HOSTS if (folder / name).is_file()]
    if found or len(strangers) <= SLIPS:  # else it is no inventory at all, and one fault says so
        for path in strangers:
            faults.add(shown(path), 0, "", _stranger(path))
    if not found:
        faults.add(shown(folder), 0, "", "no hosts.yml in this folder; write one with invoke init")
        return None
    if len(found) > 1:
        faults.add(shown(found[1]), 0, "", "hosts.yml is there too; keep one of the two")
    raw = Faults()
    root = read_yaml(found[0], raw)
    for fault in raw.found:
        faults.add(fault.file, fault.line, short_key(fault.key), fault.message)
    if root is None and not any(fault.file == shown(found[0]) for fault in faults.found):
        faults.add(shown(found[0]), 0, "", "empty; an inventory starts with all:")
    return root


def short_key(key: str) -> str:
    """A key path of ``hosts.yml`` as people name it: ``spark-1.rank`` and ``sparks.vars.lane``, without the groups above."""
    steps = key.split(".")
    while len(steps) > 2 and steps[1] == "children":
        steps = steps[2:]
    return ".".join(steps[2:] if len(steps) > 2 and steps[1] == "hosts" else steps)


def _stranger(path: Path) -> str:
    if path.is_dir():
        if path.name == "lanes":
            return "not read; a lane's settings go into the variable lanes, below vars:"
        return f"not a known folder{did_you_mean(path.name, VARS_FOLDERS)}; move it out of the inventory"
    if path.suffix in {".ini", ".cfg", ".toml"} or path.name == "hosts":
        return "only YAML inventories are supported; write it as hosts.yml"
    if os.access(path, os.X_OK) and path.stat().st_mode & 0o111:
        return "dynamic inventory scripts are not supported; write the nodes out in hosts.yml"
    if path.suffix in EXTENSIONS:
        hint = did_you_mean(path.name, HOSTS[:1])
        return f"not a known file{hint}; only hosts.yml, group_vars and host_vars are read"
    return "not a known file; move it out of the inventory"


def read_vars(folder: Path, kind: str, names: Iterable[str], faults: Faults) -> dict[str, list[Vars]]:
    """The variables of ``group_vars`` or ``host_vars`` by group or host; files of a folder in the order of their names."""
    base = folder / kind
    if not base.is_dir():
        if base.exists():
            faults.add(shown(base), 0, "", "a folder is expected here, not a file")
        return {}
    known = list(names)
    found: dict[str, list[Path]] = {}
    for path in entries(base):
        if name := _owner(path, kind, known, faults):
            found.setdefault(name, []).append(path)
    return {name: _read_all(paths, faults) for name, paths in found.items()}


def _owner(path: Path, kind: str, known: list[str], faults: Faults) -> str:
    """Whose variables a file or folder holds; empty when it is refused."""
    name = path.name
    if name not in known and path.suffix in EXTENSIONS and not path.is_dir():
        name = path.stem
    if name in known:
        return name
    what = "group" if kind == "group_vars" else "node"
    if path.stem in known:
        faults.add(shown(path), 0, "", f"{path.suffix} is not read; name it {path.stem}.yml")
    else:
        faults.add(shown(path), 0, "", f"{unknown(what, name, known)}")
    return ""


def _read_all(paths: list[Path], faults: Faults) -> list[Vars]:
    if len(paths) > 1:
        others = ", ".join(path.name for path in paths[1:])
        faults.add(shown(paths[0]), 0, "", f"{others} stands beside it, and Ansible reads only one; keep one")
    path = paths[0]
    files = _files_below(path, faults) if path.is_dir() else [path]
    return [variables for file in files if (variables := _read_mapping(file, faults))]


def _files_below(folder: Path, faults: Faults) -> list[Path]:
    found: list[Path] = []
    for path in entries(folder):
        if path.is_dir() and not path.suffix:
            found.extend(_files_below(path, faults))
        elif path.is_file() and path.suffix in ("", *EXTENSIONS):
            found.append(path)
        else:
            faults.add(
                shown(path), 0, "", f"{path.suffix} is not read; name it {path.stem}.yml, or move it away"
            )
    return found


def _read_mapping(path: Path, faults: Faults) -> Vars:
    root = read_yaml(path, faults)
    if root is not None and not isinstance(root.value, dict):
        faults.at(root, "", f"a mapping of variables is expected, found {describe(root.value)}")
    return root.fields if root else {}
