"""Checkpoints that are not whole: told when they are locked, and by each node before it reads a file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from sparkyard.actions import Prove
from sparkyard.errors import StepFailed
from sparkyard.executors.prove import command
from sparkyard.hub import Hub as Client
from sparkyard.lab.hub import Hub
from sparkyard.lock import Lock, Locked, write_lock
from sparkyard.model import RemoteFile
from sparkyard.resolve import own_lock_path
from tests.hub.checkpoints import REPO, Project, bytes_of, safetensors_of

INDEX = "model.safetensors.index.json"
NAMES = [f"model-0000{n}-of-00004.safetensors" for n in (1, 2, 3, 4)]


def index(names: list[str]) -> bytes:
    return json.dumps(
        {"metadata": {}, "weight_map": {f"t{n}": name for n, name in enumerate(names)}}
    ).encode()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "hub" / REPO
    folder.mkdir(parents=True)
    (folder / INDEX).write_bytes(index(NAMES))
    (folder / "config.json").write_bytes(b"{}")
    for seed, name in enumerate(NAMES):
        (folder / name).write_bytes(safetensors_of(90_000 + seed, seed))
    return folder


@pytest.fixture
def hub(root, tmp_path):
    with Hub(tmp_path / "hub") as made:
        yield made


def refusal(project: Project) -> str:
    with pytest.raises(StepFailed) as failure:
        project.manifests()
    assert not own_lock_path(project.lane).exists()
    return str(failure.value)


def test_a_whole_checkpoint_is_locked_and_little_is_read_for_it(hub, tmp_path):
    assert len(Project(tmp_path, hub.url).manifests()["small"].files) == 6
    assert sum(r.sent for r in hub.requests if r.path.startswith("/cdn/")) <= 4 * 64 * 1024


def test_a_shard_that_the_index_names_and_the_tree_lacks_is_refused(hub, root, tmp_path):
    (root / NAMES[2]).unlink()
    said = refusal(Project(tmp_path, hub.url))
    assert f"{INDEX} names {NAMES[2]}, which is not in the listing" in said
    assert "nothing was locked" in said


def test_a_recipe_that_takes_two_shards_of_four_asks_for_no_more(hub, root, tmp_path):
    (root / NAMES[0]).unlink()
    files = ["config.json", INDEX, *NAMES[2:]]
    assert len(Project(tmp_path, hub.url, files=files).manifests()["small"].files) == 4


@pytest.mark.parametrize(("change", "words"), [(-936, "is 936 bytes short"), (5, "is 5 bytes too long")])
def test_a_header_that_does_not_end_its_file_is_refused(hub, root, tmp_path, change, words):
    os.truncate(root / NAMES[3], 90_003 + change)
    assert f"{NAMES[3]} {words}" in refusal(Project(tmp_path, hub.url))


def test_a_long_header_is_read_whole(hub, root, tmp_path):
    tensors = {f"t{n}": {"data_offsets": [n, n + 1]} for n in range(5000)}
    header = json.dumps(tensors).encode()
    assert len(header) > 100_000
    (root / NAMES[0]).write_bytes(len(header).to_bytes(8, "little") + header + bytes(5000))
    project = Project(tmp_path, hub.url)
    project.manifests()
    (root / NAMES[0]).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4999))
    own_lock_path(project.lane).unlink()
    assert "is 1 bytes short" in refusal(project)


def test_what_is_no_safetensors_file_is_refused(hub, root, tmp_path):
    (root / NAMES[1]).write_bytes(bytes_of(500))
    assert f"{NAMES[1]} does not begin as a safetensors file" in refusal(Project(tmp_path, hub.url))


def locked_anyway(project: Project, hub: Hub) -> None:
    """A lock that was made without the checks."""
    manifest = Client(hub.url).manifest(REPO, "main")
    write_lock(own_lock_path(project.lane), Lock({"small": Locked("main", manifest, ("*",))}))


def test_a_node_tells_a_file_that_was_published_broken(hub, root, tmp_path):
    os.truncate(root / NAMES[3], 90_003 - 936)
    project = Project(tmp_path, hub.url)
    locked_anyway(project, hub)
    assert project.run() == 1
    assert f"{NAMES[3]} is 936 bytes short" in project.said
    assert "as they were published, and not whole" in project.said
    assert not project.path().with_suffix(".seal.json").exists()


def test_a_node_tells_an_index_that_names_more_than_the_lock(hub, root, tmp_path):
    (root / NAMES[2]).unlink()
    project = Project(tmp_path, hub.url)
    locked_anyway(project, hub)
    assert project.run() == 1
    assert f"{INDEX} names {NAMES[2]}, which is not in the lock" in project.said


# the script itself, with and without python3


def without_python(folder: Path) -> dict[str, str]:
    """An environment whose PATH has the usual programs and no python3."""
    folder.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("python"):
            (folder / program.name).symlink_to(program)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("python", [True, False])
def test_both_provers_tell_the_same(root, tmp_path, python):
    os.truncate(root / NAMES[3], 90_003 - 936)
    (root / NAMES[2]).unlink()
    files = tuple(_remote(root, name) for name in (INDEX, "config.json", NAMES[0], NAMES[1], NAMES[3]))
    patterns = ("config.json", "*.safetensors", INDEX)
    action = Prove(
        str(root),
        files,
        f"{tmp_path}/ledger/l.tsv",
        held=files,
        seal=f"{tmp_path}/seal",
        seal_text="{}",
        patterns=patterns,
    )
    words = command(action)
    env = None if python else without_python(tmp_path / "bin")
    done = subprocess.run(words.argv(), input=words.stdin, env=env, capture_output=True, check=True)
    said = done.stdout.decode().splitlines()
    assert f"header\t{NAMES[3]}\tis 936 bytes short" in said
    assert f"broken\t{NAMES[3]}\tis 936 bytes short" in said
    assert f"absent\t{INDEX}\t{NAMES[2]}" in said
    assert "sealed" not in said
    assert said[0] == ("tool\tpython3" if python else said[0])
    assert sorted(line for line in said if line.startswith("proven")) == sorted(
        f"proven\t{name}" for name in (INDEX, "config.json", NAMES[0], NAMES[1])
    )


@pytest.mark.parametrize("python", [True, False])
def test_both_provers_seal_what_is_whole(root, tmp_path, python):
    files = tuple(_remote(root, name) for name in (INDEX, *NAMES[2:]))
    action = Prove(
        str(root),
        files,
        f"{tmp_path}/ledger/l.tsv",
        held=files,
        seal=f"{tmp_path}/seal",
        seal_text="{}",
        patterns=(INDEX, *NAMES[2:]),
    )
    words = command(action)
    env = None if python else without_python(tmp_path / "bin")
    done = subprocess.run(words.argv(), input=words.stdin, env=env, capture_output=True, check=True)
    assert "sealed" in done.stdout.decode().splitlines(), done.stdout.decode()


def _remote(root: Path, name: str) -> RemoteFile:
    content = (root / name).read_bytes()
    return RemoteFile(name, len(content), sha256=hashlib.sha256(content).hexdigest())
