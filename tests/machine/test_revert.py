"""From a lane to the kit and back, typed as a person types it: the kit is started by its own scripts, from a local git repository."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard.lab import faults, kit_repo
from tests.machine.conftest import Lab
from tests.machine.typed import LIMIT, Said, Typist, until

pytestmark = pytest.mark.machine

NODES = ("spark-1", "spark-2")
DATA = "home/.local/share/sparkyard"
RECORDS = "home/.local/state/sparkyard/started"
KIT = {"spark-1": ["dsv41-exl3-head"], "spark-2": ["dsv41-exl3-worker"]}
LANE = {"spark-1": ["sparkyard-lab-server-0"], "spark-2": ["sparkyard-lab-follower-1"]}
NOTHING: dict[str, list[str]] = {"spark-1": [], "spark-2": []}


@pytest.fixture(scope="module")
def inventory(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's inventory of stand-ins, with the scripted engine as the lane that is left."""
    folder = tmp_path_factory.mktemp("inventory") / "stand-in"
    shutil.copytree(session_lab.folder / "stand-in", folder)
    hosts = folder / "hosts.yml"
    text = hosts.read_text().replace("    lane: A\n", "    lane: lab\n    lanes: {lab: {engine: scripted}}\n")
    hosts.write_text(text)
    return folder


@pytest.fixture
def typist(lab: Lab, inventory: Path) -> Iterator[Typist]:
    """Somebody to type, and nothing left running afterwards."""
    made = Typist(inventory)
    clean(lab)
    yield made
    clean(lab)


def clean(lab: Lab) -> None:
    for node in NODES:
        faults.mend_link(node)
        lab.away(node, "")
        lab.delete(node, RECORDS)


def running(lab: Lab) -> dict[str, list[str]]:
    return {node: lab.out(node, "docker", "ps", "--format", "{{.Names}}").split() for node in NODES}


def ids(lab: Lab) -> list[str]:
    return [lab.out(node, "docker", "ps", "-q", "--no-trunc") for node in NODES]


def lane_up(typist: Typist) -> None:
    typist.ok("download", "build", "start", "--lane=lab", "--yes")


def kit_up(typist: Typist) -> None:
    typist.ok("download", "build", "start", "--lane=kit", "--yes")


def results(said: Said) -> list[str]:
    return [event["data"]["result"] for event in said.events if event["data"].get("result")]


def test_revert_goes_to_the_kit_a_second_one_changes_nothing_and_switch_comes_back(
    lab: Lab, typist: Typist
) -> None:
    lane_up(typist)
    first = typist.ok("revert", "--yes")
    assert running(lab) == KIT
    assert results(first) == ["pass"] * 4
    told = first.failures()
    assert "left of lane lab:" in told
    assert "image sparkyard/lab-engine:" in told
    assert "forward again: invoke switch --lane=lab" in told
    key = next((lab.own("spark-1") / DATA / "secrets").iterdir())
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_text().strip() not in json.dumps(first.events)
    before = ids(lab)
    second = typist.ok("revert")
    assert second.changed() == {"spark-1": 0, "spark-2": 0}
    assert ids(lab) == before
    faults.hub_requests(forget=True)
    back = typist.ok("switch", "--lane=lab")
    assert running(lab) == LANE
    assert faults.hub_requests() == []
    done = [event["step"] for event in back.of("step-changed")]
    assert not [step for step in done if step.split(":")[0] in ("image", "checkpoint")]
    assert list((lab.own("spark-1") / RECORDS).iterdir()) == []


def test_a_lane_that_dies_at_boot_is_told_and_the_former_one_serves_again(lab: Lab, typist: Typist) -> None:
    kit_up(typist)
    said = typist.json("switch", "--lane=lab", "--yes", "--set", "script=--die-after 1 --boot-seconds 30")
    assert said.status == 1
    assert running(lab) == KIT
    told = said.failures()
    assert "ended with exit code 1" in told
    assert "lane lab does not serve" in told
    assert "lane kit serves again; lane lab was tried and is stopped" in told
    assert typist.json("status").status == 0


def test_a_kit_that_dies_at_boot_is_told_and_the_lane_serves_again(lab: Lab, typist: Typist) -> None:
    kit_up(typist)
    typist.ok("switch", "--lane=lab", "--yes")
    process = typist.start("revert", "--yes", "--json")
    until(lambda: running(lab)["spark-2"] == ["dsv41-exl3-worker"])
    faults.kill_container("spark-2", "dsv41-exl3-worker")
    out, _err = process.communicate(timeout=LIMIT)
    assert process.returncode == 1, out
    assert "lane lab serves again; lane kit was tried and is stopped" in out
    assert running(lab) == LANE


def test_a_taken_port_is_found_while_the_lane_still_serves(lab: Lab, typist: Typist) -> None:
    lane_up(typist)
    before = ids(lab)
    image = "sparkyard-lab/engine-base:latest"
    serve = ("python3", "-m", "http.server", "8888")
    lab.run("spark-1", "docker", "run", "-d", "--name", "taker", "--network", "host", image, *serve)
    try:
        until(lambda: "8888" in lab.out("spark-1", "ss", "-Hltn"))
        said = typist.json("revert", "--yes")
        assert said.status == 1
        assert "port 8888 (API) is held by" in said.failures()
        assert "lane lab was not touched" in said.failures()
    finally:
        lab.run("spark-1", "docker", "rm", "--force", "taker")
    assert ids(lab) == before


def test_a_commit_that_cannot_be_fetched_leaves_the_lane_alone(lab: Lab, typist: Typist) -> None:
    lane_up(typist)
    before = ids(lab)
    repository = kit_repo.keep(lab.folder / "git")
    shutil.rmtree(lab.own("spark-1") / DATA / "lanes" / "kit", ignore_errors=True)
    shutil.rmtree(lab.own("spark-1") / DATA / "git", ignore_errors=True)
    repository.rename(repository.with_name("away"))
    try:
        said = typist.json("revert", "--yes")
        assert said.status == 1
        assert "could not be fetched: there is no such repository" in said.failures()
        assert "lane lab was not touched" in said.failures()
        assert ids(lab) == before
    finally:
        repository.with_name("away").rename(repository)
    typist.ok("revert", "--yes")
    assert running(lab) == KIT


def test_a_worker_that_does_not_answer_changes_nothing(lab: Lab, typist: Typist) -> None:
    lane_up(typist)
    before = ids(lab)
    faults.new_host_key("spark-2")
    old = lab.own("spark-1") / "home" / ".ssh" / "known_hosts"
    kept = old.read_bytes()
    try:
        said = typist.json("revert", "--yes")
        assert said.status == 4
        assert "host key" in said.failures()
        assert "nothing was changed" in said.failures()
        assert ids(lab) == before
    finally:
        old.write_bytes(kept)
        typist.ok("trust", "--replace", "--yes")


def test_a_container_that_refuses_to_go_is_told_and_the_next_run_goes_on(lab: Lab, typist: Typist) -> None:
    lane_up(typist)
    whole = lab.out("spark-2", "docker", "ps", "-q", "--no-trunc")
    root = lab.out("spark-2", "docker", "info", "--format", "{{.DockerRootDir}}")
    held = f"{root}/containers/{whole}/hostconfig.json"
    lab.run("spark-2", "chattr", "+i", held)
    try:
        said = typist.json("revert", "--yes")
    finally:
        lab.run("spark-2", "chattr", "-i", held)
    assert said.status == 1
    told = said.failures()
    assert "unable to remove filesystem" in told
    assert "lane lab is not gone from every node, and lane kit was not started" in told
    assert running(lab)["spark-1"] == []
    typist.ok("revert", "--yes")
    assert running(lab) == KIT


def test_a_kit_that_was_started_by_hand_is_stopped_only_after_a_yes(lab: Lab, typist: Typist) -> None:
    kit_up(typist)
    for node in NODES:
        shutil.rmtree(lab.own(node) / RECORDS)
    before = ids(lab)
    assert "nothing of sparkyard runs" in typist.ok("stop").events[0]["message"]
    refused = typist.json("stop", "--lane=kit")
    assert refused.status == 2
    assert "dsv41-exl3-head on spark-1" in refused.failures()
    assert ids(lab) == before
    typist.ok("stop", "--lane=kit", "--yes")
    assert running(lab) == NOTHING


def test_a_container_of_the_kits_name_with_another_image_is_left_alone(lab: Lab, typist: Typist) -> None:
    image = "sparkyard-lab/busybox-base:latest"
    lab.run(
        "spark-1",
        "docker",
        "run",
        "-d",
        "--name",
        "dsv41-exl3-head",
        "--network",
        "none",
        image,
        "sleep",
        "900",
    )
    said = typist.json("stop", "--lane=kit", "--yes")
    assert said.status == 1
    assert "it is not the kit's, and was left alone" in said.failures()
    assert running(lab)["spark-1"] == ["dsv41-exl3-head"]


def test_killed_in_the_kits_start_the_next_run_knows_its_containers(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=kit", "--yes")
    process = typist.start("start", "--lane=kit")
    until(lambda: running(lab)["spark-2"] == ["dsv41-exl3-worker"])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not lab.processes("spark-1", "start.sh start"))
    said = typist.ok("start", "--lane=kit")
    assert running(lab) == KIT
    assert said.status == 0
    typist.ok("stop")
    assert running(lab) == NOTHING


def test_a_dead_rank_of_the_kit_is_seen_and_both_are_started_anew(lab: Lab, typist: Typist) -> None:
    kit_up(typist)
    before = ids(lab)
    faults.kill_container("spark-2", "dsv41-exl3-worker")
    until(lambda: running(lab)["spark-2"] == [])
    assert typist.json("status").status == 1
    typist.ok("start", "--lane=kit", "--yes")
    assert running(lab) == KIT
    assert not set(ids(lab)) & set(before)
    logs = [path.name for path in (lab.own("spark-1") / "home").rglob("spark-2-dsv41-exl3-worker.log")]
    assert logs


def test_purge_removes_the_lane_but_nothing_that_the_kit_needs(lab: Lab, typist: Typist) -> None:
    lane_up(typist)
    typist.ok("revert", "--purge", "--yes")
    assert running(lab) == KIT
    for node in NODES:
        assert lab.out(node, "docker", "images", "-q", "sparkyard/lab-engine") == ""
        names = {path.name for path in (lab.own(node) / DATA / "models").iterdir()}
        assert "sparkyard-lab--gemma3-270m-q4" not in names
        assert "LibertAIDAI--DeepSeek-V4.1-Flash-1017-EXL3-2.9bpw" in names


def test_lane_a_goes_its_template_is_pristine_and_it_comes_back(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "start", "--lane=A", "--yes")
    texts = [lab.own(node) / DATA / "lanes" / "A" / "chat_template.jinja" for node in NODES]
    edited = [text.read_bytes() for text in texts]
    first = typist.ok("revert", "--yes", "--lane=A")
    assert running(lab) == KIT
    assert results(first) == ["pass"] * 4
    pristine = kit_repo.files()["files/chat_template.jinja"]
    assert [text.read_bytes() for text in texts] == [pristine, pristine]
    assert typist.ok("revert", "--lane=A").changed() == {"spark-1": 0, "spark-2": 0}
    faults.hub_requests(forget=True)
    back = typist.ok("switch", "--lane=A", "--yes")
    assert [text.read_bytes() for text in texts] == edited
    assert faults.hub_requests() == []
    assert not [e for e in back.of("step-changed") if e["step"].split(":")[0] in ("image", "checkpoint")]
    assert sorted(name for names in running(lab).values() for name in names) == [
        "sparkyard-A-rank-0",
        "sparkyard-A-rank-1",
    ]
