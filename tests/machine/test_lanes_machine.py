"""``invoke lanes`` in the lab: what is there, what is not, a node that is gone, and one connection a node."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Said, Typist

pytestmark = pytest.mark.machine

TWIN = ("--lane=twin", f"--recipes={PROJECT / 'tests' / 'data' / 'recipes'}")


def rows(said: Said, table: str, lane: str) -> list[dict[str, object]]:
    data = [event["data"] for event in said.of("finding")]
    return [row for row in data if row.get("table") == table and row["lane"] == lane]


def here(said: Said, lane: str = "twin") -> object:
    return rows(said, "lanes", lane)[0]["here"]


def test_from_nothing_to_running_and_with_a_node_gone(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "stand-in"
    shutil.copytree(lab.folder / "stand-in", folder)
    typist = Typist(folder)
    before = faults.ssh_connections("spark-2")
    whole = typist.json("lanes", TWIN[1])
    assert whole.status == 0, whole.failures()
    assert faults.ssh_connections("spark-2") == before + 1
    assert rows(whole, "lanes", "B")[0]["possible"] == "needs 4 nodes, this inventory has 2"
    assert rows(whole, "lanes", "A")[0]["possible"] == "yes, as far as is known"
    assert not whole.of("recap")

    assert "running" not in str(here(typist.ok("lanes", *TWIN)))
    typist.ok("download", "build", *TWIN, "--yes")
    assert here(typist.ok("lanes", *TWIN)) == "downloaded, built"
    typist.ok("start", *TWIN)
    said = typist.ok("lanes", *TWIN)
    assert here(said) == "running"
    assert [row["there"] for row in rows(said, "lanes-nodes", "twin")] == ["downloaded, built, twin runs"] * 2
    typist.ok("stop", *TWIN)

    faults.kill_node("spark-2")
    gone = typist.json("lanes", *TWIN)
    assert gone.status == 4
    assert [row["there"] for row in rows(gone, "lanes-nodes", "twin")] == ["downloaded, built", "unreachable"]
    assert here(typist.ok("lanes", *TWIN, "--check")) == "not asked"
