"""Manifests come from the lock, and from the hub once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sparkyard.errors import StepFailed
from sparkyard.lab.hub import Hub
from sparkyard.lock import Lock, Locked, read_lock, write_lock
from sparkyard.model import Manifest
from sparkyard.resolve import own_lock_path
from tests.hub.checkpoints import REPO, Project, make_repository


@pytest.fixture
def hub(tmp_path):
    make_repository(tmp_path / "hub", {"config.json": 70, "a.safetensors": 90, "sub/b.safetensors": 80})
    with Hub(tmp_path / "hub") as made:
        yield made


def test_the_hub_is_asked_once_and_the_answer_kept(hub, tmp_path):
    project = Project(tmp_path, hub.url, files=["*.safetensors"])
    first = project.manifests()
    assert [f.path for f in first["small"].files] == ["a.safetensors", "sub/b.safetensors"]
    assert all(len(f.sha256) == 64 for f in first["small"].files)
    kept = json.loads(own_lock_path(project.lane).read_text())["checkpoints"]["small"]
    assert (kept["repo"], kept["revision"], kept["commit"]) == (REPO, "main", first["small"].commit)
    hub.faults.set(offline=True)
    assert project.manifests() == first


def test_small_files_have_a_blob_id(hub, tmp_path):
    [small] = [f for f in Project(tmp_path, hub.url).manifest.files if f.path == "config.json"]
    assert len(small.blob) == 40
    assert small.sha256 == ""


def test_nothing_is_written_under_check(hub, tmp_path):
    project = Project(tmp_path, hub.url)
    assert project.manifests(keep=False)["small"].files
    assert not own_lock_path(project.lane).exists()


def test_a_stale_lock_is_said_and_resolved_anew(hub, tmp_path):
    project = Project(tmp_path, hub.url)
    stale = Locked("v1", Manifest(REPO, "d" * 40, ()), ("*",))
    write_lock(own_lock_path(project.lane), Lock({"small": stale, "other": stale}))
    said: list[str] = []
    manifest = project.manifests(say=said.append)["small"]
    assert said == [f"checkpoint small: the lock is for {REPO}@v1, the recipe says main"]
    lock = read_lock(own_lock_path(project.lane))
    assert lock is not None
    assert lock.checkpoints["small"].manifest == manifest
    assert lock.checkpoints["other"] == stale


def test_the_recipes_lock_serves_when_the_person_has_none(hub, tmp_path):
    project = Project(tmp_path, hub.url)
    manifest = project.manifests(keep=False)["small"]
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    write_lock(recipe / "recipe.lock.json", Lock({"small": Locked("main", manifest)}))
    hub.faults.set(offline=True)
    project.lane = replace(project.lane, recipe_folder=recipe)
    assert project.manifests() == {"small": manifest}
    assert not own_lock_path(project.lane).exists()


def test_no_network_and_no_lock_says_what_is_missing(hub, tmp_path):
    project = Project(tmp_path, "http://127.0.0.1:9")
    with pytest.raises(StepFailed) as failure:
        project.manifests(wait=lambda _: None)
    assert "no network to http://127.0.0.1:9" in str(failure.value)
    assert "asked for checkpoint small of lane T" in str(failure.value)
