"""``--json`` of the verbs that make labs and inventories: every line is an event of the schema (the typist looks at each)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine


def test_a_lab_s_whole_life_is_told_in_valid_json(other_lab: Path) -> None:
    typist = Typist(PROJECT / "inventory" / "lab")
    up = typist.ok("lab.up", "--nodes=1")
    assert [event["data"]["state"] for event in up.of("finding") if "state" in event["data"]] == ["ready"]
    shell = typist.ok("lab.shell", "--command=sh -c 'echo here; echo there >&2'")
    assert [event["data"]["line"] for event in shell.events] == ["here", "there"]
    failed = typist.json("lab.shell", "--command=sh -c 'exit 7'")
    assert (failed.status, failed.failures().strip()) == (1, "the command ended with status 7")
    assert typist.json("lab.shell").status == 2
    assert typist.ok("lab.status").events
    assert typist.ok("lab.down").events
    assert not other_lab.exists()
    again = typist.json("lab.shell", "--command=true")
    assert again.status == 2
    assert "no lab node 'spark-1' is up" in again.failures()


def test_init_tells_what_it_wrote_in_valid_json(tmp_path: Path) -> None:
    typist = Typist(tmp_path / "mine")
    said = typist.ok("init", "--nodes=4", "--yes")
    (row,) = [event["data"] for event in said.of("finding") if event["data"].get("table") == "init"]
    assert Path(row["file"]) == tmp_path / "mine" / "hosts.yml"
    assert Path(row["file"]).exists()
    twice = typist.json("init", "--nodes=4", "--yes")
    assert twice.status == 2
    assert twice.events
