"""The same inventories read by the real ``ansible-inventory`` and by sparkyard: hosts, groups and merged variables agree.

The one named exception is the variable ``lanes``, which sparkyard merges by key and Ansible replaces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkyard.loading.ansible import Layout
from sparkyard.loading.inventory import Merged, merge_folder
from sparkyard.loading.marked import Faults

EXAMPLES = Path(__file__).parents[2] / "inventory"


def ansible(folder: Path) -> dict[str, Any]:
    """What ``ansible-inventory --list`` says of a folder."""
    program = Path(sys.executable).with_name("ansible-inventory")
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [program, "-i", folder, "--list"], env=environ, cwd=folder.parent, capture_output=True, check=True
    )
    listing: dict[str, Any] = json.loads(done.stdout)
    return listing


def ansible_groups(listing: Mapping[str, Any]) -> dict[str, set[str]]:
    """Group to hosts, children's included; empty groups, which the listing leaves out, as it leaves them out."""

    def hosts(name: str) -> set[str]:
        group = listing.get(name, {})
        return set(group.get("hosts", [])).union(*map(hosts, group.get("children", [])))

    names = {name for name in listing if name != "_meta"}
    names |= {child for name in names for child in listing[name].get("children", [])}
    return {name: found for name in names if (found := hosts(name))}


def ours(folder: Path) -> Merged:
    faults = Faults()
    merged = merge_folder(folder, faults)
    assert [str(fault) for fault in faults.found] == []
    assert merged is not None
    return merged


def variables(merged: Merged) -> dict[str, dict[str, Any]]:
    return {
        host: {name: value.plain() for name, value in found.items()}
        for host, found in merged.host_vars.items()
        if found
    }


def compare(folder: Path, *, without: tuple[str, ...] = ()) -> Merged:
    listing, merged = ansible(folder), ours(folder)
    theirs = listing["_meta"]["hostvars"]
    cut = {
        host: {name: v for name, v in found.items() if name not in without} for host, found in theirs.items()
    }
    mine = {
        host: {k: v for k, v in found.items() if k not in without}
        for host, found in variables(merged).items()
    }
    assert mine == cut
    assert {name: set(found) for name, found in merged.groups().items() if found} == ansible_groups(listing)
    return merged


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


DEPTH = """\
all:
  vars: {who: all, only_all: 1}
  children:
    zeta:                       # depth 1
      vars: {who: zeta, by_name: zeta}
      hosts: {one: , two: {who: inline}}
    alpha:                      # depth 1, and 3 by way of outer: the longest way counts
      vars: {who: alpha, by_name: alpha}
      hosts: {one: , three: }
    outer:
      vars: {who: outer, by_depth: outer}
      children:
        middle:
          vars: {by_depth: middle}
          children:
            alpha:
            inner: {hosts: {four: }, vars: {by_depth: inner}}
"""

CASES: dict[str, dict[str, str]] = {
    "group depth": {"hosts.yml": DEPTH},
    "group_vars against inline vars": {
        "hosts.yml": DEPTH,
        "group_vars/all.yml": "who: file-all\nonly_all: 2\nby_depth: file-all\n",
        "group_vars/zeta.yaml": "by_name: file-zeta\n",
        "group_vars/middle.json": '{"by_depth": "file-middle"}',
        "group_vars/inner": "by_depth: file-inner\n",
    },
    "host_vars": {
        "hosts.yml": DEPTH,
        "group_vars/all.yml": "who: file-all\n",
        "host_vars/two.yml": "who: file-two\nmore: [1, two, {three: 3}]\n",
        "host_vars/one/a.yml": "who: a\nx: a\n",
        "host_vars/one/b": "who: b\n",
        "host_vars/one/deeper/c.json": '{"y": {"z": null}}',
    },
    "nested dicts and lists are replaced whole": {
        "hosts.yml": """\
all:
  vars: {link: {a: 1, b: {c: 2}}, names: [a, b]}
  children:
    pair:
      vars: {link: {b: {d: 3}}}
      hosts: {one: {names: [c]}, two: {link: {e: []}}}
""",
        "group_vars/pair.yml": "names: [x, [y, {z: 1.5}]]\n",
    },
    "priorities": {
        "hosts.yml": """\
all:
  children:
    alpha: {vars: {ansible_group_priority: 10, who: alpha}, hosts: {one: , two: }}
    beta: {vars: {who: beta}, hosts: {one: , two: }}
    gamma: {vars: {ansible_group_priority: 10, who: gamma, x: 1}, hosts: {two: }}
    deep: {children: {deeper: {vars: {who: deeper, ansible_group_priority: -1}, hosts: {one: }}}}
""",
    },
    "a group and a host in several places": {
        "hosts.yml": """\
all:
  hosts: {one: {v: 1, w: 1}}
  children:
    first: {hosts: {one: {v: 2}, two: }, vars: {g: 1, h: 1}}
    second: {children: {first: {vars: {g: 2}, hosts: {three: }}}}
""",
    },
    "hosts in no group": {
        "hosts.yml": "all:\n  hosts: {one: , two: }\n  children:\n    pair: {hosts: {two: }}\n    empty:\n",
        "group_vars/ungrouped.yml": "alone: true\n",
    },
    "ungrouped written out": {
        "hosts.yml": "all:\n  children:\n    ungrouped: {hosts: {one: , two: }}\n    pair: {hosts: {two: }}\n",
        "group_vars/ungrouped.yml": "alone: true\n",
    },
    "groups beside all": {
        "hosts.yml": "pair:\n  vars: {who: pair}\n  children: {inner: {hosts: {one: }, vars: {who: inner}}}\nall:\n  vars: {who: all, x: 1}\n",
    },
    "hidden files and backups": {
        "hosts.yml": "all: {hosts: {one: }}\n",
        ".hosts.yml.swp": "junk",
        "hosts.yml~": "all: {hosts: {old: }}\n",
        "README.md": "# mine\n",
        "group_vars/.all.yml": "x: 1\n",
        "group_vars/all/.a.yml": "x: 2\n",
        "group_vars/all/a.yml~": "x: 3\n",
        "group_vars/all/b.yml": "y: 4\n",
    },
    "empty variable files": {
        "hosts.yml": "all: {hosts: {one: }}\n",
        "group_vars/all.yml": "# later\n",
        "host_vars/one.yml": "---\n",
    },
    "anchors and merge keys": {
        "hosts.yml": """\
all:
  vars:
    base: &base {a: 1, b: [x, y]}
    both: {<<: *base, a: 2}
    list: [*base, {<<: [{c: 3}, *base]}]
  hosts: {one: }
""",
    },
    "words and numbers": {
        "hosts.yml": """\
all:
  vars: {i: 12, n: -3, f: 1.5, t: true, o: false, e: "", none: null, q: "0123", p: "off", v: v1.2.3, ip: 10.0.0.1, u: é, w: a b}
  hosts: {one: }
"""
    },
}


@pytest.mark.parametrize("name", CASES)
def test_same_hosts_groups_and_variables(name: str, tmp_path: Path) -> None:
    compare(write(tmp_path / "inventory", CASES[name]))


def test_the_depth_case_says_what_it_should(tmp_path: Path) -> None:
    found = variables(ours(write(tmp_path / "inventory", CASES["group depth"])))
    assert found["one"] == {"who": "alpha", "only_all": 1, "by_name": "alpha", "by_depth": "middle"}
    assert found["two"] == {"who": "inline", "only_all": 1, "by_name": "zeta"}


@pytest.mark.parametrize("name", ["two-spark", "four-spark", "lab"])
def test_the_examples_mean_the_same_to_ansible(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name / "hosts.yml").read_text()
    compare(write(tmp_path / "inventory", {"hosts.yml": text}))


def test_all_written_twice_is_refused_where_ansible_keeps_the_last(tmp_path: Path) -> None:
    text = "all:\n  hosts: {one: {x: 1}}\nall:\n  hosts: {two: {x: 2}}\n"
    folder = write(tmp_path / "inventory", {"hosts.yml": text})
    assert set(ansible(folder)["_meta"]["hostvars"]) == {"two"}
    faults = Faults()
    merge_folder(folder, faults)
    assert [fault.message for fault in faults.found] == ["written twice (first on line 1); keep one"]


def test_lanes_merge_by_key_where_ansible_replaces(tmp_path: Path) -> None:
    files = {
        "hosts.yml": "all:\n  vars: {lanes: {A: {context: 1, env: {X: a}}}, x: 1}\n  hosts: {one: }\n",
        "group_vars/all.yml": "lanes: {A: {env: {Y: b}}, B: {}}\n",
    }
    folder = write(tmp_path / "inventory", files)
    merged = compare(folder, without=("lanes",))
    assert variables(merged)["one"]["lanes"] == {"A": {"context": 1, "env": {"X": "a", "Y": "b"}}, "B": {}}
    assert ansible(folder)["_meta"]["hostvars"]["one"]["lanes"] == {"A": {"env": {"Y": "b"}}, "B": {}}


NAMES = ["a", "b", "c", "d"]
HOSTS = ["one", "two", "three"]


@st.composite
def inventories(draw: st.DrawFn) -> dict[str, Any]:
    """Groups that hold each other in any way without a loop, with hosts, variables and priorities."""
    groups: dict[str, Any] = {}
    for index, name in enumerate(NAMES):
        below = draw(st.lists(st.sampled_from(NAMES[index + 1 :]), unique=True)) if index < 3 else []
        group: dict[str, Any] = {
            "hosts": {
                host: {"x": name} if draw(st.booleans()) else None
                for host in draw(st.sets(st.sampled_from(HOSTS)))
            },
            "children": dict.fromkeys(below),
            "vars": dict.fromkeys(draw(st.sets(st.sampled_from(["x", "y", "z"]))), name),
        }
        if draw(st.integers(0, 3)) == 0:
            group["vars"]["ansible_group_priority"] = draw(st.integers(-2, 3))
        groups[name] = group
    return {"all": {"vars": {"x": "all", "z": "all"}, "hosts": {"four": None}, "children": groups}}


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    tree=inventories(), files=st.dictionaries(st.sampled_from(["all", *NAMES]), st.sampled_from(["x", "y"]))
)
def test_any_graph_of_groups(
    tmp_path_factory: pytest.TempPathFactory, tree: Any, files: dict[str, str]
) -> None:
    texts = {f"group_vars/{name}.json": json.dumps({key: f"file-{name}"}) for name, key in files.items()}
    folder = tmp_path_factory.mktemp("graph") / "inventory"
    compare(write(folder, {"hosts.yml": json.dumps(tree), **texts}))


def test_a_layout_is_safe_on_loops() -> None:
    layout = Layout({})
    mark: Any = None
    layout.group("all", mark).children["a"] = None
    layout.group("a", mark).children["b"] = None
    layout.group("b", mark).children["a"] = None
    assert layout.loops() == ["a", "b"]
    assert layout.below("a") == {"a", "b"}
