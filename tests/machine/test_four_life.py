"""Lanes on four simulated Sparks, typed as a person types them: from one to another and back, two at once, and with a node that is off."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Said, Typist

pytestmark = pytest.mark.machine

NODES = ("spark-1", "spark-2", "spark-3", "spark-4")
RECORDS = "home/.local/state/sparkyard/started"
LAB = {
    "spark-1": ["sparkyard-lab-server-0"],
    "spark-2": ["sparkyard-lab-follower-1"],
    "spark-3": ["sparkyard-lab-follower-2"],
    "spark-4": ["sparkyard-lab-follower-3"],
}
PAIR = {"spark-1": ["sparkyard-A-rank-0"], "spark-2": ["sparkyard-A-rank-1"], "spark-3": [], "spark-4": []}
KIT = {"spark-1": ["dsv41-exl3-head"], "spark-2": ["dsv41-exl3-worker"], "spark-3": [], "spark-4": []}
OTHER_PAIR = """\
all:
  vars:
    lane: lab
    lab: true
    stand_in: true
    hub_endpoint: http://198.18.0.254
    lanes: {lab: {engine: scripted}}
  children:
    sparks:
      hosts:
        spark-3:
          ansible_connection: local
          rank: 0
          link: {address: 198.18.1.3, interface: enp1s0f1np1, hcas: [rocep1s0f1, roceP2p1s0f1]}
        spark-4:
          ansible_host: 198.18.0.4
          ansible_user: root
          rank: 1
          link: {address: 198.18.1.4, interface: enp1s0f1np1, hcas: [rocep1s0f1, roceP2p1s0f1]}
"""
"""The third and fourth Spark as a pair of their own, with its own head."""


@pytest.fixture(scope="module")
def typist(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typist]:
    """Somebody to type, with the inventory of stand-ins that `lab.up` wrote; nothing is left running afterwards."""
    folder = tmp_path_factory.mktemp("inventory") / "four"
    shutil.copytree(four_lab.folder / "stand-in", folder)
    hosts = folder / "hosts.yml"
    hosts.write_text(
        hosts.read_text().replace("    lane: A\n", "    lane: A\n    lanes: {lab: {engine: scripted}}\n")
    )
    clean(four_lab)
    yield Typist(folder)
    clean(four_lab)


@pytest.fixture
def serving(four_lab: Lab, typist: Typist) -> Typist:
    """The lab's lane on all four."""
    simulated.up(4, print)  # what an earlier test broke
    typist.ok("download", "build", "start", "--lane=lab", "--yes")
    assert running(four_lab) == LAB
    return typist


def clean(lab: Lab) -> None:
    simulated.up(4, print)
    for node in NODES:
        lab.away(node, "")
        lab.delete(node, RECORDS)


def running(lab: Lab, nodes: tuple[str, ...] = NODES) -> dict[str, list[str]]:
    return {node: lab.out(node, "docker", "ps", "--format", "{{.Names}}").split() for node in nodes}


def results(said: Said) -> set[str]:
    return {event["data"]["result"] for event in said.events if event["data"].get("result")}


def lanes_of_the_recipes() -> list[str]:
    return sorted(
        line.split()[1]
        for path in (PROJECT / "recipes").glob("*/recipe.yml")
        for line in path.read_text().splitlines()
        if line.startswith("lane: ")
    )


def test_the_lab_s_inventory_of_four_serves_every_lane(four_lab: Lab, typist: Typist) -> None:
    for lane in lanes_of_the_recipes():
        said = typist.ok("config", f"--lane={lane}")
        (nodes,) = [event["data"]["value"] for event in said.events if event["data"].get("key") == "nodes"]
        assert nodes in (list(NODES[:2]), list(NODES)), lane
        assert typist.json("status", f"--lane={lane}").status == 1


def test_from_four_nodes_to_a_pair_and_back(four_lab: Lab, serving: Typist) -> None:
    went = serving.ok("switch", "--lane=A", "--yes")
    assert running(four_lab) == PAIR
    assert results(went) == {"pass"}
    assert went.nodes.keys() == set(NODES)
    back = serving.ok("switch", "--lane=lab", "--yes")
    assert running(four_lab) == LAB
    assert not [e for e in back.of("step-changed") if e["step"].split(":")[0] in ("image", "checkpoint")]


@pytest.mark.long
def test_two_lanes_on_disjoint_pairs_leave_each_other_alone(
    four_lab: Lab, typist: Typist, tmp_path: Path
) -> None:
    clean(four_lab)
    typist.ok("download", "build", "start", "--lane=A", "--yes")
    first = running(four_lab, NODES[:2])
    (tmp_path / "hosts.yml").write_text(OTHER_PAIR)
    other = Typist(tmp_path)
    four_lab.ship("sparkyard-lab/engine-base:latest", ("spark-3",))
    other.ok("trust", "--yes")
    other.ok("download", "build", "start", "verify", "--yes")
    assert other.json("status").status == 0
    assert typist.json("status", "--lane=A").status == 0
    asked = typist.json("stop")
    assert asked.status == 2
    assert "several lanes are there: A, lab" in asked.failures()
    typist.ok("stop", "--lane=A")
    assert running(four_lab, NODES[2:]) == {
        "spark-3": ["sparkyard-lab-server-0"],
        "spark-4": ["sparkyard-lab-follower-1"],
    }
    typist.ok("start", "--lane=A", "--yes")
    other.ok("stop")
    assert running(four_lab) == {**first, "spark-3": [], "spark-4": []}


def test_revert_goes_from_four_nodes_to_the_kit_on_two(four_lab: Lab, serving: Typist) -> None:
    first = serving.ok("revert", "--yes")
    assert running(four_lab) == KIT
    assert results(first) == {"pass"}
    assert serving.ok("revert").changed() == {"spark-1": 0, "spark-2": 0}
    serving.ok("switch", "--lane=lab", "--yes")
    assert running(four_lab) == LAB
    looked = serving.json("revert", "--check")  # what would be stopped first is in the way of nothing
    assert looked.status == 6, looked.failures()
    assert running(four_lab) == LAB


@pytest.mark.long
def test_a_worker_that_is_off_is_named_and_the_others_are_stopped(four_lab: Lab, serving: Typist) -> None:
    faults.kill_node("spark-3")
    seen = serving.json("status")
    assert seen.status == 4
    assert [event["node"] for event in seen.of("node-unreachable")] == ["spark-3"]
    states = {e["data"]["node"]: e["data"]["state"] for e in seen.events if "state" in e["data"]}
    assert states.pop("spark-3") == "unknown"
    assert states.keys() == {"spark-1", "spark-2", "spark-4"}
    assert set(states.values()) <= {"running", "exited"}  # a rank ends when it has noticed the loss
    gone = serving.json("revert", "--yes")
    assert gone.status == 4
    assert [event["node"] for event in gone.of("finding")] == ["spark-3"]
    assert "nothing was changed" in gone.failures()
    assert gone.of("step-changed") == []
    stopped = serving.json("stop")
    assert stopped.status == 4
    assert {
        name: counts["unreachable"] for name, counts in stopped.nodes.items() if counts["unreachable"]
    } == {"spark-3": 1}
    others = ("spark-1", "spark-2", "spark-4")
    assert [four_lab.out(node, "docker", "ps", "--all", "--quiet") for node in others] == ["", "", ""]
    serving.ok("revert", "--yes")
    assert running(four_lab, NODES[:2]) == {node: KIT[node] for node in NODES[:2]}


@pytest.mark.parametrize(
    ("lane", "nodes", "says"),
    [
        ("A", "[spark-1, spark-2, spark-3]", "lanes.A.nodes: the lane needs 2 nodes, found 3"),
        ("A", "[spark-1]", "lanes.A.nodes: the lane needs 2 nodes, found 1"),
        ("A", "[spark-3, spark-4]", "its first node spark-3 is not local; run this lane from spark-3"),
        ("A", "[spark-1, spark-9]", "spark-9"),
    ],
)
def test_wrong_nodes_are_refused_before_the_first_connection(
    four_lab: Lab, typist: Typist, tmp_path: Path, lane: str, nodes: str, says: str
) -> None:
    simulated.up(4, print)
    text = (typist.inventory / "hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(
        text.replace("lanes: {lab", f"lanes: {{{lane}: {{nodes: {nodes}}}, lab")
    )
    before = [faults.ssh_connections(node) for node in NODES]
    said = Typist(tmp_path).json("download", "build", "start", f"--lane={lane}", "--yes")
    assert said.status == 2
    assert says in json.dumps(said.events)
    assert any(event["data"].get("lineno") for event in said.of("finding"))
    assert [faults.ssh_connections(node) for node in NODES] == before
