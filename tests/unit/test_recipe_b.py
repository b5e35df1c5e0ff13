"""Lane B as it is rendered: the published shape, the rows that each rank packs, links of each node, the ring, and rules refused all at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkyard.errors import ConfigError
from sparkyard.fidelity import comparisons
from sparkyard.load import find_recipes, load_all
from sparkyard.model import Container, Lane, Manifest, RemoteFile
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit.sample import ENGRAM_CONFIG as CONFIG
from tests.unit.words import behind, env, flag
from tests.unit.words import mounts as by_target

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "1bae0e10" + "0" * 32
RELEASE = "fb2764a5cf321eaa5070ca8f9e892818f477c16d"
INDEX = "5" * 64
KEY = "sk-sixteen-or-more"
RING = ("fabric=ring", "nccl_library=/opt/nccl-ring/libnccl.so.2")
MAPS = "1=0/2,2=0/3,3=1/3;0=1/3,2=0/2,3=0/3;0=1/2,1=1/3,3=0/2;0=0/2,1=1/2,2=1/3"


def lane(*sets: str, inventory: str | Path = "four-spark") -> Lane:
    recipes = dict(find_recipes(ROOT, []))
    return load_all(ROOT / "inventory" / inventory, recipes, "B", environ={}, sets=list(sets))


def manifest(name: str, here: Lane) -> Manifest:
    repo, commit = here.checkpoints[name].repo, RELEASE if "original" in name else COMMIT
    files = (
        RemoteFile("config.json", 3311, blob="b" * 40),
        RemoteFile("model.safetensors.index.json", 7_470_294, sha256=INDEX),
    )
    return Manifest(repo, commit, files, config=CONFIG)


def rendered(*sets: str, inventory: str | Path = "four-spark") -> RenderedLane:
    here = lane(*sets, inventory=inventory)
    return render_lane(here, {name: manifest(name, here) for name in here.checkpoints})


def mounts(container: Container) -> list[str]:
    return list(by_target(container).values())


def refused(*sets: str, inventory: str | Path = "four-spark") -> str:
    with pytest.raises(ConfigError) as caught:
        rendered(*sets, inventory=inventory)
    return "\n".join(str(fault) for fault in caught.value.faults)


def changed(tmp_path: Path, old: str, new: str, inventory: str = "four-spark") -> Path:
    """An inventory in which one text stands in place of another."""
    text = (ROOT / "inventory" / inventory / "hosts.yml").read_text()
    assert old in text
    (tmp_path / "hosts.yml").write_text(text.replace(old, new))
    return tmp_path


# the published shape


def test_the_shape_that_the_post_ran():
    for rank, container in enumerate(rendered().containers):
        words = behind(container)
        assert words[:3] == ["python3", "-m", "sglang.launch_server"]
        said = {
            "--tp": "4", "--ep-size": "1", "--nnodes": "4", "--node-rank": str(rank),
            "--context-length": "1048576", "--max-running-requests": "16", "--cuda-graph-max-bs-decode": "16",
            "--chunked-prefill-size": "8192", "--max-total-tokens": "6500000", "--mem-fraction-static": "0.80",
            "--speculative-algorithm": "DSPARK", "--speculative-dspark-block-size": "5",
            "--host": "127.0.0.1", "--port": "8888", "--dist-init-addr": "10.0.0.1:20000",
            "--fp8-gemm-backend": "flashinfer_cutlass", "--watchdog-timeout": "1800", "--min-free-slots-delay": "1",
        }  # fmt: skip
        assert {name: flag(words, name) for name in said} == said


def test_settings_are_the_same_in_words_and_variables():
    for container in rendered("slots=8", "chunk=1024", "kv_tokens=2000000", "draft_block=3").containers:
        words, seen = behind(container), env(container)
        pairs = {
            "CHUNKED_PREFILL_SIZE": "--chunked-prefill-size", "MAX_RUNNING_REQUESTS": "--max-running-requests",
            "CUDA_GRAPH_MAX_BS_DECODE": "--cuda-graph-max-bs-decode", "MAX_TOTAL_TOKENS": "--max-total-tokens",
            "DSPARK_BLOCK_SIZE": "--speculative-dspark-block-size", "TP_SIZE": "--tp", "EP_SIZE": "--ep-size",
            "CONTEXT_LENGTH": "--context-length", "MEM_FRACTION_STATIC": "--mem-fraction-static",
            "NODE_RANK": "--node-rank", "NNODES": "--nnodes", "DIST_INIT_ADDR": "--dist-init-addr",
            "SERVED_MODEL_NAME": "--served-model-name", "SERVER_PORT": "--port", "MODEL_PATH": "--model-path",
        }  # fmt: skip
        assert {name: seen[name] for name in pairs} == {
            name: flag(words, word) for name, word in pairs.items()
        }
        assert flag(words, "--max-running-requests") == flag(words, "--cuda-graph-max-bs-decode") == "8"
        assert seen["DSV41_CERT_HEAD_M"] == "4,8,12,16,20,24,28,32"


def test_nothing_is_privileged_unless_it_is_asked_for():
    assert not any("--privileged" in container.words for container in rendered().containers)
    assert all("--privileged" in container.words for container in rendered("privileged=true").containers)
    assert all("--init" in container.words for container in rendered().containers)


def test_workers_start_before_the_head():
    assert rendered().order == ((1, 2, 3), (0,))


def test_ports_of_the_head_and_of_workers():
    ports = rendered().ports
    assert ports["spark-1"] == {"API": 8888, "rendezvous": 20000}
    assert ports["spark-4"] == {"API": 8888}


# what each rank packs


def test_the_files_that_each_rank_packs_are_known_to_the_byte():
    (pack,) = rendered().jobs
    made = {(out.node, Path(out.path).name): out.size for out in pack.makes}
    assert made == {
        ("spark-1", "engram-l1-r0of4.bin"): 25_344_411_184,
        ("spark-2", "engram-l1-r1of4.bin"): 25_344_411_184,
        ("spark-3", "engram-l1-r2of4.bin"): 25_344_411_184,
        ("spark-4", "engram-l1-r3of4.bin"): 25_344_411_184,
        ("spark-1", "engram-l14-r0of4.bin"): 25_345_104_976,
        ("spark-2", "engram-l14-r1of4.bin"): 25_345_105_240,
        ("spark-3", "engram-l14-r2of4.bin"): 25_345_104_976,
        ("spark-4", "engram-l14-r3of4.bin"): 25_345_105_240,
    }
    headers = 8 * 4096
    assert sum(size or 0 for size in made.values()) - headers == 202_758_032_400


def test_room_is_the_pack_and_eight_gibibytes():
    (pack,) = rendered().jobs
    assert [room.size for room in pack.room] == [
        59_279_450_752,
        59_279_451_016,
        59_279_450_752,
        59_279_451_016,
    ]


def test_a_pack_is_bound_to_its_checkpoint_and_never_shared():
    (pack,) = rendered().jobs
    assert pack.bound_to == (f"sha256:{INDEX}",)
    for rank, container in enumerate(pack.containers):
        words = behind(container)
        assert words[:2] == ["python3", "/opt/dsv41/scripts/pack_engram.py"]
        assert (flag(words, "--rank"), flag(words, "--tp"), flag(words, "--out")) == (
            str(rank),
            "4",
            "/engram",
        )
        assert "none" in container.words
        assert env(container) == {"DSV41_SOURCE": "/models/DeepSeek-V4.1-Flash"}
    (other,) = rendered("weights=original").jobs
    assert {out.path for out in pack.makes}.isdisjoint({out.path for out in other.makes})
    assert pack.hash != other.hash


def test_settings_of_serving_do_not_pack_again():
    (pack,), (again,) = rendered().jobs, rendered("chunk=4096", "slots=8", "env.DSV41_IO_THREADS=64").jobs
    assert pack.hash == again.hash


def test_an_unlocked_lane_renders_without_sizes():
    (pack,) = render_lane(lane(), {}).jobs
    assert {out.size for out in pack.makes} == {None}


# links of each node


def test_each_rank_has_the_link_of_its_own_node():
    seen = [env(container) for container in rendered().containers]
    assert [one["NCCL_IB_HCA"] for one in seen] == ["rocep1s0f1,roceP2p1s0f1"] * 3 + [
        "rocep1s0f0,roceP2p1s0f0"
    ]
    assert [one["B12X_ROCE_HCA"] for one in seen] == [one["NCCL_IB_HCA"] for one in seen]
    assert [one["NCCL_SOCKET_IFNAME"] for one in seen] == ["=enp1s0f1np1"] * 3 + ["=enp1s0f0np0"]
    assert [one["GLOO_SOCKET_IFNAME"] for one in seen] == ["enp1s0f1np1"] * 3 + ["enp1s0f0np0"]
    assert [one["HOST_IP"] for one in seen] == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert {one["NCCL_IB_GID_INDEX"] for one in seen} == {"<discovered: gid>"}


def test_behind_a_switch_no_variable_of_a_ring_is_set():
    for container in rendered().containers:
        seen = env(container)
        assert seen["SGLANG_ROCE_MAX_SIZE"] == seen["DSV41_ROCE_GATHER"] == "2097152"
        assert (seen["SGLANG_ROCE_ALLREDUCE"], seen["NCCL_P2P_DISABLE"], seen["NCCL_MAX_NCHANNELS"]) == (
            "1",
            "1",
            "8",
        )
        assert not seen.keys() & {
            "NCCL_ALGO",
            "NCCL_SWITCHLESS_RING_ONLY",
            "DSV41_ROCE_RING",
            "B12X_ROCE_PEER_HCA_MAPS",
        }
        assert "libnccl" not in " ".join(mounts(container))
        assert "" not in seen.values()


def test_a_ring_has_four_hcas_the_patched_library_and_its_own_caps():
    made = rendered(*RING, "hairpin_queue=8192", f"roce_peer_maps={MAPS}", inventory="four-spark-ring")
    for container in made.containers:
        seen = env(container)
        assert seen["NCCL_IB_HCA"] == "rocep1s0f0,rocep1s0f1,roceP2p1s0f0,roceP2p1s0f1"
        assert seen["B12X_ROCE_PEER_HCA_MAPS"] == MAPS
        assert seen["SGLANG_ROCE_MAX_SIZE"] == seen["DSV41_ROCE_GATHER"] == "262144"
        assert (seen["NCCL_ALGO"], seen["NCCL_MIN_NCHANNELS"], seen["NCCL_MAX_NCHANNELS"]) == (
            "Ring",
            "4",
            "4",
        )
        assert (seen["NCCL_P2P_DISABLE"], seen["DSV41_ROCE_RING"]) == ("0", "1")
        assert any(
            "source=/opt/nccl-ring/libnccl.so.2,target=/opt/sglang/lib/python3.12/" in mount
            and mount.endswith("readonly")
            for mount in mounts(container)
        )


def test_a_ring_without_paths_to_the_opposite_node_leaves_collectives_to_nccl():
    for container in rendered(*RING, inventory="four-spark-ring").containers:
        seen = env(container)
        assert seen["SGLANG_ROCE_ALLREDUCE"] == "0"
        assert not seen.keys() & {"SGLANG_ROCE_MAX_SIZE", "DSV41_ROCE_GATHER", "B12X_ROCE_HCA"}


def test_without_the_rdma_kernel_all_collectives_are_nccl_s():
    for container in rendered("roce=false").containers:
        assert env(container)["SGLANG_ROCE_ALLREDUCE"] == "0"
        assert not env(container).keys() & {"SGLANG_ROCE_MAX_SIZE", "DSV41_ROCE_GATHER", "B12X_ROCE_HCA"}


def test_with_the_driver_s_own_hairpin_queue_the_cap_is_smaller():
    made = rendered(*RING, f"roce_peer_maps={MAPS}", inventory="four-spark-ring")
    assert {env(container)["DSV41_ROCE_GATHER"] for container in made.containers} == {"81920"}


# weights


def test_weights_lie_on_every_node_or_on_the_head():
    assert [(name, spec.nodes) for name, spec in lane().checkpoints.items()] == [("local-1017", "all")]
    shared = ("weights_from=nfs", "nfs_path=/mnt/spark-1/flash")
    assert [(name, spec.nodes) for name, spec in lane(*shared).checkpoints.items()] == [("nfs-1017", "head")]
    made = rendered(*shared)
    sources = [mounts(container)[0] for container in made.containers]
    assert "/deepseek-ai--DeepSeek-V4.1-Flash-1017/1bae0e10" in sources[0]
    assert (
        sources[1:] == ["type=bind,source=/mnt/spark-1/flash,target=/models/DeepSeek-V4.1-Flash,readonly"] * 3
    )
    (pack,) = made.jobs
    assert [mounts(container)[0] for container in pack.containers] == sources
    assert pack.bound_to == (f"sha256:{INDEX}",)


def test_profiles():
    made = rendered("profile=kit")
    assert f"/deepseek-ai--DeepSeek-V4.1-Flash/{RELEASE}," in mounts(made.containers[0])[0]
    assert all("--privileged" in container.words for container in made.containers)
    assert {env(container)["CHUNKED_PREFILL_SIZE"] for container in made.containers} == {"4096"}
    ring = rendered("profile=ring", "nccl_library=/opt/nccl/libnccl.so.2", inventory="four-spark-ring")
    assert {env(container)["NCCL_ALGO"] for container in ring.containers} == {"Ring"}
    assert not any("--privileged" in container.words for container in ring.containers)
    assert "a ring needs a patched NCCL" in refused("profile=ring", inventory="four-spark-ring")
    r5 = rendered("profile=published", inventory="four-spark-ring")
    assert {env(container)["B12X_ROCE_PEER_HCA_MAPS"] for container in r5.containers} == {MAPS}


@pytest.mark.parametrize("inventory", ["four-spark", "four-spark-ring"])
def test_published_lines_differ_where_the_recipe_says_so(inventory):
    found = comparisons(lane(inventory=inventory))
    assert [one.faults for one in found] == [()] * 4
    assert [one.equal for one in found] == [32, 130, 106, 5]
    assert all(difference.why for one in found for difference in one.seen)


def test_a_key_travels_in_a_file_of_the_head_alone():
    made = rendered("expose=true", f"api_key={KEY}")
    assert not any(KEY in word for container in made.containers for word in container.words)
    assert [flag(behind(container), "--config") for container in made.containers] == [
        "/run/sparkyard/keys.yaml",
        None,
        None,
        None,
    ]
    assert [flag(behind(container), "--host") for container in made.containers] == ["0.0.0.0"] + [
        "127.0.0.1"
    ] * 3
    (file,) = [file for file in made.files if file.name == "keys"]
    assert (file.node, file.mode) == ("spark-1", 0o600)
    assert f'api-key: "{KEY}"' in file.content
    assert sum("keys.yaml" in mount for c in made.containers for mount in mounts(c)) == 1


# rules


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], "logits are NaN"),
        (["env.OFFLOAD_MODE=ram"], "the Engram tables must stay on the disk"),
        (["env.DSV41_INDEXER_CHUNKED=0"], "chunk is 8192, and above 1024 a long prompt needs the indexer backport"),
        (["env.DSV41_MOE_B12X_NEXT=0"], "ep 1 runs on the b12x_next kernels alone"),
        (["env.DSV41_MOE_B12X_NEXT_DETERMINISTIC=0"], "ep 1 runs on the b12x_next kernels alone"),
        (["kv_tokens=1048575"], "kv_tokens is 1048575, less than one context of 1048576 tokens"),
        (["env.SPARK_PREFILL_TP_MIN_CONTEXT=16384"], "the prefill split ends the boot below its thresholds"),
        (["env.SPARK_PREFILL_TP_MIN_ROWS=512"], "the prefill split ends the boot below its thresholds"),
        (["env.DSPARK_SPS_TABLE=/state/dspark_sps.json"], "leave DSPARK_SPS_TABLE and DSPARK_STS_TABLE out"),
        (["env.DSPARK_STS_TABLE=/state/dspark_sts.json"], "leave DSPARK_SPS_TABLE and DSPARK_STS_TABLE out"),
        (["mem_fraction=0.99"], "mem_fraction is 0.99"),
        (["expose=true"], "set api_key to 16 characters or more"),
        (["dist_port=8888"], "8888, the port of rendezvous, is the port of API too"),
        (["weights_from=nfs"], "set nfs_path to the folder where each worker has the head's checkpoint"),
        (["weights=original", "model_name=flash-1017"], "model_name says 1017"),
        (["fabric=ring"], "a ring needs a patched NCCL"),
        (["fabric=ring"], "HCAs in the link: 2; a ring needs all four functions"),
        ([f"roce_peer_maps={MAPS}"], "roce_peer_maps are the paths of a ring"),
        (["env.NCCL_IB_GID_INDEX=3"], "GID indexes are discovered at each start"),
        (["env.B12X_ROCE_HCA=rocep1s0f0"], "HCAs are each node's own"),
        (["env.NCCL_NET="], "empty is not unset for its reader"),
        (["env.CHUNKED_PREFILL_SIZE=1024"], "is set by the recipe's service itself"),
        (["chunk=16384"], "at most 8192 is expected"),
        (["ep=3"], "1, 2 or 4 is expected"),
        (["context=1048577"], "at most 1048576 is expected"),
    ],
)  # fmt: skip
def test_rules(sets, says):
    assert says in refused(*sets)


def test_a_ring_refuses_a_share_and_caps_above_its_queues():
    shared = refused(*RING, "weights_from=nfs", "nfs_path=/mnt/flash", inventory="four-spark-ring")
    assert "a ring has no path for an NFS share of the weights" in shared
    wide = refused(*RING, f"roce_peer_maps={MAPS}", "roce_max=262144", inventory="four-spark-ring")
    assert "roce_max is 262144; in a ring with hairpin_queue 1024 it is 81920 at most" in wide
    assert rendered(
        *RING, f"roce_peer_maps={MAPS}", "roce_max=262144", "hairpin_queue=8192", inventory="four-spark-ring"
    )


def test_ep_2_does_without_the_kernels_of_ep_1():
    made = rendered("ep=2", "env.DSV41_MOE_B12X_NEXT=0", "env.DSV41_MOE_B12X_NEXT_DETERMINISTIC=0")
    assert {env(container)["DSV41_FAST_LOAD_EP_SIZE"] for container in made.containers} == {"2"}
    assert rendered("chunk=1024", "env.DSV41_INDEXER_CHUNKED=0")


def test_all_faults_are_told_at_once():
    said = refused(
        "env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "env.DSV41_INDEXER_CHUNKED=0",
        "env.DSV41_MOE_B12X_NEXT=0",
        "kv_tokens=1000000",
        "dist_port=8888",
    )
    found = [line for line in said.splitlines() if re.search(r"recipe\.yml:\d+: rules\.\d+", line)]
    assert len(found) == 4, said
    assert "--set: lanes.B.dist_port: 8888, the port of rendezvous, is the port of API too" in said


def test_a_node_with_other_hcas_is_refused_by_name(tmp_path):
    said = refused(inventory=changed(tmp_path, "hcas: [rocep1s0f0, roceP2p1s0f0]", "hcas: [rocep1s0f0]"))
    assert "HCAs in the link: 1, and in that of spark-1: 2" in said


def test_the_wrong_number_of_nodes_is_refused(tmp_path):
    inventory = changed(
        tmp_path, "        lanes:\n", "        lanes:\n          B: {nodes: [spark-1, spark-2]}\n"
    )
    with pytest.raises(ConfigError, match="4"):
        rendered(inventory=inventory)


# what it must say and answer


def test_the_boot_log_that_is_looked_for():
    log = lane().recipe.services["rank"].log
    lines = {
        "[2026-09-22 19:58:40] The server is fired up and ready to roll!",
        "DSV41 shared-expert padding K: layers (5120, 576) -> (5120, 640)",
        "DSV41 indexer chunked (sglang#39187 backport) ARMED: budget",
        "[2026-09-11 23:46:07 TP0 EP0] Initialized DSpark draft runner. attention_backend=dsv4, gamma=5, verify_num_draft_tokens=6, query_token_num=5",
        "[2026-09-11 23:46:11 TP0 EP0] DSV4 memory calculation: bytes_per_full_token=1670.75, available_bytes=8.84 GB, c128_state_fixed=0.00 GB, swa_fixed=0.30 GB, full_token=5491200",
        "max_total_num_tokens=6499840, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=16, context_len=1048576",
        "RoCEnante ready: world=4 hcas=rocep1s0f0,roceP2p1s0f0 gid_index=3 max_size=2097152 traffic_class=0",
        "NCCL INFO NET/IB ListenerRouting format=ipv4-v1 advertised=4 observed=4",
        "[moe_b12x_next] armed: routed MoE on b12x_next a7d7d29b",
        "DSV41 hc_fused: first call (4096 rows) bit-identical to stock",
    }
    fitting = [[line for line in lines if re.search(check.pattern, line)] for check in log]
    assert [len(found) for found in fitting] == [1] * 10
    (granted,) = [check for check in log if "full_token" in check.pattern]
    found = re.search(granted.pattern, next(line for line in lines if "full_token=" in line))
    assert found is not None
    assert (found["bytes"], found["granted"]) == ("1670.75", "5491200")


def test_six_requests_and_a_first_prompt_that_is_long():
    made = rendered()
    assert len(made.checks) == 6
    assert all(check.body["model"] == "deepseek-v4.1-flash" for check in made.checks)
    (prompt,) = made.ready.body["messages"]
    assert 3600 <= len(prompt["content"].split()) <= 4200
    assert made.checks[5].body["messages"] == made.ready.body["messages"]
    assert (made.ready.timeout, lane().recipe.stop.grace) == (3600, 120)


def test_the_image_is_made_from_pins():
    image = lane().recipe.image
    assert image.build is not None
    assert image.build.base.startswith(
        "docker.io/lmsysorg/sglang@sha256:e56358a68b06427362283c8c8a9d7d706448"
    )
    pins = {name: git.commit for name, git in image.build.git.items()}
    assert pins == {"kit": "58f232155917d388b6053eca079c617fd306c33c", "sglang": "f80c91a4b"}
    assert f"--build-arg BASE={image.build.base}" in " ".join(rendered().image.words)


def test_what_is_asked_of_each_node():
    def asked(*sets: str, inventory: str = "four-spark") -> list[tuple[str, str]]:
        found = [(one.way, one.name) for one in rendered(*sets, inventory=inventory).host]
        return [one for one in dict.fromkeys(found) if not one[1].startswith(("/proc/", "/etc/"))]

    assert asked() == []
    shared = ("weights_from=nfs", "nfs_path=/mnt/spark-1/flash")
    assert asked(*shared) == [("read", "/mnt/spark-1/flash/config.json")]
    workers = [one.node for one in rendered(*shared).host if one.name.startswith("/mnt")]
    assert workers == ["spark-2", "spark-3", "spark-4"]
    assert asked(*RING, inventory="four-spark-ring") == [("sha256", "/opt/nccl-ring/libnccl.so.2")]
