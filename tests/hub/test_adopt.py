"""Files that the person already has: a Hub cache, a kit's folder, files of another filesystem."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess

import pytest
from huggingface_hub import snapshot_download

from sparkyard.lab.hub import Hub
from tests.hub.checkpoints import REPO, Project, flip, make_repository

SIZES = {
    "config.json": 700,
    "model.safetensors": 6_000_000,
    "sub/tokenizer.json": 30_000,
    "twin.safetensors": 6_000_000,
}


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


def contents(folder):
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


def nothing_to_do(project, hub):
    hub.faults.forget()
    assert project.run() == 0
    assert {kind for kind, _ in project.kinds} == {"step-ok"}
    assert hub.requests == []


@pytest.mark.parametrize("part", ["", "snapshot"])
def test_a_hub_cache_is_linked_and_nothing_is_downloaded(hub, project, tmp_path, part):
    cache = tmp_path / "cache"
    snapshot = snapshot_download(REPO, cache_dir=cache, endpoint=hub.url)
    before = contents(cache)
    assert project.adopt(type(cache)(snapshot) if part else cache) == 0
    assert ("step-changed", "checkpoint:small@spark-1") in project.kinds
    assert contents(cache) == before
    model = project.path("model.safetensors")
    assert model.stat().st_nlink == 2
    assert not model.is_symlink()
    nothing_to_do(project, hub)
    shutil.rmtree(cache)
    nothing_after = project.run()
    assert nothing_after == 0


def test_a_flat_folder_is_matched_by_name_and_the_rest_is_downloaded(hub, project, tmp_path):
    kit = tmp_path / "kit"
    kit.mkdir()
    shutil.copy(tmp_path / "hub" / REPO / "model.safetensors", kit)
    shutil.copy(tmp_path / "hub" / REPO / "sub" / "tokenizer.json", kit)
    assert project.adopt(kit) == 0
    assert "2 of 4 files may be here already; 2 (6.0 MB) left to `invoke download`" in project.said
    assert project.run(check=True) == 6
    hub.faults.forget()
    assert project.run() == 0
    assert sum(r.sent for r in hub.requests if r.path.startswith("/cdn/")) == SIZES["twin.safetensors"]


def test_wrong_content_is_left_alone_and_not_taken(hub, project, tmp_path):
    kit = tmp_path / "kit"
    kit.mkdir()
    shutil.copy(tmp_path / "hub" / REPO / "model.safetensors", kit)
    flip(kit / "model.safetensors")
    before = contents(kit)
    assert project.adopt(kit) == 0
    assert "model.safetensors: what is offered has other content" in project.said
    assert contents(kit) == before
    assert not project.path("model.safetensors").exists()


def test_the_right_one_of_several_is_found(hub, project, tmp_path):
    kit = tmp_path / "kit"
    for name in ("a", "b"):
        (kit / name).mkdir(parents=True)
        shutil.copy(tmp_path / "hub" / REPO / "model.safetensors", kit / name)
    flip(kit / "a" / "model.safetensors")
    assert project.adopt(kit) == 0
    assert project.path("model.safetensors").stat().st_ino == (kit / "b" / "model.safetensors").stat().st_ino


def test_a_folder_that_is_not_there_or_fits_nothing_is_told(hub, project, tmp_path):
    assert project.adopt(tmp_path / "none") == 0
    assert f"no folder {tmp_path / 'none'} here" in project.said
    (tmp_path / "empty").mkdir()
    assert project.adopt(tmp_path / "empty") == 0
    assert "nothing in" in project.said


def test_a_changed_original_is_noticed_as_it_is_the_same_file(hub, project, tmp_path):
    kit = tmp_path / "kit"
    shutil.copytree(tmp_path / "hub" / REPO, kit)
    assert project.adopt(kit) == 0
    flip(kit / "model.safetensors")
    assert project.run() == 0
    assert "model.safetensors: content differs" in project.said
    assert (
        project.path("model.safetensors").read_bytes()
        == (tmp_path / "hub" / REPO / "model.safetensors").read_bytes()
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_files_of_another_filesystem_are_copied_when_there_is_room(hub, project, tmp_path):
    kit = tmp_path / "kit"
    kit.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(kit)], check=True)
    try:
        shutil.copytree(tmp_path / "hub" / REPO, kit, dirs_exist_ok=True)
        assert project.adopt(kit) == 0
        assert "copied from" in project.said
        assert project.path("model.safetensors").stat().st_nlink == 1
        nothing_to_do(project, hub)
    finally:
        subprocess.run(["umount", str(kit)], check=True)
