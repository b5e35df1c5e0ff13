"""Lane A's whole life on two simulated Sparks, with the stand-in for its engine: what each rank was given, and what it must refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.machine import recorded
from tests.machine.conftest import DATA, Lab, with_stand_ins
from tests.machine.conftest import PAIR as NODES
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-a"
STOPPED = {"spark-1": 1, "spark-2": 1}
JOB = ("download", "build", "start", "verify", "--lane=A", "--yes")


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type, with the lab's own inventory for stand-ins."""
    return with_stand_ins(session_lab, tmp_path_factory)


@pytest.fixture
def clean(lab: Lab) -> Iterator[Lab]:
    """Nodes without anything of sparkyard, before and after."""
    lab.forget(NODES)
    yield lab
    lab.forget(NODES)


@pytest.fixture(scope="module")
def started(session_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The lane, downloaded, built, started and verified once for all tests that only look."""
    session_lab.forget(NODES)
    said = typist.ok(*JOB)
    assert [e["data"]["result"] for e in said.events if e["data"].get("result")] == ["pass"] * 5
    assert said.of("recap")[0]["data"]["stand_in"] is True
    yield session_lab
    session_lab.forget(NODES)


def ranks(lab: Lab) -> list[dict[str, Any]]:
    """Both ranks as recorded, in the form of the golden files."""
    return [
        recorded.normal(
            recorded.record(lab, node, "A", rank), recorded.asked(lab, node, f"sparkyard-A-rank-{rank}")
        )
        for rank, node in enumerate(NODES)
    ]


def test_both_ranks_were_given_what_the_golden_files_say(started: Lab) -> None:
    for rank, seen in enumerate(ranks(started)):
        assert seen == recorded.golden(GOLDEN, rank), json.dumps(seen, indent=1)


def test_the_published_constraints_hold(started: Lab) -> None:
    head, worker = ranks(started)
    apart = {"--host", "--port", "--rank"}
    words = [[line for line in one["argv"] if line.split()[0] not in apart] for one in (head, worker)]
    assert words[0] == words[1]
    assert "--parallel 4" in words[0]
    assert [line for one in (head, worker) for line in one["argv"] if "--rank" in line] == [
        "--rank 0",
        "--rank 1",
    ]
    devices = [one["environment"]["TF_RDMA_DEVICES"].split(",") for one in (head, worker)]
    assert [len(names) for names in devices] == [2, 2]
    for one in (head, worker):
        assert {"/model", "/model/chat_template.jinja", "/engram"} <= one["mounts"].keys()
        assert one["environment"]["TF_DS_ENGRAM"] == "/engram"
        assert one["environment"]["TF_DS_SPILL_GIB"] == "64"
        assert one["environment"]["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] == "0"
        assert one["ulimits"]["memlock"] == "-1:-1"


def test_both_ranks_read_the_same_template(started: Lab) -> None:
    read = [recorded.record(started, node, "A", rank)["template"] for rank, node in enumerate(NODES)]
    assert read[0] == read[1]
    assert len(read[0]) == 64


def test_the_second_job_changes_nothing(started: Lab, typist: Typist) -> None:
    again = typist.ok("download", "build", "start", "--lane=A")
    assert again.changed() == {"spark-1": 0, "spark-2": 0}
    assert typist.json("download", "build", "start", "--lane=A", "--check").status == 0
    assert typist.json("status").status == 0


def test_people_are_told_that_it_is_a_stand_in(started: Lab, typist: Typist) -> None:
    shown = typist.type("verify", "--lane=A").stdout
    assert "verify · lane A · spark-1 · STAND-IN" in shown
    assert "STAND-IN: scripted engines answered in place of the real ones" in shown
    runs = started.own("spark-1") / "home/.local/state/sparkyard/runs"
    newest = max(runs.glob("*-verify-A*"), key=lambda path: path.stat().st_mtime_ns)
    assert json.loads((newest / "record.json").read_text())["stand_in"] is True


def test_a_rank_that_dies_while_booting_is_told_with_its_last_words(clean: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=A", "--yes")
    fault = "env.STAND_IN_1=--die-after 1 --boot-seconds 60 --last-words 'CUDA error: out of memory'"
    said = typist.json("start", "--lane=A", "--set", fault)
    assert said.status == 1
    assert "CUDA error: out of memory" in said.failures()


def test_a_node_that_is_no_lab_s_is_refused_and_left_alone(clean: Lab, typist: Typist) -> None:
    pid = (clean.folder / "nodes" / "spark-2" / "pid").read_text().strip()
    marker = Path(f"/proc/{pid}/root/run/sparkyard-lab")
    hidden = marker.rename(marker.with_name("elsewhere"))
    try:
        said = typist.json("download", "--lane=A", "--yes")
    finally:
        hidden.rename(marker)
    assert said.status == 2
    (refused,) = [event for event in said.of("finding") if event["node"] == "spark-2"]
    assert "stand_in is true in this inventory, and the node has no /run/sparkyard-lab" in refused["message"]
    for node in NODES:
        assert not (clean.own(node) / DATA / "models").exists()


def test_stop_ends_both_ranks(clean: Lab, typist: Typist) -> None:
    typist.ok(*JOB)
    assert typist.ok("stop", "--lane=A").changed() == STOPPED
    for node in NODES:
        assert clean.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""
