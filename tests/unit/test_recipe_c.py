"""Lane C as it is rendered: r6d's values, what is computed from them, both fabrics, what is equal on all ranks, rules."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sparkyard.conditions import true
from sparkyard.errors import ConfigError
from sparkyard.load import find_recipes, load_all
from sparkyard.model import Lane
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit.words import flag

ROOT = Path(__file__).resolve().parents[2]
RING, SWITCH = "four-spark-ring", "four-spark"
KEY = "sk-sixteen-or-more"
SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 88, 96]
RING_ONLY = {
    "NCCL_ALGO": "Ring", "NCCL_COLLNET_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0", "NCCL_GIN_ENABLE": "0",
    "NCCL_IB_SUBNET_PREFIX_LEN": "24", "NCCL_MIN_NCHANNELS": "4", "NCCL_MIN_TRAFFIC_PER_CHANNEL": "512", "NCCL_MNNVL_ENABLE": "0",
    "NCCL_PAT_ENABLE": "0", "NCCL_RMA_DISABLE": "1", "NCCL_RUNTIME_CONNECT": "1", "NCCL_SWITCHLESS_BIDIRECTIONAL": "2",
    "NCCL_THREAD_THRESHOLDS": "-2 -2 -2 1 1 1", "SPARKNET_ROCE_ALLREDUCE_DISPATCH_MAX_BYTES": "2097152",
}  # fmt: skip
"""What r6d sets and sparknet's switched profile leaves out."""
OTHERWISE = {
    "NCCL_BUFFSIZE": ("4194304", "1048576"),
    "NCCL_CUMEM_ENABLE": ("1", "0"),
    "NCCL_MAX_NCHANNELS": ("4", "8"),
    "SPARKNET_ROCE_ALLGATHER_MAX_BYTES": ("2097152", "4194304"),
    "SPARKNET_ROCE_TOPOLOGY": ("ring4", "direct"),
}
"""What both set: on a ring, and behind a switch."""


def lane(*sets: str, inventory: str | Path = SWITCH) -> Lane:
    return load_all(ROOT / "inventory" / inventory, find_recipes(ROOT, []), "C", environ={}, sets=list(sets))


def rendered(*sets: str, inventory: str | Path = SWITCH) -> RenderedLane:
    return render_lane(lane(*sets, inventory=inventory), {})


def parts(container: Any) -> tuple[dict[str, str], list[str], list[str], list[str]]:
    """(environment, mounts, options, words behind the image) of a container's ``docker run``."""
    words = list(container.words)
    before, behind = words[: words.index(container.image)], words[words.index(container.image) + 1 :]
    env = dict(value.split("=", 1) for word, value in pairwise(before) if word == "--env")
    mounts = [value for word, value in pairwise(before) if word == "--mount"]
    return env, mounts, before[before.index("--network=host") : before.index("--env")], behind


def ranks(
    *sets: str, inventory: str | Path = SWITCH
) -> list[tuple[dict[str, str], list[str], list[str], list[str]]]:
    return [parts(container) for container in rendered(*sets, inventory=inventory).containers]


# published


def test_the_post_s_shape_is_the_default() -> None:
    words = ranks()[0][3]
    assert words[0] == "/models"
    assert flag(words, "--max-model-len") == "1048576"
    assert flag(words, "--max-num-seqs") == "16"
    assert flag(words, "--max-num-batched-tokens") == "8192"
    assert flag(words, "--kv-cache-memory-bytes") == "8589934592"
    assert list(lane().checkpoints) == ["weights-1017"]


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_r6d_s_words_but_for_the_address_of_the_api(rank: int) -> None:
    """Each published line of words, read here by itself and compared word by word with what is rendered."""
    published = [
        line for line in lane("profile=published", inventory=RING).recipe.published if line.part == "words"
    ]
    assert [line.rank for line in published] == [0, 2]
    theirs = shlex.split(published[1 if rank else 0].text.replace("{{ head.link.address }}", "192.0.2.1"))
    ours = ranks("profile=published", inventory=RING)[rank][3]
    theirs[theirs.index("0.0.0.0")] = "127.0.0.1"
    if rank:
        theirs[theirs.index("--node-rank") + 1] = str(rank)
    assert ours == theirs


def test_the_four_published_settings_that_are_json_are_one_word_each() -> None:
    words = ranks("profile=published", inventory=RING)[0][3]
    assert json.loads(flag(words, "--engram-config") or "") == {
        "table_memory": "disk",
        "disk_resident_scales": False,
        "projection_tp": True,
    }
    assert json.loads(flag(words, "--speculative-config") or "") == {
        "method": "dspark",
        "num_speculative_tokens": 5,
        "draft_tensor_parallel_size": 4,
        "attention_backend": "TILELANG",
        "draft_sample_method": "greedy",
        "rejection_sample_method": "block",
        "enable_adaptive_verification": True,
        "adaptive_verification_cost_scale": 2.0,
    }
    assert json.loads(flag(words, "--compilation-config") or "") == {
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "custom_ops": ["all"],
        "cudagraph_capture_sizes": SIZES,
    }
    assert json.loads(flag(words, "--limit-mm-per-prompt") or "") == {"image": 4}


def test_six_source_trees_are_asked_of_the_image() -> None:
    image = lane().recipe.image
    assert image.made is not None
    assert image.made.git.commit == "653e0654496eaef958a7dd0c89e47fc8fc3fb704"
    assert {name.split(".")[2]: tree[:8] for name, tree in image.made.labels.items()} == {
        "vllm": "a00a6b07", "b12x": "1a647a31", "nccl": "6af10aa7", "tilelang": "1697ad52", "tile_kernels": "64770881", "sparknet": "bd4191b3",
    }  # fmt: skip
    assert image.made.memory == 64 << 30


# computed


@pytest.mark.parametrize(
    ("sets", "most", "threshold", "sizes"),
    [
        ([], 96, 8096, SIZES),
        (["slots=8"], 48, 8144, SIZES[:14]),
        (["slots=1"], 6, 8186, [1, 2, 3, 4, 6]),
        (["slots=2", "drafts=3"], 8, 8184, [1, 2, 3, 4, 6, 8]),
        (["slots=5", "drafts=5"], 30, 8162, [*SIZES[:11], 30]),
        (["slots=7", "drafts=4", "chunk=4096"], 35, 4061, [*SIZES[:12], 35]),
    ],
)
def test_capture_and_threshold_follow_slots_and_drafts(
    sets: list[str], most: int, threshold: int, sizes: list[int]
) -> None:
    for _, _, _, words in ranks(*sets):
        assert flag(words, "--max-cudagraph-capture-size") == str(most)
        assert flag(words, "--long-prefill-token-threshold") == str(threshold)
        assert json.loads(flag(words, "--compilation-config") or "")["cudagraph_capture_sizes"] == sizes


# fabrics


def test_a_ring_has_what_r6d_sets_and_a_switch_what_its_profile_sets() -> None:
    ring, switch = ranks("profile=ring", inventory=RING)[0][0], ranks("profile=switched")[0][0]
    assert {name: ring[name] for name in RING_ONLY} == RING_ONLY
    assert not RING_ONLY.keys() & switch.keys()
    for name, values in OTHERWISE.items():
        assert (ring[name], switch[name]) == values
    own = {"SPARKNET_ROCE_HCA", "SPARKNET_ROCE_PEER_HCAS"}
    assert (ring.keys() ^ switch.keys()) - RING_ONLY.keys() == own
    site = {name for name in ring if name.endswith("_IFNAME")} | {
        "VLLM_HOST_IP",
        "NCCL_IB_HCA",
        "SPARK3_DSPARK_COST_DIR",
    }
    same = ring.keys() & switch.keys() - OTHERWISE.keys() - site
    assert {name: ring[name] for name in same} == {name: switch[name] for name in same}


def test_the_cables_of_a_ring_and_the_rails_of_a_switch() -> None:
    found = ranks("profile=ring", inventory=RING)
    assert found[2][0]["SPARKNET_ROCE_PEER_HCAS"] == (
        '{"1":["rocep1s0f1","roceP2p1s0f1"],"3":["rocep1s0f0","roceP2p1s0f0"]}'
    )
    assert {env["NCCL_IB_HCA"] for env, *_ in found} == {"=roceP2p1s0f0,roceP2p1s0f1,rocep1s0f0,rocep1s0f1"}
    behind = ranks()
    assert behind[0][0]["NCCL_IB_HCA"] == "=rocep1s0f1,roceP2p1s0f1"
    assert behind[3][0]["NCCL_IB_HCA"] == "=rocep1s0f0,roceP2p1s0f0"
    assert [env["SPARKNET_ROCE_HCA"] for env, *_ in behind] == [env["NCCL_IB_HCA"][1:] for env, *_ in behind]


def test_every_gid_is_discovered_and_each_node_has_its_own_address() -> None:
    for rank, (env, _, _, words) in enumerate(ranks()):
        assert env["NCCL_IB_GID_INDEX"] == env["SPARKNET_ROCE_GID_INDEX"] == "<discovered: gid>"
        assert env["VLLM_HOST_IP"] == f"10.0.0.{rank + 1}"
        assert flag(words, "--master-addr") == "10.0.0.1"
        assert flag(words, "--node-rank") == str(rank)
        assert ("--headless" in words) == (rank > 0)


def test_curves_of_one_fabric_and_release_are_never_another_s() -> None:
    places = {
        ranks("profile=published", inventory=RING)[0][0]["SPARK3_DSPARK_COST_DIR"],
        ranks("profile=ring", inventory=RING)[0][0]["SPARK3_DSPARK_COST_DIR"],
        ranks()[0][0]["SPARK3_DSPARK_COST_DIR"],
        ranks("weights=original")[0][0]["SPARK3_DSPARK_COST_DIR"],
    }
    assert places == {
        "/cache/kkref/dspark-costs/ring4-r6-20261005",
        "/cache/kkref/dspark-costs/ring-r6d-1017",
        "/cache/kkref/dspark-costs/switched-r6d-1017",
        "/cache/kkref/dspark-costs/switched-r6d-original",
    }


def test_a_traffic_class_is_said_to_both_libraries() -> None:
    plain, marked = ranks()[0][0], ranks("traffic_class=106")[0][0]
    assert not {"NCCL_IB_TC", "SPARKNET_ROCE_TRAFFIC_CLASS"} & plain.keys()
    assert (marked["NCCL_IB_TC"], marked["SPARKNET_ROCE_TRAFFIC_CLASS"]) == ("106", "106")


# containers


@pytest.mark.parametrize(
    ("sets", "inventory"), [([], SWITCH), (["profile=ring"], RING), (["slots=4"], SWITCH)]
)
def test_all_but_what_may_differ_is_equal_on_all_ranks(sets: list[str], inventory: str) -> None:
    service = lane().recipe.services["rank"]
    apart = set(service.differ or ())
    seen = [
        (
            {name: text for name, text in env.items() if name not in apart},
            mounts,
            options,
            [w for before, w in pairwise(["", *words]) if before not in apart and w not in apart],
        )
        for env, mounts, options, words in ranks(*sets, inventory=inventory)
    ]
    assert all(one == seen[0] for one in seen)


def test_the_display_s_memory_is_a_choice() -> None:
    env, mounts, options, _ = ranks()[0]
    assert env["SPARK3_DISPLAY_CARVEOUT_WEIGHTS"] == "1"
    assert "type=bind,source=/dev/dri/by-path/pci-000f:01:00.0-card,target=/dev/dri/card0" in mounts
    assert "--device-cgroup-rule=c 226:* rw" in options
    env, mounts, options, _ = ranks("display_carveout=false")[0]
    assert env["SPARK3_DISPLAY_CARVEOUT_WEIGHTS"] == "0"
    assert not any("/dev/dri" in mount for mount in mounts)
    assert not any("device-cgroup-rule" in option for option in options)


def test_a_key_travels_in_a_file_of_the_head_alone() -> None:
    made = rendered("expose=true", f"api_key={KEY}")
    assert {flag(parts(container)[3], "--host") for container in made.containers} == {"0.0.0.0"}
    assert not any(KEY in word for container in made.containers for word in container.words)
    contents = [(file.mode, file.content) for file in made.files if file.name == "keys"]
    assert contents == [(0o600, f"VLLM_API_KEY={KEY}\n"), *[(0o600, "")] * 3]


def test_order_ports_limits_and_times() -> None:
    made, recipe = rendered(), lane().recipe
    assert made.order == ((1,), (2,), (3,), (0,))
    assert made.ports["spark-1"] == {"API": 8000, "rendezvous": 9999}
    assert not any(made.ports[f"spark-{number}"] for number in (2, 3, 4))
    assert (made.ready.timeout, recipe.stop.grace) == (3600, 60)
    assert recipe.limits.memory == 114_460_000_000


# hosts


@pytest.mark.parametrize(
    ("what", "good", "bad"),
    [
        ("pages of 64 KiB", ["65536"], ["4096", None]),
        ("the memory saver packs", ["Y"], ["N", None]),
        (
            "hands no memory to Kexec HandOver",
            [
                "BOOT_IMAGE=/boot/vmlinuz-7.0.0-1019-nvidia-64k ro kho=off",
                "BOOT_IMAGE=/boot/vmlinuz-6.17.0-1008-nvidia ro",
            ],
            ["BOOT_IMAGE=/boot/vmlinuz-7.0.0-1019-nvidia ro quiet"],
        ),
        ("nvidia-drm sets display modes", ["Y"], ["N", None]),
        ("draws the text console", ["0 nvidia-drmdrmfb"], ["0 EFI VGA", "", None]),
        ("no desktop runs", ["inactive", "failed", None], ["active"]),
        ("the master port is none", ["32768\t60999", "10000\t65535", None], ["1024\t65535", "9999\t60999"]),
        ("available memory is not understated", ["0", None], ["15000"]),
        ("answers small reads at once", ["inactive", None], ["active"]),
    ],
)
def test_what_a_host_must_be(what: str, good: list[str | None], bad: list[str | None]) -> None:
    """Each requirement with what nodes show, and with what they show where it does not hold."""
    (wanted,) = [each for each in rendered().host if what in each.what and each.node == "spark-1"]
    judged = {seen: true(wanted.must, {**wanted.scope, "seen": seen}) for seen in [*good, *bad]}
    assert judged == dict.fromkeys(good, True) | dict.fromkeys(bad, False)


def test_which_requirements_stop_a_start() -> None:
    stop = {each.what for each in rendered().host if each.blocks}
    assert stop == {
        "pages of 64 KiB",
        "the memory saver packs the GPU's page tables",
        "the kernel hands no memory to Kexec HandOver",
        "the master port is none that the kernel gives to outgoing connections",
    }
    free = {each.what for each in rendered("kernel=any", "display_carveout=false").host}
    assert not free & {"pages of 64 KiB", "the memory saver packs the GPU's page tables"}
    assert not any("nvidia-drm" in what for what in free)
    assert {each.node for each in rendered().host if "master port" in each.what} == {"spark-1"}


# refused


@pytest.mark.parametrize(
    ("sets", "inventory", "says"),
    [
        (["expose=true"], SWITCH, r"expose lets every computer on the network use the API; set api_key"),
        (["port=9999"], SWITCH, r"9999, the port of API, is the port of rendezvous too"),
        (["kv_bytes=1073741824"], SWITCH, r"hold about 817199 tokens \(1,313\.93 bytes each\), less than the context, 1048576"),
        (["chunk=64"], SWITCH, r"a step of 64 tokens leaves no room for a prompt beside the 96 tokens of 16 slots with 5 drafts each"),
        (["profile=ring"], SWITCH, r"a ring needs peer_hcas: the rank .* \(on spark-1, spark-2, spark-3, spark-4\)"),
        (["fabric=switched"], RING, r"the inventory names cables \(peer_hcas\), and fabric is switched.* \(on spark-1, spark-2, spark-3, spark-4\)"),
        (["profile=ring", "expert_parallel=true"], RING, r"on a ring two of them have no cable"),
        (["env.VLLM_ENABLE_ROCE_ALLREDUCE=1"], SWITCH, r"sparknet's collectives are always on, and the engine refuses it"),
        (["profile=ring", "env.NCCL_TOPO_FILE=/x"], RING, r"it would route through ranks that have no cable"),
        (["env.NCCL_IB_HCA=rocep1s0f0"], SWITCH, r"HCAs are each node's own; set its link\.hcas"),
        (["env.NCCL_IB_GID_INDEX=3"], SWITCH, r"GID indexes are discovered at each start"),
        (["env.NCCL_ALGO="], SWITCH, r"NCCL_ALGO"),
        (["slots=17"], SWITCH, r"at most 16 is expected, found 17"),
        (["drafts=6"], SWITCH, r"at most 5 is expected, found 6"),
        (["context=1048577"], SWITCH, r"at most 1048576 is expected, found 1048577"),
        (["traffic_class=256"], SWITCH, r"at most 255 is expected, found 256"),
        (["fabric=mesh"], SWITCH, r"switched or ring is expected"),
    ],
)  # fmt: skip
def test_rules(sets: list[str], inventory: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        rendered(*sets, inventory=inventory)


def changed(tmp_path: Path, inventory: str, *changes: tuple[str, str]) -> Path:
    text = (ROOT / "inventory" / inventory / "hosts.yml").read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "hosts.yml").write_text(text)
    return tmp_path


def test_three_nodes_are_too_few(tmp_path: Path) -> None:
    text = (ROOT / "inventory" / SWITCH / "hosts.yml").read_text()
    start, end = text.index("        spark-4:"), text.index("      vars:\n        ansible_user")
    (tmp_path / "hosts.yml").write_text(text[:start] + text[end:])
    with pytest.raises(ConfigError, match="lane C needs 4 nodes, the inventory has 3"):
        lane(inventory=tmp_path)


def test_ranks_that_do_not_follow_the_cables_are_refused(tmp_path: Path) -> None:
    swapped = [
        ('{"3": [rocep1s0f1, roceP2p1s0f1], "1"', '{"2": [rocep1s0f1, roceP2p1s0f1], "1"'),
        ('{"1": [rocep1s0f1, roceP2p1s0f1], "3"', '{"0": [rocep1s0f1, roceP2p1s0f1], "3"'),
        ('"2": [rocep1s0f0, roceP2p1s0f0]', '"3": [rocep1s0f0, roceP2p1s0f0]'),
        ('{"2": [rocep1s0f1, roceP2p1s0f1], "0"', '{"2": [rocep1s0f1, roceP2p1s0f1], "1"'),
    ]
    folder = changed(tmp_path, RING, *swapped)
    with pytest.raises(ConfigError, match="peer_hcas must name ranks 3 and 1, and names 2, 1"):
        rendered("profile=ring", inventory=folder)


def test_a_rail_less_on_one_node_is_refused(tmp_path: Path) -> None:
    folder = changed(tmp_path, SWITCH, ("[rocep1s0f0, roceP2p1s0f0]", "[rocep1s0f0]"))
    with pytest.raises(ConfigError, match="HCAs in the link: 1, and in that of spark-1: 2"):
        rendered(inventory=folder)
