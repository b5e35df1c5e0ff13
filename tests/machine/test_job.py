"""The main job, typed as a person types it, on two simulated Sparks: once, twice, under --check, and with real faults."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import LIMIT, PROJECT, Typist, until

pytestmark = pytest.mark.machine

SCRIPTED = ("--set", "engine=scripted")
DATA = "home/.local/share/sparkyard"


@pytest.fixture
def typist(lab: Lab, inventory: Path) -> Iterator[Typist]:
    """A lab without faults and without running lanes, and somebody to type."""
    faults.hub_faults()
    made = Typist(inventory)
    yield made
    faults.hub_faults()
    for node in ("spark-1", "spark-2"):
        faults.mend_link(node)
        faults.shape(node, None)


def forget(lab: Lab, *nodes: str) -> None:
    """Take everything of sparkyard from nodes: checkpoints, ledgers, containers, built images."""
    for node in nodes:
        lab.away(node)
        images = "docker images -q sparkyard/lab-engine | sort -u | xargs -r docker rmi --force"
        lab.run(node, "sh", "-c", images)
        lab.delete(node, DATA)


def models(lab: Lab, node: str) -> dict[str, str]:
    """Path → sha256 of every file below the models folder, seals and all."""
    top = lab.own(node) / DATA / "models"
    return {
        str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(top.rglob("*"))
        if path.is_file() and not path.name.endswith(".seal.json")
    }


def tree(lab: Lab, node: str) -> dict[str, tuple[int, int]]:
    """Path → (size, mtime_ns) of everything that the node owns, sshd's and dockerd's own logs and sockets apart."""
    found = {}
    for place, names, files in os.walk(lab.own(node)):
        if place == str(lab.own(node)):
            names[:] = [name for name in names if "docker" not in name]  # what lies there comes and goes
            files[:] = [name for name in files if "docker" not in name]
        for path in (Path(place, name) for name in files):
            if path.is_file():
                found[str(path)] = (path.lstat().st_size, path.lstat().st_mtime_ns)
    return found


def image_layers(lab: Lab, node: str) -> str:
    reference = lab.out(
        node, "docker", "images", "--format", "{{.Repository}}:{{.Tag}}", "sparkyard/lab-engine"
    )
    return lab.out(
        node, "docker", "image", "inspect", "--format", "{{json .RootFS.Layers}}", reference.split()[0]
    )


def test_whole_job_with_a_real_model_then_again_with_nothing_to_do(lab: Lab, typist: Typist) -> None:
    forget(lab, "spark-1", "spark-2")
    first = typist.ok("download", "build", "start", "verify", "--lane=lab")
    results = [e["data"]["result"] for e in first.events if e["data"].get("result")]
    assert results == ["pass"] * 6
    assert len(models(lab, "spark-1")) == 3
    assert models(lab, "spark-1") == models(lab, "spark-2")
    before = faults.ssh_connections("spark-2")
    second = typist.ok("download", "build", "start", "--lane=lab")
    assert second.changed() == {"spark-1": 0, "spark-2": 0}
    assert faults.ssh_connections("spark-2") == before + 1
    assert typist.json("download", "build", "start", "--lane=lab", "--check").status == 0
    status = typist.json("status")
    assert status.status == 0, status.events
    assert [e["data"]["state"] for e in status.events if "state" in e["data"]] == ["running", "running"]
    assert typist.ok("stop").changed() == {"spark-1": 1, "spark-2": 1}
    assert typist.json("status").status == 1
    assert "nothing of sparkyard runs" in typist.ok("stop").events[0]["message"]


def test_check_on_fresh_nodes_shows_every_action_and_changes_nothing(lab: Lab, typist: Typist) -> None:
    forget(lab, "spark-1", "spark-2")
    before = [tree(lab, node) for node in ("spark-1", "spark-2")]
    said = typist.json("download", "build", "start", "--lane=lab", "--check")
    assert said.status == 6
    assert [tree(lab, node) for node in ("spark-1", "spark-2")] == before
    actions = [a for e in said.of("step-would-change") for a in e["data"]["actions"]]
    starts = [a.split()[:3] for a in actions]
    assert starts.count(["docker", "build", "--tag"]) == 1
    assert starts.count(["docker", "run", "--detach"]) == 2
    assert any("docker save sparkyard/lab-engine:" in a and a.endswith("docker load") for a in actions)
    assert any(a.startswith("download 3 files") for a in actions)
    typist.ok("download", "build", "start", "--lane=lab", *SCRIPTED)
    shown = typist.json("download", "build", "start", "--lane=lab", "--check", *SCRIPTED)
    assert (shown.status, shown.of("step-would-change")) == (0, [])


def test_a_printed_docker_run_is_the_one_that_runs(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=lab")
    typist.ok("stop", "--lane=lab")
    shown = typist.json("start", "--lane=lab", "--check", *SCRIPTED)
    runs = {
        e["node"]: e["data"]["actions"][-1]
        for e in shown.of("step-would-change")
        if "start" in e["data"]["title"]
    }
    done = typist.ok("start", "--lane=lab", *SCRIPTED)
    ran = {
        e["node"]: e["data"]["actions"][-1] for e in done.of("step-changed") if "rank" in e["data"]["title"]
    }
    assert runs == ran
    assert set(runs) == {"spark-1", "spark-2"}


def test_a_changed_setting_replaces_and_asks_first(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "start", "--lane=lab", *SCRIPTED)
    refused = typist.json("start", "--lane=lab", *SCRIPTED, "--set", "context=1024")
    assert refused.status == 2
    assert "would be replaced: it was started with other settings" in refused.failures()
    done = typist.ok("start", "--lane=lab", *SCRIPTED, "--set", "context=1024", "--yes")
    assert any("rank 0: start" in e["data"]["title"] for e in done.of("step-changed"))
    drifted = typist.json("status", *SCRIPTED)
    assert drifted.status == 1
    assert "started with other settings" in json.dumps(drifted.events)


# --- killed in the middle -------------------------------------------------------------------------------------------------


def kill_when(typist: Typist, there: object, *line: str) -> None:
    """SIGKILL a line as soon as something is there."""
    process = typist.start(*line)
    try:
        until(lambda: there() or process.poll() is not None)  # type: ignore[operator]
        assert process.poll() is None, process.communicate()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def on_disk(folder: Path) -> list[int]:
    """Bytes on disk of every file below a folder, while files come, go and are renamed."""
    found = []
    for place, _names, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                found.append(Path(place, name).stat().st_blocks * 512)
    return found


def big(folder: Path, size: int) -> bool:
    """Whether a file below a folder takes more than so many bytes on disk."""
    return max(on_disk(folder), default=0) > size


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, object]:
    return {}


def test_killed_in_download_heals_and_fetches_only_the_rest(lab: Lab, typist: Typist) -> None:
    forget(lab, "spark-1", "spark-2")
    faults.hub_faults(rate=10_000_000)
    kill_when(typist, lambda: big(lab.own("spark-1") / DATA / "models", 40_000_000), "download", "--lane=lab")
    faults.hub_faults()
    faults.hub_requests(forget=True)
    typist.ok("download", "--lane=lab")
    sent = sum(request["sent"] for request in faults.hub_requests())
    assert sent < 253_000_000 - 30_000_000
    assert models(lab, "spark-1") == models(lab, "spark-2")
    assert len(models(lab, "spark-1")) == 3
    assert typist.ok("download", "--lane=lab").changed() == {"spark-1": 0, "spark-2": 0}


def test_killed_in_copy_heals(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "--lane=lab")
    whole = models(lab, "spark-2")
    forget(lab, "spark-2")
    faults.shape("spark-2", "200mbit")
    kill_when(typist, lambda: big(lab.own("spark-2") / DATA / "models", 20_000_000), "download", "--lane=lab")
    until(lambda: not lab.processes("spark-2", "rsync --server"))
    faults.shape("spark-2", None)
    typist.ok("download", "--lane=lab")
    assert models(lab, "spark-2") == whole == models(lab, "spark-1")


def test_killed_in_build_heals(lab: Lab, typist: Typist, tmp_path: Path) -> None:
    recipes = slow_build(tmp_path)
    forget(lab, "spark-1", "spark-2")
    line = ("build", "--lane=slow", f"--recipes={recipes}")
    building = "docker ps --format '{{.Command}}' | grep -q 'sleep'"
    kill_when(typist, lambda: lab.run("spark-1", "sh", "-c", building, check=False).returncode == 0, *line)
    (recipes / "slow" / "pause").write_text("0")
    typist.ok(*line)
    assert image_layers(lab, "spark-1") == image_layers(lab, "spark-2")
    assert typist.ok(*line).changed() == {"spark-1": 0, "spark-2": 0}


def slow_build(folder: Path) -> Path:
    """The lab's recipe as lane ``slow``, with a build that takes as long as its file ``pause`` says."""
    recipe = folder / "recipes" / "slow"
    shutil.copytree(PROJECT / "recipes" / "lab", recipe)
    text = (recipe / "recipe.yml").read_text()
    text = text.replace("lane: lab\n", "lane: slow\n").replace("context: engine}", "context: .}")
    (recipe / "recipe.yml").write_text(text)
    (recipe / "pause").write_text("600")
    docker = (recipe / "Dockerfile").read_text().replace("COPY . ", "COPY engine ")
    (recipe / "Dockerfile").write_text(
        docker + 'COPY pause /pause\nRUN ["sh", "-c", "sleep $(cat /pause)"]\n'
    )
    return folder / "recipes"


def test_killed_in_ship_heals(lab: Lab, typist: Typist) -> None:
    typist.ok("build", "--lane=lab", "--limit=spark-1")
    forget(lab, "spark-2")
    lab.run(
        "spark-2", "docker", "image", "prune", "--all", "--force"
    )  # layers of other images would not move
    faults.shape("spark-2", "100mbit")
    kill_when(typist, lambda: lab.processes("spark-2", "docker load"), "build", "--lane=lab")
    faults.shape("spark-2", None)
    typist.ok("build", "--lane=lab")
    assert image_layers(lab, "spark-1") == image_layers(lab, "spark-2")


def running(lab: Lab, node: str) -> list[str]:
    return lab.out(node, "docker", "ps", "--format", "{{.Names}}").split()


def test_killed_in_start_heals(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=lab")
    typist.ok("stop", "--lane=lab")
    line = ("start", "--lane=lab", *SCRIPTED)
    slow = (*line, "--set", "script=--boot-seconds 600")
    kill_when(typist, lambda: running(lab, "spark-1"), *slow)
    typist.ok(*line, "--yes")
    labels = [
        lab.out(n, "docker", "ps", "--format", '{{.Label "sparkyard.hash"}}') for n in ("spark-1", "spark-2")
    ]
    typist.ok("stop", "--lane=lab")
    typist.ok(*line)
    again = [
        lab.out(n, "docker", "ps", "--format", '{{.Label "sparkyard.hash"}}') for n in ("spark-1", "spark-2")
    ]
    assert labels == again
    assert all(labels)


# --- real faults ------------------------------------------------------------------------------------------------------------


def test_a_flipped_byte_with_size_and_time_kept_is_found_and_only_that_file_copied(
    lab: Lab, typist: Typist
) -> None:
    typist.ok("download", "--lane=lab")
    whole = models(lab, "spark-2")
    (victim,) = (lab.own("spark-2") / DATA / "models").rglob("*.gguf")
    before = victim.stat()
    with victim.open("r+b") as stream:
        stream.seek(1_000_000)
        byte = stream.read(1)
        stream.seek(1_000_000)
        stream.write(bytes([byte[0] ^ 1]))
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    untouched = {p: p.stat().st_ino for p in victim.parent.iterdir() if p != victim and p.is_file()}
    said = typist.ok("download", "--lane=lab")
    assert said.changed() == {"spark-1": 0, "spark-2": 1}
    assert victim.name in json.dumps(said.events)
    assert models(lab, "spark-2") == whole
    assert {p: p.stat().st_ino for p in untouched} == untouched


def test_a_full_disk_on_a_worker_is_refused_before_the_first_byte(lab: Lab, typist: Typist) -> None:
    forget(lab, "spark-1", "spark-2")
    faults.small_disk("spark-2", 100_000_000)
    faults.hub_requests(forget=True)
    try:
        said = typist.json("download", "--lane=lab")
        assert said.status == 1
        (failed,) = said.of("step-failed")
        assert failed["node"] == "spark-2"
        assert "100.0 MB free" in failed["message"]
        assert models(lab, "spark-1") == {}
        assert not [r for r in faults.hub_requests() if "/resolve/" in r["path"]]
    finally:
        faults.whole_disk("spark-2")


def test_a_link_cut_in_the_middle_of_a_copy_is_told_and_the_next_run_goes_on(
    lab: Lab, typist: Typist
) -> None:
    typist.ok("download", "--lane=lab")
    whole = models(lab, "spark-2")
    forget(lab, "spark-2")
    faults.shape("spark-2", "200mbit")
    process = typist.start("download", "--lane=lab", "--json")
    until(lambda: big(lab.own("spark-2") / DATA / "models", 20_000_000))
    faults.cut_link("spark-2")
    out, _err = process.communicate(timeout=LIMIT)
    assert process.returncode in (1, 4)
    assert "198.18.1.2" in out
    faults.mend_link("spark-2")
    faults.shape("spark-2", None)
    assert big(lab.own("spark-2") / DATA / "models", 20_000_000)
    typist.ok("download", "--lane=lab")
    assert models(lab, "spark-2") == whole


def test_a_second_sparkyard_is_told_who_holds_the_lock_and_the_lock_dies_with_its_holder(
    lab: Lab, typist: Typist
) -> None:
    typist.ok("download", "build", "--lane=lab")
    typist.ok("stop", "--lane=lab")
    holder = typist.start("start", "--lane=lab", *SCRIPTED, "--set", "script=--boot-seconds 6000")
    until(lambda: running(lab, "spark-1"))
    second = typist.json("download", "--lane=lab")
    assert second.status == 5
    assert f"pid {holder.pid}" in second.failures()
    assert typist.json("status").status == 1, "looking takes no lock"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    until(lambda: typist.json("download", "--lane=lab").status == 0)
    typist.ok("stop", "--lane=lab")


def test_a_wrong_host_key_is_refused_by_every_path(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=lab")
    old = lab.own("spark-1") / "home" / ".ssh" / "known_hosts"
    kept = old.read_bytes()
    faults.new_host_key("spark-2")
    try:
        said = typist.json("download", "--lane=lab")
        assert said.status == 4
        assert "host key of 198.18.0.2 is not the one on record" in said.failures()
        assert said.failures().count("SHA256:") == 2
        rsync = lab.run("spark-1", "ssh", "-o", "BatchMode=yes", "spark-2", "true", check=False)
        assert rsync.returncode == 255
        refused = typist.json("trust")
        assert refused.status == 1
        assert "other keys are on record" in refused.failures()
        typist.ok("trust", "--replace", "--yes")
        typist.ok("download", "--lane=lab")
    finally:
        old.write_bytes(kept)


def test_a_worker_killed_while_booting_is_named_with_its_last_lines(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=lab")
    typist.ok("stop", "--lane=lab")
    process = typist.start("start", "--lane=lab", *SCRIPTED, "--set", "script=--boot-seconds 6000", "--json")
    until(lambda: running(lab, "spark-1"))
    faults.kill_container("spark-2", "sparkyard-lab-follower-1")
    out, _err = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    failed = next(e for e in map(json.loads, out.splitlines()) if e["type"] == "step-failed")
    words = json.dumps(failed)
    assert "sparkyard-lab-follower-1) ended with exit code 137" in failed["message"]
    assert "last lines of spark-2" in words
    assert "last lines of spark-1" in words
    assert running(lab, "spark-1") == running(lab, "spark-2") == []


def test_interrupted_start_leaves_nothing_of_ours_running(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "--lane=lab")
    typist.ok("stop", "--lane=lab")
    process = typist.start("start", "--lane=lab", *SCRIPTED, "--set", "script=--boot-seconds 6000", "--json")
    until(lambda: running(lab, "spark-1"))
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, out
    assert running(lab, "spark-1") == running(lab, "spark-2") == []


def test_only_labelled_containers_are_ever_stopped(lab: Lab, typist: Typist) -> None:
    typist.ok("download", "build", "start", "--lane=lab", *SCRIPTED)
    image = "sparkyard-lab/busybox-base:latest"
    lab.run("spark-1", "docker", "run", "-d", "--name", "other", "--network", "none", image, "sleep", "1000")
    try:
        typist.ok("stop", "--lane=lab")
        assert running(lab, "spark-1") == ["other"]
    finally:
        lab.run("spark-1", "docker", "rm", "--force", "other")


def test_a_limit_that_start_refuses_is_refused_before_the_first_verb_acts(lab: Lab, typist: Typist) -> None:
    said = typist.json("download", "build", "start", "--lane=lab", "--limit=spark-1")
    assert said.status == 2
    assert "--limit leaves out spark-2, and start needs every rank of lane lab" in said.failures()
    assert said.of("run-start") == []


VERBS = (
    ("config",),
    ("show",),
    ("lock",),
    ("lab.status",),
    ("render", "--out=OUT"),
    ("status",),
    ("logs",),
    ("trust",),
    ("download", "--check"),
    ("build", "--check"),
    ("start", "--check"),
    ("verify",),
    ("restart", "--yes"),
    ("adopt", "--from=~/.local/share/sparkyard/models"),
    ("stop",),
)


@pytest.mark.parametrize("line", VERBS, ids=[v[0] for v in VERBS])
def test_every_verb_speaks_valid_json(
    lab: Lab, typist: Typist, line: tuple[str, ...], tmp_path: Path
) -> None:
    if line[0] == "config":
        typist.ok("download", "build", "start", "--lane=lab")
    said = typist.json(*(word.replace("OUT", str(tmp_path)) for word in line))
    assert said.status == 0, said.failures()
    assert said.events  # each as the schema has it: the typist looks
