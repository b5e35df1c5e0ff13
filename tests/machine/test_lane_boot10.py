"""Lane boot10's whole life on four simulated Sparks, with stand-ins for its engine: patches, order, logs, Engram rows, what each rank was given."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.machine import recorded
from tests.machine.conftest import DATA, Lab
from tests.machine.conftest import FOUR as NODES
from tests.machine.typed import PROJECT, Said, Typist

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-boot10"
LANE = f"{DATA}/lanes/boot10"
NOTHING = dict.fromkeys(NODES, 0)
JOB = ("download", "build", "start", "verify", "--lane=boot10", "--yes")
SITE = "/usr/local/lib/python3.12/dist-packages/vllm/"
PATCHED = {
    "attention.py", "engram.py", "flashinfer_sparse.py", "model_state.py", "sparse_attn_indexer.py", "sparse_swa.py", "weight_utils.py",
}  # fmt: skip
ROWS = {
    "spark-1": ("[0, 156)", "[0, 834)"),
    "spark-2": ("[156, 460)", "[834, 1854)"),
    "spark-3": ("[460, 922)", "[1854, 3068)"),
    "spark-4": ("[922, 1552)", "[3068, 4488)"),
}
"""Of the lab's tiny tables (primes from 16 upward, 24 a layer, six of them a rank)."""


@pytest.fixture(scope="module")
def started(four_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The lane, downloaded, built, started and verified once for all tests that only look."""
    four_lab.forget(NODES, f"{DATA}/lanes")
    assert set(results(typist.ok(*JOB))) == {"pass"}
    yield four_lab
    four_lab.forget(NODES, f"{DATA}/lanes")


def results(said: Said) -> list[str]:
    return [event["data"]["result"] for event in said.events if event["data"].get("result")]


def ranks(lab: Lab) -> list[dict[str, Any]]:
    return recorded.seen(lab, NODES, "boot10")


def log(lab: Lab, node: str) -> str:
    told = lab.run(node, "docker", "logs", f"sparkyard-boot10-rank-{NODES.index(node)}")
    return told.stdout + told.stderr


def age_of_the_dropped_caches(lab: Lab, seconds: int) -> None:
    """As if the caches had been dropped so long ago."""
    for node in NODES:
        (path,) = (lab.own(node) / LANE / "jobs").glob("drop-caches.json")
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_all_ranks_were_given_what_the_golden_files_say(started: Lab) -> None:
    recorded.compare(GOLDEN, ranks(started))


def test_the_ranks_started_in_the_published_order(started: Lab) -> None:
    began = {
        node: started.out(
            node, "docker", "inspect", "--format", "{{.State.StartedAt}}", f"sparkyard-boot10-rank-{rank}"
        )
        for rank, node in enumerate(NODES)
    }
    assert sorted(began, key=began.__getitem__) == ["spark-4", "spark-3", "spark-2", "spark-1"]


def test_seven_texts_are_mounted_read_only_and_their_manifest_lies_beside_them(started: Lab) -> None:
    for node, rank in zip(NODES, ranks(started), strict=True):
        mounted = {target: where for target, where in rank["mounts"].items() if target.startswith(SITE)}
        assert {target.rpartition("/")[2] for target in mounted} == PATCHED
        assert [where for where in mounted.values() if where.endswith("(can be written)")] == []
        manifest = (started.own(node) / LANE / "patches" / "mounts.txt").read_text()
        targets = dict(line.split() for line in manifest.splitlines())
        assert {SITE + target for target in targets.values()} == mounted.keys()


def test_every_rank_reads_its_own_rows_and_the_whole_checkpoint_is_on_every_node(started: Lab) -> None:
    for node, (first, second) in ROWS.items():
        told = log(started, node)
        assert f"Engram DISK mode: layer 1 rows {first} read from /models/DeepSeek-V4.1-Flash" in told
        assert f"Engram DISK mode: layer 14 rows {second} read from /models/DeepSeek-V4.1-Flash" in told


def test_the_second_job_changes_nothing(started: Lab, typist: Typist) -> None:
    assert typist.ok("download", "build", "start", "--lane=boot10").changed() == NOTHING
    assert typist.json("download", "build", "start", "--lane=boot10", "--check").status == 0
    assert typist.json("status").status == 0


def test_the_old_ranks_are_all_gone_before_the_first_worker_starts(started: Lab, typist: Typist) -> None:
    """Workers that meet an old head join it, and the new one then waits for ever."""
    since = str(int(time.time()))
    typist.ok("start", "--lane=boot10", "--yes", "--set", "env.STAND_IN_OTHER=1")
    told = [event for node in NODES for event in events(started, node, since)]
    ended = {name: at for at, action, name in told if action == "die"}
    began = {name: at for at, action, name in told if action == "start"}
    assert ended.keys() == began.keys() == {f"sparkyard-boot10-rank-{rank}" for rank in range(4)}
    assert max(ended.values()) < min(began.values())
    assert sorted(began, key=began.__getitem__) == [f"sparkyard-boot10-rank-{rank}" for rank in (3, 2, 1, 0)]


def events(lab: Lab, node: str, since: str) -> list[tuple[int, str, str]]:
    """(nanoseconds, action, container) of every rank that ended or began on a node; jobs are left out."""
    words = ("docker", "events", "--since", since, "--until", str(int(time.time()) + 1))
    chosen = ("--filter", "event=die", "--filter", "event=start", "--filter", "type=container")
    text = lab.out(node, *words, *chosen, "--format", "{{.TimeNano}} {{.Action}} {{.Actor.Attributes.name}}")
    rows = [line.split() for line in text.splitlines()]
    return [(int(at), action, name) for at, action, name in rows if "-rank-" in name]


def test_a_pool_that_holds_no_whole_request_is_told_and_the_lane_goes_on(
    started: Lab, typist: Typist
) -> None:
    typist.ok("stop", "--lane=boot10")
    said = typist.json("start", "--lane=boot10", "--yes", "--set", "env.STAND_IN_KV_TOKENS=299999")
    assert said.status == 3
    assert "the boot granted 299999 tokens, less than the context, 300000" in said.failures()
    assert started.out("spark-1", "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") != ""
    typist.ok("stop", "--lane=boot10")


@pytest.mark.long
def test_the_published_profile_copies_the_rows_of_the_workers_and_reads_them_there(
    started: Lab, typist: Typist
) -> None:
    typist.json("stop", "--lane=boot10")
    line = ("build", "start", "verify", "--lane=boot10", "--yes", "--set", "profile=published")
    assert set(results(typist.ok(*line))) == {"pass"}
    for node in NODES[1:]:
        (folder,) = (started.own(node) / LANE / "engram").iterdir()
        first, second = ROWS[node]
        layers = json.loads((folder / "engram-local.json").read_text())["layers"]
        assert {layer: f"[{rows[0]}, {rows[1]})" for layer, rows in layers.items()} == {
            "1": first,
            "14": second,
        }
        assert f"Engram layer 1 rows {first} read from node-local /engram-local" in log(started, node)
    assert not (started.own("spark-1") / LANE / "engram").exists()
    assert "read from /models" in log(started, "spark-1")
    again = (*line[:2], *line[3:])
    assert typist.ok(*again).changed() == NOTHING
    age_of_the_dropped_caches(started, 3600)
    assert typist.ok(*again).changed() == NOTHING  # what serves needs it no more
    typist.ok("stop", "--lane=boot10")
    began = typist.ok(*again)
    assert "job:drop-caches@spark-1" in {event["step"] for event in began.of("step-changed")}
    assert typist.ok(*again).changed() == NOTHING


def test_stop_ends_all_ranks(started: Lab, typist: Typist) -> None:
    typist.json("stop", "--lane=boot10")
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""
