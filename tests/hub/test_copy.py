"""Copies to a worker behind a real sshd: proven there, healed, resumed, refused for wrong keys and full disks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard.executors import copy as copying
from sparkyard.lab.hub import Hub
from sparkyard.patience import Patience
from sparkyard.trust import agreed, scan
from tests.hub.checkpoints import REPO, Project, flip, make_repository, on_disk, safetensors_of
from tests.machine import sshd as servers
from tests.machine.typed import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd needs root"),
    pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync"),
]
SIZES = {
    "config.json": 700,
    "model.safetensors": 24_000_000,
    "sub/x y.bin": 12_000_000,
    "sub/it's": 30,
    "empty": 0,
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(copying, "PATIENCE", Patience(base=0.01))


@pytest.fixture
def server(tmp_path):
    with servers.running(tmp_path / "sshd") as made:
        yield made


@pytest.fixture
def hub(tmp_path):
    make_repository(tmp_path / "hub", SIZES)
    with Hub(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def project(tmp_path, hub, server):
    """The management address leads nowhere: all that copies must take the link."""
    made = Project(tmp_path, hub.url, (server.node(),))
    made.keys.record(server.node(), agreed(scan(server.node())))
    return made


def same(project):
    for name in SIZES:
        here, there = project.path(name).read_bytes(), project.path(name, "spark-2").read_bytes()
        assert hashlib.sha256(here).digest() == hashlib.sha256(there).digest(), name


def copied(project):
    """What was copied in the last run, as its actions say."""
    done = [e for e in project.events if e.type == "step-changed" and e.step == "checkpoint:small@spark-2"]
    return [words for e in done for words in e.data["actions"] if words.startswith("rsync")]


def test_copied_proven_and_sealed_then_nothing_more(project, server):
    assert project.run() == 0
    same(project)
    assert not (project.path(node="spark-2") / ".incoming").exists()
    assert project.path(node="spark-2").with_name(project.manifest.commit + ".seal.json").exists()
    before = server.connections()
    assert project.run() == 0
    assert {kind for kind, _ in project.kinds} == {"step-ok"}
    assert server.connections() == before + 1


def test_a_flipped_byte_on_the_worker_is_found_and_only_that_file_copied(project):
    project.run()
    flip(project.path("sub/x y.bin", "spark-2"))
    assert project.run() == 0
    same(project)
    assert "sub/x y.bin: content differs" in project.said
    assert len(copied(project)) == 1
    assert "rsync 1 file, 12000000 bytes" in copied(project)[0]


def test_a_partial_copy_goes_on_where_it_was(project):
    project.run()
    whole = project.path("model.safetensors", "spark-2")
    incoming = project.path(".incoming/model.safetensors", "spark-2")
    incoming.parent.mkdir()
    whole.rename(incoming)
    os.truncate(incoming, 20_000_000)
    inode = incoming.stat().st_ino
    assert project.run() == 0
    same(project)
    assert whole.stat().st_ino == inode


def test_a_partial_copy_with_wrong_bytes_is_sent_again_in_the_same_run(project):
    project.run()
    whole = project.path("model.safetensors", "spark-2")
    incoming = project.path(".incoming/model.safetensors", "spark-2")
    incoming.parent.mkdir()
    whole.rename(incoming)
    os.truncate(incoming, 20_000_000)
    flip(incoming)
    assert project.run() == 0
    same(project)


def test_a_whole_arrival_is_read_and_not_copied_again(project):
    project.run()
    incoming = project.path(".incoming/model.safetensors", "spark-2")
    incoming.parent.mkdir()
    project.path("model.safetensors", "spark-2").rename(incoming)
    assert project.run() == 0
    same(project)
    assert copied(project) == []
    incoming.parent.mkdir()
    project.path("model.safetensors", "spark-2").rename(incoming)
    flip(incoming)
    assert project.run() == 0
    same(project)
    assert len(copied(project)) == 1


def test_a_cancelled_copy_leaves_nothing_running_and_goes_on(project, server):
    project.run()
    shutil.rmtree(project.path(node="spark-2"))
    around = project.surroundings()
    part = project.path(".incoming/model.safetensors", "spark-2")

    def stop():
        until(part.exists)
        around.interrupted.set()
        around.stop.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert project.run(around=around) in (0, 130)
    stopper.join()
    assert project.run() == 0
    same(project)


KILLED = """
import sys
from pathlib import Path
from dataclasses import replace
from sparkyard.executors import copy
from tests.hub.checkpoints import Project
from tests.machine.sshd import Sshd

def slow(*given, words=copy.rsync):
    command = words(*given)
    return replace(command, words=(*command.words[:1], "--bwlimit=20m", *command.words[1:]))

copy.PROCESSES = 1
copy.rsync = slow  # else it may be whole before it is killed
folder, url, port = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
Project(folder, url, (Sshd(folder / "sshd", "127.0.0.2", port).node(),)).run()
"""


def test_a_copy_goes_on_after_a_kill(hub, project, server, tmp_path):
    (tmp_path / "hub" / REPO / "model.safetensors").write_bytes(safetensors_of(200_000_000))
    assert project.run(around=None) == 0
    shutil.rmtree(project.path(node="spark-2"))
    part = project.path(".incoming/model.safetensors", "spark-2")
    words = [sys.executable, "-c", KILLED, str(tmp_path), hub.url, str(server.port)]
    child = subprocess.Popen(words, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    until(lambda: child.poll() is not None or on_disk(part) > 20_000_000)
    child.kill()
    child.wait()
    assert child.returncode == -9
    assert project.run() == 0
    same(project)


def test_a_link_that_breaks_is_told_and_the_next_run_goes_on(project, server, tmp_path):
    project.run()
    shutil.rmtree(project.path(node="spark-2"))
    worker = replace(server.node(), link=replace(server.node().link, address="127.0.0.77"))
    broken = Project(tmp_path, project.inventory.hub_endpoint, (worker,))
    broken.keys.record(worker, project.keys.of(server.node()))
    assert broken.run() == 1
    assert "the connection to 127.0.0.77 broke" in broken.said
    assert not list(project.path(node="spark-2").rglob("model*"))
    assert project.run() == 0
    same(project)


def test_a_wrong_host_key_is_refused_by_rsync_too(project, server, tmp_path, monkeypatch):
    project.run()
    shutil.rmtree(project.path(node="spark-2"))
    servers.make_key(tmp_path / "other")
    wrong = tmp_path / "wrong"
    wrong.write_text(f"spark-2 {' '.join((tmp_path / 'other.pub').read_text().split()[:2])}\n")
    monkeypatch.setattr(project.keys, "write_merged", lambda _nodes: wrong)
    assert project.run() == 4
    assert "is not the one on record" in project.said
    assert "SHA256:" in "".join(str(event.data) for event in project.events)
    assert not list(project.path(node="spark-2").rglob("model*"))


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_on_the_worker_is_refused_before_the_first_byte(project, hub, server, tmp_path):
    project.manifests()
    hub.faults.forget()
    with small_disk(tmp_path / "sshd" / "root" / "models", "20m"):
        assert project.run() == 1
        assert "free on" in project.said
        assert not project.path("config.json").exists()
        assert not any(r.path.startswith("/cdn/") for r in hub.requests)


def test_a_disk_that_fills_up_during_the_copy_is_told(project, server, tmp_path, monkeypatch):
    models = tmp_path / "sshd" / "root" / "models"
    real = copying.Copying._run

    def fill_then_run(self, *words):
        (models / "other").write_bytes(bytes(30_000_000))
        return real(self, *words)

    with small_disk(models, "50m"):
        monkeypatch.setattr(copying, "PROCESSES", 1)
        monkeypatch.setattr(copying.Copying, "_run", fill_then_run)
        assert project.run() == 1
        assert "is full; what has arrived is kept" in project.said
        (models / "other").unlink()
        monkeypatch.setattr(copying.Copying, "_run", real)
        assert project.run() == 0
        same(project)


def test_what_the_head_lacks_is_told_when_the_head_is_left_out(project):
    project.run()
    shutil.rmtree(project.path(node="spark-2"))
    project.path("config.json").unlink()
    plan = project.plan().chosen(["spark-2"], [])
    assert project.run_plan(plan) == 1
    assert "the head's copy in" in project.said


def test_without_python_the_node_proves_with_openssl_or_sha256sum(project, server, tmp_path):
    project.run()
    root = tmp_path / "few"
    root.mkdir()
    tools = "sh find stat cat mkdir tr touch grep sort wc mktemp mv rm sync chmod cp ln dirname base64 head setsid sleep kill env id uname timeout printf rsync sed sha256sum sha1sum ip od tail cut"
    for tool in tools.split():
        if real := shutil.which(tool):
            (root / tool).symlink_to(real)
    server_two = servers.running(tmp_path / "two", "127.0.0.3", set_env=f"PATH={root}")
    with server_two as other:
        project = Project(tmp_path, project.inventory.hub_endpoint, (other.node(),))
        project.keys.record(other.node(), agreed(scan(other.node())))
        assert project.run() == 0, project.said
        same(project)
        flip(project.path("model.safetensors", "spark-2"))
        flip(project.path("config.json", "spark-2"))
        assert project.run() == 0, project.said
        same(project)
        assert project.run(check=True) == 0
        (root / "openssl").symlink_to(shutil.which("openssl"))
        flip(project.path("model.safetensors", "spark-2"))
        assert project.run() == 0, project.said
        same(project)
