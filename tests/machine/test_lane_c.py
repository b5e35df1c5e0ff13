"""Lane C's whole life on four simulated Sparks, with the fork's own build and the stand-in for its engine: what each rank was given, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import recorded
from tests.machine.conftest import FOUR as NODES
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden"
MADE = "vllm-ds41f-kkref:19f2c20ed4d6-r6d"
JOB = ("download", "build", "start", "verify", "--lane=C", "--yes")
RING = (
    ({"1": ["rocep1s0f1"], "3": ["roceP2p1s0f1"]}),
    ({"2": ["rocep1s0f1"], "0": ["roceP2p1s0f1"]}),
    ({"3": ["rocep1s0f1"], "1": ["roceP2p1s0f1"]}),
    ({"0": ["rocep1s0f1"], "2": ["roceP2p1s0f1"]}),
)
"""A ring of one stripe, since the lab's nodes have two HCAs."""


@pytest.fixture(scope="module")
def started(four_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The lane, downloaded, made, started and verified once for all tests that only look."""
    forget(four_lab)
    said = typist.ok(*JOB)
    results = [e["data"]["result"] for e in said.events if e["data"].get("result")]
    assert results == ["pass"] * 10  # eight requests, and the head's log after the start and after them
    assert said.of("recap")[0]["data"]["stand_in"] is True
    yield four_lab
    forget(four_lab)


def forget(lab: Lab) -> None:
    lab.forget(NODES)
    for node in NODES:
        lab.run(node, "docker", "image", "rm", "--force", MADE)


def ring(lab: Lab, folder: Path) -> Typist:
    """The same nodes with the cables of a ring."""
    text = (lab.folder / "stand-in" / "hosts.yml").read_text()
    lines = text.replace(
        "    stand_in: true\n", "    stand_in: true\n    lanes: {C: {profile: ring}}\n"
    ).splitlines()
    made = []
    for line in lines:
        made.append(line)
        if line.strip().startswith("link:"):
            made.append(
                f"          peer_hcas: {json.dumps(RING[len([x for x in made if 'peer_hcas' in x])])}"
            )
    folder.mkdir()
    (folder / "hosts.yml").write_text("\n".join(made) + "\n")
    return Typist(folder)


def test_all_four_ranks_were_given_what_the_golden_files_say(started: Lab) -> None:
    recorded.compare(GOLDEN / "lane-c", recorded.seen(started, NODES, "C"))


def test_what_must_be_equal_is_and_what_is_each_node_s_own_is_not(started: Lab) -> None:
    found = recorded.seen(started, NODES, "C")
    apart = ("--node-rank", "--headless")
    assert len({tuple(line for line in one["argv"] if line.split()[0] not in apart) for one in found}) == 1
    assert [one["argv"][-1] for one in found[1:]] == ["--headless"] * 3
    assert {one["environment"]["NCCL_IB_GID_INDEX"] for one in found} == {"3", "5"}
    for rank, one in enumerate(found):
        env = one["environment"]
        assert env["VLLM_HOST_IP"] == f"198.18.1.{rank + 1}"
        assert env["SPARKNET_ROCE_GID_INDEX"] == env["NCCL_IB_GID_INDEX"]
        assert env["NCCL_IB_HCA"] == "=rocep1s0f1,roceP2p1s0f1"
        assert one["ulimits"] == {"memlock": "-1:-1", "stack": "67108864:67108864"}
        assert one["docker"]["privileged"] is False


def test_the_image_came_from_the_fork_s_own_scripts_and_says_so_on_every_node(started: Lab) -> None:
    names = started.out("spark-1", "docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}").split()
    (ours,) = [name for name in names if name.startswith("sparkyard/c-vllm-sparknet:")]
    for node in NODES:
        told = started.out(node, "docker", "image", "inspect", "--format", "{{json .Config.Labels}}", ours)
        trees = {
            name: tree[:8] for name, tree in json.loads(told).items() if name.startswith("local.spark3.")
        }
        assert trees == {
            "local.spark3.vllm.tree": "a00a6b07",
            "local.spark3.b12x.tree": "1a647a31",
            "local.spark3.nccl.tree": "6af10aa7",
            "local.spark3.tilelang.tree": "1697ad52",
            "local.spark3.tile_kernels.tree": "64770881",
            "local.spark3.sparknet.tree": "bd4191b3",
        }


def test_the_workers_were_started_in_order_and_the_head_last(started: Lab) -> None:
    times = [
        started.out(node, "docker", "inspect", "--format", "{{.State.StartedAt}}", f"sparkyard-C-rank-{rank}")
        for rank, node in enumerate(NODES)
    ]
    assert times[1] < times[2] < times[3] < times[0]


def test_the_second_job_changes_nothing(started: Lab, typist: Typist) -> None:
    again = typist.ok("download", "build", "start", "--lane=C")
    assert again.changed() == dict.fromkeys(NODES, 0)
    assert typist.json("status").status == 0
    assert started.out("spark-1", "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") != ""


def test_a_worker_whose_image_says_another_tree_is_named(started: Lab, typist: Typist) -> None:
    """A copy that was built elsewhere under the same tag: the label tells, and it is shipped again."""
    names = started.out("spark-3", "docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}").split()
    (ours,) = [name for name in names if name.startswith("sparkyard/c-vllm-sparknet:")]
    other = "local.spark3.vllm.tree=20c7c7586ba62e237a4157fd741974ca5b7624be"
    line = f"printf 'FROM {ours}\\nLABEL {other}\\n' | docker build --tag {ours} -"
    started.run("spark-3", "sh", "-c", line, seconds=120)
    seen = typist.json("build", "--lane=C", "--check")
    assert seen.status == 6
    (wrong,) = [e for e in seen.of("step-would-change") if e["node"] == "spark-3"]
    assert "local.spark3.vllm.tree" in json.dumps(wrong)
    assert not [e for e in seen.of("step-would-change") if e["node"] in ("spark-2", "spark-4")]
    refused = typist.json("restart", "--lane=C", "--yes")
    assert refused.status == 1
    assert (
        f"label local.spark3.vllm.tree is '{other.partition('=')[2]}', expected 'a00a6b07"
        in refused.failures()
    )
    assert typist.ok("build", "--lane=C", "--yes").changed() == dict.fromkeys(NODES, 0) | {"spark-3": 1}


def test_a_kernel_without_kho_off_is_refused_with_words(started: Lab, typist: Typist) -> None:
    typist.ok("stop", "--lane=C")
    shown = started.folder / "nodes" / "spark-4" / "cmdline"
    before = shown.read_text()
    try:
        shown.write_text("BOOT_IMAGE=/boot/vmlinuz-7.0.0-1019-nvidia-64k root=UUID=x ro quiet\n")
        said = typist.json("start", "--lane=C")
    finally:
        shown.write_text(before)
    assert said.status == 1
    words = said.failures()
    assert "/proc/cmdline is BOOT_IMAGE=/boot/vmlinuz-7.0.0-1019-nvidia-64k root=UUID=x ro quiet" in words
    assert "sudo apt install nvidia-spark-grub-kho" in words
    assert {e["node"] for e in said.of("step-failed")} == {"spark-4"}
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""


def test_a_pool_that_holds_no_whole_conversation_is_told_with_its_own_status(
    started: Lab, typist: Typist
) -> None:
    said = typist.json("start", "--lane=C", "--set", "env.STAND_IN_KV_TOKENS=900000")
    try:
        assert said.status == 3, said.failures()
        words = said.failures()
        assert "a KV pool of 900000 tokens, and one conversation may have 1048576" in words
        assert "at r6d's 1,313.93 bytes a token it would be 6537589" in words
    finally:
        typist.ok("stop", "--lane=C")


def test_the_same_on_a_ring(started: Lab, tmp_path: Path) -> None:
    """Other words and variables, the same image and checkpoint."""
    typist = ring(started, tmp_path / "ring")
    typist.ok("start", "verify", "--lane=C", "--yes")
    found = recorded.seen(started, NODES, "C")
    recorded.compare(GOLDEN / "lane-c-ring", found)
    assert [json.loads(one["environment"]["SPARKNET_ROCE_PEER_HCAS"]) for one in found] == list(RING)
    assert {one["environment"]["NCCL_THREAD_THRESHOLDS"] for one in found} == {"-2 -2 -2 1 1 1"}
    assert "--kv-cache-memory-bytes 11274289152" in found[0]["argv"]
    stopped = typist.ok("stop", "--lane=C")
    assert stopped.changed() == dict.fromkeys(NODES, 1)
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""
