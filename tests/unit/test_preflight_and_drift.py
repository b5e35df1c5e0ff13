"""Preflight and status, judged from the inputs of the failure modes."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from sparkyard import drift, facts
from sparkyard.command import fill
from sparkyard.errors import CouldNotCheck
from sparkyard.plan import Answers, Question, Verdict
from sparkyard.render import render_lane
from sparkyard.steps.files import question
from sparkyard.steps.preflight import preflight_steps
from tests.unit import raw, sample

LANE = sample.lane()
RENDERED = render_lane(LANE, {})
STEPS = {step.id: step for step in preflight_steps(LANE, RENDERED)}
PING = facts.ping_question("10.0.0.2", 8972)
OK, FAILED = "\n@@ = 0\n", "\n@@ = 1\n"


def judge(name: str, node: int = 0, given: Any = None, **changes: Any) -> Verdict:
    place = (raw.HEAD, raw.WORKER)[node]
    return STEPS[f"preflight:{name}@{place.name}"].judge(raw.answers(place, given, **changes))


@pytest.mark.parametrize("node", [0, 1])
def test_a_healthy_spark_passes(node):
    for name in ("docker", "link", "ports", "memory", "engines", "gpu", "rdma", "kernel"):
        verdict = judge(name, node)
        assert (verdict.state, verdict.details) == ("ok", ()), verdict


def blocked(verdict: Verdict) -> str:
    assert verdict.state == "blocked", verdict
    assert verdict.next_step
    assert verdict.actions == ()
    return verdict.reason


def test_docker_without_the_group():
    said = "permission denied while trying to connect to the Docker daemon socket"
    verdict = judge("docker", docker={"version": "", "runtimes": None, "errors": [said]})
    assert blocked(verdict) == "Docker refuses spark, who is not in the group docker"
    assert verdict.next_step == "sudo usermod -aG docker spark, then log in again"


def test_docker_that_does_not_answer():
    assert blocked(judge("docker", docker=None, statuses={"docker": 1})).startswith("Docker does not answer")
    hung = judge("docker", docker=None, statuses={"docker": 124})
    assert hung.details == ("Docker did not answer within its time limit",)


def test_no_gpu_and_no_runtime_for_it():
    assert "nvidia-smi lists none" in blocked(judge("gpu", gpus=[]))
    assert "not installed" in blocked(judge("gpu", gpus=[], statuses={"gpus": 127}))
    docker: Any = {"version": "29", "runtimes": {"runc": {}}, "errors": None, "driver": "x", "root": "/"}
    assert "no NVIDIA runtime" in blocked(judge("gpu", docker=docker))


def test_the_cable_is_in_the_other_port():  # T01 with the inventory of another Spark
    reason = blocked(judge("rdma", devices=raw.devices(raw.HEAD, "f0")))
    assert reason == "rocep1s0f1 is DOWN, expected ACTIVE; the active ones are: roceP2p1s0f0, rocep1s0f0"


def test_names_of_another_node_are_refused():  # T02
    devices = raw.devices(raw.HEAD, "f0")
    only = [line for line in devices[0] if "f1/" not in line]
    assert blocked(judge("rdma", devices=(only, devices[1]))).startswith("there is no RDMA device rocep1s0f1")


def test_a_gid_per_node():  # T05
    verdict = judge("rdma", 1, devices=raw.devices(raw.WORKER, "f0", pairs=2))
    assert verdict.data == {"gids": {"rocep1s0f0": "5", "roceP2p1s0f0": "5"}}


def test_no_ipv4_gid_points_at_the_address():  # T07
    reason = blocked(judge("rdma", devices=raw.devices(raw.HEAD, "f1", address="")))
    assert reason.startswith("rocep1s0f1 has no IPv4 RoCE v2 GID: enp1s0f1np1 has no IPv4 address")


def test_one_of_two_rails_is_a_warning():
    lane = sample.lane()
    object.__setattr__(lane.nodes[0].link, "hcas", ("rocep1s0f1",))
    step = next(s for s in preflight_steps(lane, RENDERED) if s.id == "preflight:rdma@spark-1")
    verdict = step.judge(raw.answers(raw.HEAD))
    assert verdict.details == (
        "warning: roceP2p1s0f1 is active and is not in link.hcas: only one of two rails is used",
    )


def test_two_interfaces_in_one_network_is_a_warning():  # T10
    links = [raw.interface("enp1s0f1np1", "10.0.0.1/24"), raw.interface("enP2p1s0f1np1", "10.0.0.2/24")]
    (detail,) = judge("link", addresses=links).details
    assert detail.startswith("warning: enp1s0f1np1 and enP2p1s0f1np1 are both in 10.0.0.0/24")


def test_an_mtu_that_differs_is_not_an_unreachable_peer():  # T11
    reason = blocked(judge("jumbo-spark-2", given={PING: (1, f"@@ large\n{FAILED}@@ small\n{OK}", "")}))
    assert reason == (
        "spark-2 (10.0.0.2) answers small packets only: here the MTU of enp1s0f1np1 is 9000; expected 9000 at both ends"
    )
    lost = judge("jumbo-spark-2", given={PING: (1, f"@@ large\n{FAILED}@@ small\n{FAILED}", "")})
    assert blocked(lost).startswith("spark-2 does not answer at 10.0.0.2")
    assert judge("jumbo-spark-2", given={PING: (0, f"@@ large\n{OK}", "")}).state == "ok"
    with pytest.raises(CouldNotCheck, match="ping is not installed"):
        judge("jumbo-spark-2", given={PING: (127, "", "")})


def test_typed_on_the_wrong_machine():
    verdict = judge("link", addresses=[raw.interface("enp1s0f1np1", "10.0.0.9/24")])
    assert verdict.next_step == "ssh to spark-1 and type it there"
    worker = judge("link", 1, addresses=[raw.interface("enp1s0f0np0")])
    assert blocked(worker) == "enp1s0f0np0 has no address; expected 10.0.0.2 on enp1s0f0np0"


def test_addresses_that_cannot_be_read_are_not_a_pass():
    with pytest.raises(CouldNotCheck, match="addresses"):
        judge("link", addresses=[], statuses={"addresses": 124})


KHO = {"CmaTotal": 65_536, "CmaFree": 9_830_400}
NEW = "7.0.0-1019-nvidia"


def test_kexec_handover_on():  # T16
    verdict = judge("kernel", kernel=NEW, memory=KHO)
    assert "Kexec HandOver on" in blocked(verdict)
    assert len(verdict.details) == 3


def test_kexec_handover_off():  # T17
    verdict = judge("kernel", kernel=NEW, cmdline="quiet kho=off")
    assert (verdict.state, verdict.details) == ("ok", ())


def test_kexec_handover_without_its_sign():  # T19
    verdict = judge("kernel", kernel=NEW)
    assert verdict.state == "ok"
    assert verdict.details[0].startswith("warning: kernel 7.0 without kho=off")


def test_kexec_handover_waits_for_a_reboot():  # T20
    verdict = judge("kernel", kernel=NEW, memory=KHO, grub=['GRUB_CMDLINE_LINUX="kho=off"'])
    assert "a reboot is pending" in blocked(verdict)
    assert (verdict.next_step, verdict.details) == ("reboot spark-1", ())


HELD = ['LISTEN 0 128 0.0.0.0:8000 0.0.0.0:* users:(("python3",pid=42,fd=3))']
OURS = raw.containers({"name": "sparkyard-T-engine-0", "labels": {"sparkyard.lane": "T"}})


def test_a_port_that_is_held():
    assert blocked(judge("ports", listening=HELD)) == (
        "port 8000 (API) is held by python3 (pid 42) on 0.0.0.0; expected it free"
    )
    assert judge("ports", 1, listening=HELD).state == "ok"
    assert judge("ports", given={facts.CONTAINERS: OURS}, listening=HELD).state == "ok"


def test_too_little_memory():
    data = sample.recipe_data()
    data["limits"]["memory"] = 100 << 30
    step = next(
        s for s in preflight_steps(sample.lane(data=data), RENDERED) if s.id == "preflight:memory@spark-1"
    )
    little = {"MemAvailable": 50 << 20}
    assert (
        blocked(step.judge(raw.answers(raw.HEAD, memory=little)))
        == "53.7 GB of memory are free; expected 107.4 GB"
    )
    assert step.judge(raw.answers(raw.HEAD, {facts.CONTAINERS: OURS}, memory=little)).state == "ok"


def test_too_little_disk():
    data = sample.recipe_data()
    data["limits"]["disk"] = 20 << 30
    steps = preflight_steps(sample.lane(data=data), RENDERED)
    step = next(s for s in steps if s.id == "preflight:disk@spark-1")
    answer = (0, f"disk 1\nfs ab\navailable {10 << 30}\nat /home\n//done\n", "")
    reason = blocked(step.judge(raw.answers(raw.HEAD, {step.questions[1]: answer})))
    assert reason == "10.7 GB of disk are free on /home; expected 21.5 GB"


def test_another_engine_is_named():
    vllm = raw.containers({"name": "v", "image": "vllm/vllm-openai:1"})
    assert "container v (vllm/vllm-openai:1) is running" in blocked(
        judge("engines", given={facts.CONTAINERS: vllm})
    )
    assert blocked(judge("engines", compute=["4711, VLLM::EngineCore, 90000 MiB"])).startswith(
        "VLLM::EngineCore (pid 4711)"
    )
    ours = f"/proc/4711/cgroup:0::/system.slice/docker-{0:064x}.scope"
    given = {facts.CONTAINERS: OURS}
    assert judge("engines", given=given, compute=["4711, VLLM::EngineCore, 90000 MiB", ours]).state == "ok"


def test_lanes_without_gpu_and_rdma_ask_for_neither():
    data = sample.recipe_data()
    data["gpu"] = data["rdma"] = False
    names = {step.name for step in preflight_steps(sample.lane(1, data), RENDERED)}
    assert names == {"docker", "link", "ports", "memory", "disk", "engines"}


# --- status


def status(rank: int = 0, changes: dict[Question, Any] | None = None, **detail: Any) -> drift.RankState:
    wanted, node = RENDERED.containers[rank], (raw.HEAD, raw.WORKER)[rank]
    labels = {"sparkyard.lane": "T", "sparkyard.hash": wanted.hash, "sparkyard.discovered": '{"gid": "3"}'}
    found = {"name": wanted.name, "image": wanted.image, "labels": labels} | detail
    given: dict[Question, Any] = {facts.CONTAINERS: raw.containers(found)}
    given[facts.image_question(wanted.image)] = raw.image(labels={"sparkyard.build": RENDERED.image.mark})
    for each in RENDERED.files_of(node.name):
        data = fill(each.content, {"gid": "3"}).encode()
        mode, line = (
            ("600", hashlib.sha256(data).hexdigest() + "  -")
            if each.secret
            else ("644", "content " + base64.b64encode(data).decode())
        )
        given[question(each)] = (0, f"regular file|{mode}|{len(data)}\n{line}", "")
    answers: dict[str, Answers] = {node.name: raw.answers(node, given | (changes or {}))}
    return drift.rank_states(RENDERED, answers)[rank]


def test_a_rank_that_serves_as_wanted():
    found = status()
    assert found.as_wanted
    assert (found.state, found.since) == ("running", "2026-11-01T10:00:00Z")


@pytest.mark.parametrize(
    ("detail", "trouble"),
    [
        ({"state": "exited", "more": {"ExitCode": 0}}, "ended by itself (exit code 0)"),  # T55
        (
            {"state": "exited", "more": {"ExitCode": 137}},
            "ended: killed (exit code 137), not by the kernel for memory: a person, or a user-space memory guard",
        ),  # T56
        (
            {"state": "exited", "more": {"ExitCode": 137, "OOMKilled": True}},
            "ended: the kernel killed it, out of memory",
        ),
        ({"restarts": 3}, "crash loop: restarted 3 times; a rank cannot rejoin alone"),  # T58
        (
            {"state": "created", "more": {"Error": "port is taken"}},
            "it was created and never started: port is taken",
        ),  # T59
        ({"more": {"Health": {"Status": "unhealthy"}}}, "its own health check fails"),
    ],
)
def test_what_is_wrong_with_a_rank(detail, trouble):
    found = status(**detail)
    assert found.trouble == (trouble,)
    assert not found.as_wanted


def test_a_container_that_never_ran_has_no_time():
    """sparkyard was killed between the two halves of ``docker run``."""
    assert status(state="created", more={"FinishedAt": "0001-01-01T00:00:00Z"}).since == ""


def test_settings_that_changed_are_drift():
    labels = {"sparkyard.lane": "T", "sparkyard.hash": "0", "sparkyard.discovered": '{"gid": "2"}'}
    assert status(labels=labels).drift == (
        "it was started with other settings than today's",
        "gid moved from 2 to 3 since it was started: all ranks need a restart",
    )


def test_files_and_images_that_changed_are_drift():
    engine = next(each for each in RENDERED.files_of("spark-1") if each.name == "engine")
    other = {question(engine): (0, "regular file|644|1\ncontent eA==", "")}
    assert status(changes=other).drift[0].endswith("engine.env has other content")
    gone = {question(engine): (1, "", "No such file or directory")}
    assert status(changes=gone).drift[0].endswith("engine.env is missing")
    image = {facts.image_question(RENDERED.image.reference): raw.NO_IMAGE}
    assert status(changes=image).drift == (f"image {RENDERED.image.reference} is missing",)
    rebuilt = raw.image(id="sha256:2", labels={"sparkyard.build": RENDERED.image.mark})
    image = {facts.image_question(RENDERED.image.reference): rebuilt}
    assert "it runs another image" in status(changes=image).drift[0]


def test_a_node_that_did_not_answer_is_unknown():
    assert {s.state for s in drift.rank_states(RENDERED, {})} == {"unknown"}


def test_an_absent_rank_is_absent():
    answers = {"spark-1": raw.answers(raw.HEAD)}
    assert [s.state for s in drift.rank_states(RENDERED, answers)] == ["absent", "unknown"]
