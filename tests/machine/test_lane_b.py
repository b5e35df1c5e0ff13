"""Lane B's whole life on four simulated Sparks, with stand-ins for its engine and packer: order, packs of each rank, what every rank was given."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkyard import lab as simulated
from sparkyard.stand_in import COMMITS
from tests.machine import recorded
from tests.machine.conftest import DATA, Lab
from tests.machine.conftest import FOUR as NODES
from tests.machine.typed import LIMIT, PROJECT, Typist, until

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-b"
ENGRAM = f"{DATA}/lanes/B/engram"
JOB = ("download", "build", "start", "verify", "--lane=B", "--yes")
HEIGHTS = {1: 1552, 14: 4488}
"""Rows of the tiny repository's Engram tables (its config.json)."""


@pytest.fixture(scope="module")
def started(four_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The lane, downloaded, built, packed, started and verified once for all tests that only look."""
    four_lab.forget(NODES)
    said = typist.ok(*JOB)
    results = [(e["message"], e["data"]["result"]) for e in said.events if e["data"].get("result")]
    assert {result for _, result in results} == {"pass"}, results
    assert len(results) >= 6
    assert said.of("recap")[0]["data"]["stand_in"] is True
    yield four_lab
    four_lab.forget(NODES)


@pytest.fixture
def clean(four_lab: Lab) -> Iterator[Lab]:
    """Nodes without anything of sparkyard, before and after."""
    simulated.up(4, print)
    four_lab.forget(NODES)
    yield four_lab
    four_lab.forget(NODES)


def packs(lab: Lab, node: str) -> dict[str, Path]:
    """The packed files of a node."""
    return {path.name: path for path in (lab.own(node) / ENGRAM).rglob("*.bin")}


def record(lab: Lab, node: str, rank: int) -> dict[str, Any]:
    return recorded.record(lab, node, "B", rank)


# the whole life


def test_all_ranks_were_given_what_the_golden_files_say(started: Lab) -> None:
    recorded.compare(GOLDEN, recorded.seen(started, NODES, "B"))


def test_workers_were_started_before_the_head(started: Lab) -> None:
    began = [
        started.out(node, "docker", "inspect", "--format", "{{.State.StartedAt}}", f"sparkyard-B-rank-{rank}")
        for rank, node in enumerate(NODES)
    ]
    assert began[0] == max(began)


def test_each_rank_packed_its_own_rows_and_no_other_s(started: Lab) -> None:
    for rank, node in enumerate(NODES):
        found = packs(started, node)
        assert found.keys() == {f"engram-l{layer}-r{rank}of4.bin" for layer in HEIGHTS}
        for layer, height in HEIGHTS.items():
            path = found[f"engram-l{layer}-r{rank}of4.bin"]
            first, behind = height * rank // 4, height * (rank + 1) // 4
            with path.open("rb") as file:
                _, *head = struct.unpack("<6Q", file.read(48))
            assert head == [layer, first, behind, height, 264]
            assert path.stat().st_size == 4096 + 264 * (behind - first)


def test_packs_are_sealed_with_what_they_were_made_of(started: Lab) -> None:
    seals = [json.loads((started.own(node) / DATA / "lanes/B/jobs/pack.json").read_text()) for node in NODES]
    assert len({json.dumps(seal["hash"]) for seal in seals}) == 1
    said = [rank["argv"] for rank in seals[0]["ranks"]]
    assert [words[words.index("--rank") + 1] for words in said] == ["0", "1", "2", "3"]


def test_links_and_gids_are_each_node_s_own(started: Lab) -> None:
    seen = [record(started, node, rank)["environment"] for rank, node in enumerate(NODES)]
    assert len({one["HOST_IP"] for one in seen}) == 4
    assert all(one["NCCL_IB_GID_INDEX"].isdecimal() for one in seen)
    assert all(len(one["NCCL_IB_HCA"].split(",")) == 2 for one in seen)
    assert {one["DIST_INIT_ADDR"] for one in seen} == {f"{seen[0]['HOST_IP']}:20000"}


def test_the_second_job_changes_nothing(started: Lab, typist: Typist) -> None:
    again = typist.ok("download", "build", "start", "--lane=B")
    assert again.changed() == dict.fromkeys(NODES, 0)
    assert typist.json("download", "build", "start", "--lane=B", "--check").status == 0
    assert typist.json("status").status == 0


def test_settings_of_serving_leave_the_packs_alone(started: Lab, typist: Typist) -> None:
    before = {path: path.stat().st_mtime_ns for node in NODES for path in packs(started, node).values()}
    said = typist.json("build", "--lane=B", "--set", "chunk=4096", "--check")
    assert said.status == 0, said.failures()
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_pool_smaller_than_the_pin_is_told_and_the_lane_serves(started: Lab, typist: Typist) -> None:
    small = ("start", "--lane=B", "--yes", "--set", "env.STAND_IN_KV_TOKENS=4850000")
    said = typist.json(*small)
    assert said.status == 3, said.failures()
    assert "this boot grants 4850000 KV tokens, and kv_tokens pins 6500000" in said.failures()
    assert all(started.out(node, "docker", "ps", "--quiet") for node in NODES)
    typist.ok(*small, "--set", "kv_tokens=4800000")


def test_stop_ends_all_ranks_and_keeps_the_packs(started: Lab, typist: Typist) -> None:
    assert typist.ok("stop", "--lane=B").changed() == dict.fromkeys(NODES, 1)
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""
        assert len(packs(started, node)) == 2
    typist.ok("start", "--lane=B")


# what goes wrong


@pytest.mark.long
def test_a_worker_that_dies_while_booting_is_told_with_its_last_words(clean: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=B", "--yes")
    fault = "env.STAND_IN_2=--die-after 1 --boot-seconds 60 --last-words 'CUDA error: out of memory'"
    said = typist.json("start", "--lane=B", "--set", fault)
    assert said.status == 1
    assert "CUDA error: out of memory" in said.failures()
    assert "spark-3" in said.failures()


@pytest.mark.long
def test_a_pack_that_was_interrupted_is_made_anew_by_the_next_build(clean: Lab, typist: Typist) -> None:
    typist.ok("download", "--lane=B", "--yes")
    slow = clean.own("spark-3") / ENGRAM / f"1017-{COMMITS['deepseek-ai/DeepSeek-V4.1-Flash-1017']}"
    slow.mkdir(parents=True)
    (slow / "stand-in-seconds").write_text("3000")
    running = typist.start("build", "--lane=B", "--yes", start_new_session=True)
    try:
        until(lambda: any(slow.glob("*.partial")) or running.poll() is not None, LIMIT)
        assert running.poll() is None, running.communicate()
    finally:
        running.kill()
        running.communicate()
    assert not (clean.own("spark-1") / DATA / "lanes/B/jobs/pack.json").exists()
    (slow / "stand-in-seconds").unlink()
    clean.kill("spark-3", "label=sparkyard.job")
    typist.ok("build", "--lane=B", "--yes")
    assert not list(slow.glob("*.partial"))
    for rank, node in enumerate(NODES):
        assert packs(clean, node).keys() == {f"engram-l{layer}-r{rank}of4.bin" for layer in HEIGHTS}
        assert (clean.own(node) / DATA / "lanes/B/jobs/pack.json").is_file()


@pytest.mark.long
def test_another_rank_s_pack_is_no_pack(clean: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=B", "--yes")
    mine = packs(clean, "spark-2")["engram-l1-r1of4.bin"]
    other = packs(clean, "spark-1")["engram-l1-r0of4.bin"]
    shutil.copyfile(other, mine)
    said = typist.json("start", "--lane=B")
    assert said.status == 1, said.failures()
    assert "engram-l1-r1of4.bin" in said.failures()
    typist.ok("build", "start", "--lane=B", "--yes")


@pytest.mark.long
def test_weights_on_the_head_alone_are_looked_for_on_every_worker(clean: Lab, typist: Typist) -> None:
    shared = ("--lane=B", "--yes", "--set", "weights_from=nfs", "--set", "nfs_path=/mnt")
    typist.ok("download", *shared)
    for node in NODES[1:]:
        assert not list((clean.own(node) / DATA / "models").glob("*/*/config.json"))
    said = typist.json("start", *shared)
    assert said.status == 1, said.failures()
    assert said.failures().count("/mnt/config.json is not there") == 3
    (checkpoint,) = (clean.own("spark-1") / DATA / "models").glob("deepseek-ai--*/*/config.json")
    for node in NODES[1:]:  # as a mount of the head's share is for it
        shutil.copytree(checkpoint.parent, clean.own(node) / "share")
        clean.run(node, "mount", "--bind", f"{clean.folder}/self/share", "/mnt")
    try:
        typist.ok("build", "start", *shared)
        seen = [one["mounts"]["/models/DeepSeek-V4.1-Flash"] for one in recorded.seen(clean, NODES, "B")]
        assert [source.endswith("/share") for source in seen] == [False, True, True, True]
    finally:
        clean.forget(NODES)
        for node in NODES[1:]:
            clean.run(node, "umount", "/mnt", check=False)
            shutil.rmtree(clean.own(node) / "share")
