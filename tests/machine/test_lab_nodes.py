"""What two nodes of a lab are like: networks, ssh, hardware, engines, faults."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab

pytestmark = pytest.mark.machine

SPARK_OPTIONS = ["--privileged", "--gpus", "all", "--ipc", "host", "--ulimit", "memlock=-1:-1", "--ulimit", "stack=67108864", "--device", "/dev/infiniband", "--network", "host", "--cap-add", "IPC_LOCK", "--security-opt", "seccomp=unconfined", "--shm-size", "1g"]  # fmt: skip
STRICT = ("-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=60")
ANSWERED = ("ping", "-c1", "-w60")  # again and again, until one is answered
UNANSWERED = ("ping", "-c1", "-W2")


def test_the_fabric_takes_jumbo_frames_and_management_does_not(lab: Lab) -> None:
    jumbo = ("-M", "do", "-s", "8972")
    lab.run("spark-1", *ANSWERED, *jumbo, "198.18.1.2")
    assert lab.run("spark-1", *UNANSWERED, *jumbo, "198.18.0.2", check=False).returncode != 0
    lab.run("spark-1", *ANSWERED, "198.18.0.2")


def test_each_node_shows_its_own_spark(lab: Lab) -> None:
    for node, gid in (("spark-1", "3"), ("spark-2", "5")):
        assert lab.out(node, "hostname") == node
        assert node in lab.out(node, "cat", "/run/sparkyard-lab")
        assert str(lab.folder) in lab.out(node, "cat", f"{lab.folder}/self/lab-marker")
        assert (
            lab.out(node, "sh", "-c", "cat /sys/class/infiniband/*/ports/1/state") == "4: ACTIVE\n4: ACTIVE"
        )
        types = "/sys/class/infiniband/rocep1s0f1/ports/1"
        assert lab.out(node, "cat", f"{types}/gid_attrs/types/{gid}") == "RoCE v2"
        assert lab.out(node, "cat", f"{types}/gids/{gid}").startswith("0000:0000:0000:0000:0000:ffff:c612:01")
        assert lab.out(node, "cat", "/sys/class/net/enp1s0f1np1/mtu") == "9000"
        assert lab.out(node, "nvidia-smi", "--query-gpu=name", "--format=csv,noheader") == "NVIDIA GB10"
        assert "enp1s0f1np1 (Up)" in lab.out(node, "ibdev2netdev")
        assert re.search(r"MemTotal: +126877696 kB", lab.out(node, "cat", "/proc/meminfo"))
        assert lab.out(node, "sh", "-c", "echo ~root") == f"{lab.folder}/self/home"


def test_the_machine_itself_is_unchanged(lab: Lab) -> None:
    del lab
    assert "126877696" not in Path("/proc/meminfo").read_text()
    assert not Path("/run/sparkyard-lab").exists()


def test_ssh_with_strict_host_keys_over_both_networks(lab: Lab) -> None:
    before = faults.ssh_connections("spark-2")
    assert lab.out("spark-1", "ssh", *STRICT, "spark-2", "hostname") == "spark-2"
    fabric = ("-o", "HostKeyAlias=spark-2", "root@198.18.1.2")
    assert lab.out("spark-1", "ssh", *STRICT, *fabric, "hostname") == "spark-2"
    assert "shims" in lab.out("spark-1", "ssh", *STRICT, "spark-2", "echo $PATH")
    assert faults.ssh_connections("spark-2") == before + 3


def test_a_changed_host_key_is_refused_until_it_is_trusted(lab: Lab) -> None:
    known = lab.own("spark-1") / "home" / ".ssh" / "known_hosts"
    trusted = lab.own("spark-1") / "home" / ".local" / "state" / "sparkyard" / "known_hosts"
    trusted.parent.mkdir(parents=True, exist_ok=True)
    trusted.write_text(f"{known.read_text()}elsewhere ssh-ed25519 AAAA\n")
    faults.new_host_key("spark-2")
    refused = lab.run("spark-1", "ssh", *STRICT, "spark-2", "true", check=False)
    assert refused.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    simulated.up(2, print)
    lab.run("spark-1", "ssh", *STRICT, "spark-2", "true")
    kept = [line.split()[0] for line in trusted.read_text().splitlines()]
    assert kept == ["spark-1", "198.18.1.1", "elsewhere"], "keys of before are trusted no longer"
    trusted.unlink()


def test_containers_run_with_a_sparks_options(lab: Lab) -> None:
    lab.ship("sparkyard-lab/busybox-base:latest")
    for node in ("spark-1", "spark-2"):
        name = f"options-{node}"
        words = (
            "docker",
            "run",
            "--name",
            name,
            *SPARK_OPTIONS,
            "sparkyard-lab/busybox-base",
            "ls",
            "/dev/infiniband",
        )
        assert "uverbs0" in lab.out(node, *words)
        host = json.loads(lab.out(node, "docker", "inspect", "--format", "{{json .HostConfig}}", name))
        assert host["Privileged"] is True
        assert host["NetworkMode"] == "host"
        assert {"Name": "memlock", "Hard": -1, "Soft": -1} in host["Ulimits"]
        lab.run(node, "docker", "rm", name)


def test_docker_exec_works_in_a_privileged_container(lab: Lab) -> None:
    lab.run(
        "spark-1",
        "docker",
        "run",
        "-d",
        "--name",
        "execs",
        "--privileged",
        "sparkyard-lab/busybox-base",
        "sleep",
        "60",
    )
    try:
        assert lab.out("spark-1", "docker", "exec", "--privileged", "execs", "echo", "in") == "in"
    finally:
        lab.run("spark-1", "docker", "rm", "-f", "execs")


def test_a_killed_container_is_seen_dead_by_its_engine(lab: Lab) -> None:
    lab.run(
        "spark-1", "docker", "run", "-d", "--name", "victim", "sparkyard-lab/busybox-base", "sleep", "600"
    )
    faults.kill_container("spark-1", "victim")
    assert lab.out("spark-1", "docker", "wait", "victim") == "137"
    lab.run("spark-1", "docker", "rm", "victim")


def test_status_reads_the_engines(lab: Lab) -> None:
    state = simulated.status()
    assert state is not None
    assert state.ready
    assert state.folder == str(lab.folder)
    assert state.base_image in state.node("spark-1").images
    assert state.base_image not in state.node("spark-2").images
    assert state.hub == "http://198.18.0.254"


def test_the_hub_serves_the_model_to_the_nodes(lab: Lab) -> None:
    tree = f"{lab.state.hub}/api/models/sparkyard-lab/gemma3-270m-q4/tree/main"
    rows = {row["path"]: row for row in json.loads(lab.out("spark-2", "busybox", "wget", "-qO-", tree))}
    weights = rows["gemma-3-270m-q4_k_m.gguf"]
    assert weights["size"] == 253113024
    assert weights["lfs"]["oid"] == "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
    faults.hub_faults(busy=1)
    assert "429" in lab.run("spark-2", "busybox", "wget", "-qO-", tree, check=False).stderr
    assert faults.hub_faults()["busy"] == 0
    assert faults.hub_requests()[-1]["status"] == 429


def test_a_cut_link_is_cut_on_the_fabric_only(lab: Lab) -> None:
    faults.cut_link("spark-2")
    try:
        assert lab.run("spark-1", *UNANSWERED, "198.18.1.2", check=False).returncode != 0
        lab.run("spark-1", *ANSWERED, "198.18.0.2")
    finally:
        faults.mend_link("spark-2")
    lab.run("spark-1", *ANSWERED, "198.18.1.2")


def test_a_shaped_link_is_slow(lab: Lab) -> None:
    copy = "head -c 8000000 /dev/zero | ssh -o HostKeyAlias=spark-2 198.18.1.2 'cat >/dev/null'"
    faults.shape("spark-2", "40mbit")
    try:
        began = time.monotonic()
        lab.run("spark-1", "sh", "-c", copy)
        assert time.monotonic() - began > 1.0
        assert "rate 40Mbit" in lab.out("spark-2", "tc", "qdisc", "show", "dev", "enp1s0f1np1")
    finally:
        faults.shape("spark-2", None)
    assert "rate" not in lab.out("spark-2", "tc", "qdisc", "show", "dev", "enp1s0f1np1")
    lab.run("spark-1", "sh", "-c", copy)


def test_a_small_disk_is_full_when_it_is_full(lab: Lab) -> None:
    folder = faults.small_disk("spark-2", 1_000_000)
    try:
        full = lab.run("spark-2", "sh", "-c", f"head -c 2000000 /dev/zero >{folder}/big", check=False)
    finally:
        faults.whole_disk("spark-2")
    assert "No space left" in full.stderr
    lab.run("spark-2", "sh", "-c", f"head -c 2000000 /dev/zero >{folder}/big && rm {folder}/big")


def test_an_hca_can_be_down(lab: Lab) -> None:
    faults.hca_down("spark-2")
    state = "/sys/class/infiniband/rocep1s0f1/ports/1/state"
    try:
        assert lab.out("spark-2", "cat", state) == "1: DOWN"
    finally:
        faults.hca_up("spark-2")
    assert lab.out("spark-2", "cat", state) == "4: ACTIVE"


def test_a_lab_cannot_be_ended_from_inside(lab: Lab) -> None:
    code = "from sparkyard import lab\ntry:\n    lab.down(print)\nexcept lab.LabError as fault:\n    print(fault)"
    source = str(simulated.__file__).rsplit("/sparkyard/", 1)[0]
    assert "inside a lab node" in lab.out(
        "spark-1", "env", f"PYTHONPATH={source}", sys.executable, "-c", code
    )
