"""Lane A4's whole life on four simulated Sparks, with stand-ins for its native engine: jobs, order, what each rank was given, the key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.machine import recorded
from tests.machine.conftest import DATA, Lab
from tests.machine.conftest import FOUR as NODES
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-a4"
CONTAINERS = {
    "spark-1": "sparkyard-A4-server-0",
    "spark-2": "sparkyard-A4-follower-1",
    "spark-3": "sparkyard-A4-follower-2",
    "spark-4": "sparkyard-A4-follower-3",
}
NOTHING = dict.fromkeys(NODES, 0)
JOB = ("download", "build", "start", "verify", "--lane=A4", "--yes")
KEY = "sk-a-key-of-the-lab"
WEIGHTS = {
    "spark-1": ("rank0of4-8d066150c78d6fba6392.bin", 56_211_098_348),
    "spark-2": ("rank1of4-039e14af2ce96ac16ef7.bin", 56_211_618_050),
    "spark-3": ("rank2of4-502b7baff41cb4172b63.bin", 56_241_541_490),
    "spark-4": ("rank3of4-2891eb3d6edaf5929c62.bin", 56_241_783_503),
}


@pytest.fixture(scope="module")
def started(four_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The lane, downloaded, built, started and verified once for all tests that only look."""
    four_lab.forget(NODES, f"{DATA}/lanes")
    said = typist.ok(*JOB)
    assert [e["data"]["result"] for e in said.events if e["data"].get("result")] == ["pass"] * 6
    yield four_lab
    four_lab.forget(NODES, f"{DATA}/lanes")


def seal(lab: Lab, node: str, job: str) -> dict[str, Any]:
    (path,) = (lab.own(node) / DATA / "lanes" / "A4" / "jobs").glob(f"{job}.json")
    told: dict[str, Any] = json.loads(path.read_text())
    return told


def test_all_ranks_were_given_what_the_golden_files_say(started: Lab) -> None:
    ranks = [
        recorded.normal(recorded.record(started, node, "A4", rank), recorded.asked(started, node, name))
        for rank, (node, name) in enumerate(CONTAINERS.items())
    ]
    recorded.compare(GOLDEN, ranks)


def test_the_ranks_started_in_the_published_order(started: Lab) -> None:
    began = {
        node: started.out(node, "docker", "inspect", "--format", "{{.State.StartedAt}}", name)
        for node, name in CONTAINERS.items()
    }
    assert sorted(began, key=began.__getitem__) == ["spark-4", "spark-3", "spark-2", "spark-1"]


def test_every_node_has_its_own_inputs_and_they_are_sealed(started: Lab) -> None:
    for node, (name, size) in WEIGHTS.items():
        (folder,) = (started.own(node) / DATA / "lanes" / "A4" / "inputs").iterdir()
        (weights,) = (folder / "rank-cache").glob("*.bin")
        assert (weights.name, weights.stat().st_size) == (name, size)
        assert (folder / "dsv41_token_map.json").stat().st_size == 874_691
        told = seal(started, node, "inputs")
        assert [rank["argv"][-5:] for rank in told["ranks"]] == [
            ["/engine/node_inputs.sh", "/model", "/cache", str(rank), "4"] for rank in range(4)
        ]


def test_the_kit_was_compared_on_every_node(started: Lab) -> None:
    for node in NODES:
        assert seal(started, node, "kit")["job"] == "kit"


def test_the_second_job_changes_nothing(started: Lab, typist: Typist) -> None:
    assert typist.ok("download", "build", "start", "--lane=A4").changed() == NOTHING
    assert typist.json("download", "build", "start", "--lane=A4", "--check").status == 0
    assert typist.json("status").status == 0


@pytest.mark.long
def test_inputs_that_are_gone_are_made_again_while_nothing_else_is(started: Lab, typist: Typist) -> None:
    typist.ok("stop", "--lane=A4")
    (folder,) = (started.own("spark-3") / DATA / "lanes" / "A4" / "inputs").iterdir()
    (weights,) = (folder / "rank-cache").glob("*.bin")
    weights.unlink()
    said = typist.json("start", "--lane=A4")
    assert said.status == 1
    assert "invoke build --lane=A4" in said.failures()
    built = typist.ok("build", "--lane=A4", "--yes")
    assert {re.split("[-@]", e["step"].split(":")[1])[0] for e in built.of("step-changed")} == {"inputs"}
    assert weights.stat().st_size == WEIGHTS["spark-3"][1]
    assert typist.ok("start", "--lane=A4").nodes.keys() == set(NODES)


def test_a_key_is_in_a_file_and_nowhere_else(started: Lab, typist: Typist) -> None:
    typist.ok("stop", "--lane=A4")
    said = typist.ok("start", "verify", "--lane=A4", "--yes", "--set", f"api_key={KEY}")
    assert [e["data"]["result"] for e in said.events if e["data"].get("result")] == ["pass"] * 6
    file = started.own("spark-1") / DATA / "lanes" / "A4" / "api-key"
    assert (file.read_text(), file.stat().st_mode & 0o777) == (f"{KEY}\n", 0o600)
    head = CONTAINERS["spark-1"]
    for words in (
        ("docker", "inspect", head),
        ("docker", "logs", head),
        ("sh", "-c", "cat /proc/[0-9]*/cmdline"),
    ):
        told = started.run("spark-1", *words, check=False)
        assert KEY not in told.stdout + told.stderr
    runs = started.own("spark-1") / "home/.local/state/sparkyard/runs"
    assert [path for path in runs.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    refused = started.run(
        "spark-1", "curl", "--silent", "http://127.0.0.1:18091/v1/models", check=False
    ).stdout
    assert "invalid API key" in refused


def test_stop_ends_all_ranks(started: Lab, typist: Typist) -> None:
    typist.ok("start", "--lane=A4", "--yes")
    typist.ok("stop", "--lane=A4")
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""
