"""Everything that is wrong with a line, its inventory, its settings and what its lane would be, is told at once and before any node is asked."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.unit import offline
from tests.unit.test_profiles import CHOSEN, Place


def typed(place: Place, *line: str) -> subprocess.CompletedProcess[str]:
    """A start on a machine where no program of a node could be run."""
    where = (f"--inventory={place.folder / 'inventory'}", f"--recipes={place.folder / 'recipes'}")
    return offline.typed("start", "--lane=T", *where, *line, XDG_STATE_HOME=str(place.folder / "state"))


def four_ranks(place: Place) -> None:
    """The tiny recipe for four ranks, of which one would have another word; its API and its agent have one port."""
    data = place.data
    data["nodes"] = {"at_least": 4, "at_most": 4}
    data["services"]["engine"]["differ"] = [
        "NCCL_IB_HCA",
        "GLOO_SOCKET_IFNAME",
        "MASTER",
        "RANK",
        "--headless",
    ]
    data["services"]["engine"]["words"].append("--chunk={{ 4096 if rank == 2 else 8192 }}")
    data["settings"]["ep"] = {"default": 2, "choices": [1, 2], "about": "experts", "source": CHOSEN}
    data["rules"].append({"must": "lane.ep == 2", "message": "ep 1 needs its flag", "source": "test"})
    data["ports"]["agent"] = "{{ lane.port }}"
    place.write()


def test_all_of_it_is_told_at_once(tmp_path):
    place = Place(tmp_path)
    four_ranks(place)
    settings = 'env: {NCCL_IB_GID_INDEX: "3", NCCL_IB_HCA: mlx5_0, NCCL_DEBUG: ""}, streams: 9, profile: fast, context: x'
    place.inventory(settings)
    done = typed(place, "--set", "ep=1")
    assert (done.returncode, done.stdout) == (2, "")
    for words in (
        "lane T needs 4 nodes, the inventory has 1",
        "hosts.yml:9: lanes.T.context: a whole number is expected",
        "hosts.yml:9: lanes.T.env.NCCL_DEBUG: empty is not unset for its reader",
        "hosts.yml:9: lanes.T.env.NCCL_IB_GID_INDEX: GID indexes are discovered",
        "hosts.yml:9: lanes.T.env.NCCL_IB_HCA: HCAs are each node's own",
        'hosts.yml:9: lanes.T.profile: "fast" is not a known profile',
        "ports.agent: 8000 is the port of API too",
        "ep 1 needs its flag",
        "context 4096 is too small for 9 streams",
        "services.engine.words.--chunk: must be the same on all ranks: 8192 on ranks 0, 1, 3",
    ):
        assert words in done.stderr, done.stderr
    assert done.stderr.startswith("error: 10 faults in the configuration; nothing was run")


def test_a_sound_inventory_is_refused_for_its_lane_alone(tmp_path):
    place = Place(tmp_path)
    place.write()
    place.inventory("streams: 9")
    done = typed(place)
    assert done.returncode == 2
    assert done.stderr.startswith("error: 1 fault in the configuration; nothing was run")
    assert "context 4096 is too small for 9 streams" in done.stderr


@pytest.mark.parametrize(
    ("lane", "other", "rule"),
    [
        ("A4", "master_port", "set api_key to 16 characters or more"),
        ("B", "dist_port", "set api_key to 16 characters or more"),
        ("C", "master_port", "set api_key to 16 characters or more"),
        ("D", "agent_port", "Flare has no known option for a key"),
        ("boot10", "master_port", "set api_key to 16 characters or more"),
    ],
)
def test_every_lane_of_four_tells_all_its_faults_at_once(tmp_path, lane, other, rule):
    """Three nodes, a GID and HCAs for all nodes, an empty NCCL variable, one port for two things, a rule: one message, no connection."""
    text = (offline.ROOT / "inventory/four-spark/hosts.yml").read_text()
    three = re.sub(r"        spark-4:\n(?:          .*\n)+", "", text)
    env = 'env: {NCCL_IB_GID_INDEX: "3", NCCL_IB_HCA: mlx5_0, NCCL_DEBUG: ""}'
    settings = f"          {lane}: {{{env}, port: 28999, {other}: 28999, expose: true}}\n"
    (tmp_path / "hosts.yml").write_text(three.replace("        lanes:\n", f"        lanes:\n{settings}"))
    done = offline.typed(
        "start", f"--lane={lane}", f"--inventory={tmp_path}", XDG_STATE_HOME=str(tmp_path / "state")
    )
    assert (done.returncode, done.stdout) == (2, "")
    for words in (
        "needs 4 nodes, the inventory has 3",
        f"lanes.{lane}.env.NCCL_IB_GID_INDEX: GID indexes are discovered",
        f"lanes.{lane}.env.NCCL_IB_HCA: HCAs are each node's own",
        f"lanes.{lane}.env.NCCL_DEBUG: empty is not unset",
        rule,
    ):
        assert words in done.stderr, done.stderr
    twins = rf"hosts\.yml:\d+: lanes\.{lane}\.{other}: 28999, the port of \w+, is the port of API too"
    assert re.search(twins, done.stderr), done.stderr
    assert done.stderr.count("28999") == 1


def test_rules_of_an_engine_are_told_at_once_and_before_any_connection(tmp_path):
    """Lane B's: the allocator, chunk, EP, the pin below a context and tables of one rank."""
    broken = (
        "env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "env.DSV41_INDEXER_CHUNKED=0",
        "env.DSV41_MOE_B12X_NEXT=0",
        "env.DSPARK_SPS_TABLE=/state/dspark_sps.json",
        "kv_tokens=1000000",
    )
    sets = [word for each in broken for word in ("--set", each)]
    done = offline.typed(
        "start",
        "--lane=B",
        f"--inventory={offline.ROOT / 'inventory/four-spark'}",
        *sets,
        XDG_STATE_HOME=str(tmp_path),
    )
    assert (done.returncode, done.stdout) == (2, "")
    for words in (
        "logits are NaN",
        "chunk is 8192, and above 1024 a long prompt needs the indexer backport",
        "ep 1 runs on the b12x_next kernels alone",
        "leave DSPARK_SPS_TABLE and DSPARK_STS_TABLE out",
        "kv_tokens is 1000000, less than one context of 1048576 tokens",
    ):
        assert words in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("inventory", "lane", "seen", "why"),
    [
        ("two-spark", "B", "missing-3", "inventory/two-spark: lane B needs 4 nodes, the inventory has 2"),
        ("four-spark", "A4", "sparkyard-A4-follower-3", "put the cable into the same port as on spark-1"),
        ("four-spark-ring", "D", "spark-4", "(on spark-1, spark-2, spark-3, spark-4)"),
    ],
)
def test_a_lane_that_an_inventory_does_not_fit_is_shown_with_the_reason(inventory, lane, seen, why):
    done = offline.typed("show", f"--lane={lane}", f"--inventory={inventory}", COLUMNS="1000")
    assert (done.returncode, done.stderr) == (2, "")
    assert seen in done.stdout
    told, reasons = done.stdout.split("why this inventory does not fit the lane\n")
    assert "not fit" in told
    assert len(reasons.splitlines()) == 1, reasons
    assert why in reasons


def test_a_wrong_setting_shows_no_other_lane_than_the_one_asked_for():
    done = offline.typed("show", "--lane=B", "--inventory=two-spark", "--set", "port=x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "port: a whole number is expected" in done.stderr
