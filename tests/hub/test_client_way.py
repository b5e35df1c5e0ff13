"""The client's own download, in its own process: the same result, watched and ended."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from dataclasses import replace

import pytest

from sparkyard.actions import Fetch
from sparkyard.errors import Interrupted, StepFailed
from sparkyard.executors import client
from sparkyard.executors.fetch import fetch
from sparkyard.lab.hub import Hub
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.hub.checkpoints import REPO, Project, make_repository
from tests.machine.typed import until

SIZES = {"config.json": 700, "model.safetensors": 12_000_000, "sub/x y.bin": 11_000_000}


@pytest.fixture(autouse=True)
def no_xet(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


@pytest.fixture
def hub(tmp_path):
    make_repository(tmp_path / "hub", SIZES)
    with Hub(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def project(tmp_path, hub):
    made = Project(tmp_path, hub.url)
    made.manifests()
    return made


@pytest.fixture
def around(project):
    made = project.surroundings()
    yield made
    made.close()


@pytest.fixture
def act(project, hub, around):
    def run(**changes):
        project.events = []
        step = Step("checkpoint", "small", "spark-1", "x", lambda _: Verdict("ok"))
        manifest = project.manifest
        ledger = str(project.folder / "head" / "ledger" / "l.tsv")
        action = Fetch(manifest, str(project.path()), manifest.files, hub.url, ledger, "client")
        fetch(replace(action, **changes), "spark-1", StepWorld(around, step, project.events.append, {}))

    return run


def same(project, tmp_path):
    for name in SIZES:
        here, there = project.path(name).read_bytes(), (tmp_path / "hub" / REPO / name).read_bytes()
        assert hashlib.sha256(here).digest() == hashlib.sha256(there).digest(), name


def test_the_client_fetches_and_every_file_is_proven(project, act, tmp_path):
    act()
    same(project, tmp_path)
    assert not (project.path() / ".incoming").exists()
    assert [e for e in project.events if "progress" in e.data]
    lines = (project.folder / "head" / "ledger" / "l.tsv").read_text().splitlines()
    assert len(lines) == len(SIZES)


def test_files_that_a_killed_run_left_whole_are_not_fetched_again(project, act, hub, tmp_path):
    incoming = project.path(".incoming/model.safetensors")
    incoming.parent.mkdir(parents=True)
    incoming.write_bytes((tmp_path / "hub" / REPO / "model.safetensors").read_bytes())
    orphan = project.path(".incoming/.cache/huggingface/download/x.incomplete")
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x")
    hub.faults.forget()
    act()
    same(project, tmp_path)
    assert not any("model.safetensors" in r.path for r in hub.requests)
    assert "removed 1 orphaned partial file" in project.said


def test_wrong_bytes_are_fetched_once_more_then_told(project, act, hub):
    hub.faults.set(wrong=("model.safetensors",))
    with pytest.raises(StepFailed, match="content differs from the listing, twice") as failure:
        act()
    assert "2 of its 3 files are here" in str(failure.value)
    assert not project.path("model.safetensors").exists()


def test_a_gated_repository_is_told(act, hub):
    hub.faults.set(gated=(REPO,))
    with pytest.raises(StepFailed, match="is gated"):
        act()


def test_a_cancel_ends_the_client(project, act, hub, around):
    hub.faults.set(rate=1_000_000)

    folder = project.path()

    def stop():
        until(lambda: any(name.endswith(".incomplete") for _, _, names in os.walk(folder) for name in names))
        around.stop.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(Interrupted):
        act()
    stopper.join()


def test_a_client_that_stalls_is_ended_and_told(project, act, hub, monkeypatch):
    impatient = functools.partial(client.ClientDownload, stalled=0.0)
    monkeypatch.setattr("sparkyard.executors.fetch.ClientDownload", impatient)
    with pytest.raises(StepFailed, match="no byte came"):
        act()
    assert "starts again without Xet" in project.said


def test_a_rate_limit_of_the_client_is_said_and_no_stall(project, act, hub, monkeypatch, tmp_path):
    hub.faults.set(busy=2, retry_after=1, only="*/resolve/*")
    act()
    same(project, tmp_path)
    assert "Rate limited. Waiting 2.0s" in project.said
