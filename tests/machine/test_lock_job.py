"""Locks as a person types them: a build from a git source and a base in a registry, on two simulated Sparks."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sparkyard import lab as simulated
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Typist, until

pytestmark = pytest.mark.machine
REGISTRY = "127.0.0.1:5055"
REPO = "https://git.example/maker/engine"
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example")
DATA = "home/.local/share/sparkyard"


def commit(folder: Path, text: str) -> str:
    """A commit whose file says ``text``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "said.txt").write_text(text)
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", text)):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    done = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def registry(lab: Lab, folder: Path) -> Iterator[None]:
    """Debian's registry on spark-1's loopback, with the lab's busybox in it as ``base:1``."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed")
    (folder / "registry.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\nhttp: {{addr: '{REGISTRY}'}}\n"
    )
    words = simulated.enter_words("spark-1", (program, "serve", str(folder / "registry.yml")), cwd="/")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        image = lab.state.busybox_image
        until(lambda: (folder / "log").exists() and b"listening on" in (folder / "log").read_bytes())
        lab.out("spark-1", "docker", "tag", image, f"{REGISTRY}/base:1")
        lab.out("spark-1", "docker", "push", f"{REGISTRY}/base:1")
        yield
    finally:
        process.terminate()
        process.wait()


def write_recipe(folder: Path, pin: str) -> None:
    """The lab's recipe, its image built from a git source on a base in a registry."""
    shutil.copytree(PROJECT / "recipes" / "lab", folder, dirs_exist_ok=True)
    recipe = yaml.safe_load((folder / "recipe.yml").read_text())
    source = {"kind": "chosen", "why": "test"}
    recipe["lane"] = "L"
    recipe["image"]["name"] = "locked"
    recipe["image"]["build"] = {
        "base": "registry.example/base:1",
        "context": "context",
        "dockerfile": "Dockerfile.git",
        "git": {"engine": {"url": REPO, "commit": pin, "source": source}},
    }
    (folder / "context").mkdir(exist_ok=True)
    (folder / "context" / "own.txt").write_text("own\n")
    (folder / "Dockerfile.git").write_text("ARG BASE\nFROM ${BASE}\nCOPY . /opt/\n")
    (folder / "recipe.yml").write_text(yaml.safe_dump(recipe))


@pytest.fixture
def project(lab: Lab, tmp_path: Path) -> Iterator[tuple[Typist, Path]]:
    """A typist, and the folder that holds recipe, repository and registry."""
    folder = tmp_path / "inventory"
    shutil.copytree(PROJECT / "inventory" / "lab", folder, ignore=shutil.ignore_patterns("locks"))
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    mirrors = {"https://git.example/": f"{tmp_path}/git/", "registry.example/": f"{REGISTRY}/"}
    hosts["all"]["vars"]["mirrors"] = mirrors
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    with registry(lab, tmp_path):
        yield Typist(folder), tmp_path
    for node in ("spark-1", "spark-2"):
        remove = "docker images -q sparkyard/locked | xargs -r docker rmi --force"
        lab.run(node, "sh", "-c", remove, check=False)  # children of children stay: the lab itself goes soon
        for name in ("git", "contexts"):
            shutil.rmtree(lab.own(node) / DATA / name, ignore_errors=True)


def test_a_build_from_locked_sources(lab: Lab, project: tuple[Typist, Path]) -> None:
    typist, folder = project
    whole = commit(folder / "git" / "maker" / "engine", "first")
    write_recipe(folder / "recipes" / "l", whole[:12])
    line = ("--lane=L", f"--recipes={folder / 'recipes'}")

    refused = typist.json("build", *line)
    assert refused.status == 2
    assert "has not been confirmed; nothing was locked" in refused.failures()
    assert whole in refused.failures()
    assert not (typist.inventory / "locks").exists()

    assert typist.json("lock", *line, "--check").status == 6
    typist.ok("lock", *line, "--yes")
    kept = json.loads((typist.inventory / "locks" / "L.json").read_text())
    assert kept["git"]["image.build.git.engine"] == {"url": REPO, "asked": whole[:12], "commit": whole}
    assert kept["images"]["image.build.base"]["reference"] == "registry.example/base:1"
    typist.ok("lock", *line)

    shutil.move(folder / "git", folder / "away")  # the clone has it: no network is needed
    first = typist.ok("build", *line)
    assert first.changed() == {"spark-1": 1, "spark-2": 1}
    assert typist.ok("build", *line).changed() == {"spark-1": 0, "spark-2": 0}
    [image] = lab.out(
        "spark-2", "docker", "images", "--format", "{{.Repository}}:{{.Tag}}", "sparkyard/locked"
    ).split()
    for node in ("spark-1", "spark-2"):
        words = ("docker", "run", "--rm", "--network", "none", image, "/bin/busybox", "cat")
        assert lab.out(node, *words, "/opt/engine/said.txt", "/opt/own.txt") == "firstown"
    shutil.move(folder / "away", folder / "git")

    # a worker whose image has the right name and label, and other content
    other = f'FROM {image}\\nRUN ["/bin/busybox", "touch", "/other"]\\n'
    lab.run("spark-2", "sh", "-c", f"printf '{other}' | docker build --network none -t {image} -")
    healed = typist.ok("build", *line)
    assert healed.changed() == {"spark-1": 0, "spark-2": 1}

    # the tag of the base moved
    dockerfile = f"FROM {REGISTRY}/base:1\\nLABEL other=1\\n"
    lab.run("spark-1", "sh", "-c", f"printf '{dockerfile}' | docker build -t {REGISTRY}/base:1 -")
    lab.out("spark-1", "docker", "push", f"{REGISTRY}/base:1")
    moved = typist.json("lock", *line)
    assert moved.status == 1
    was = kept["images"]["image.build.base"]["digest"]
    assert f"image.build.base: registry.example/base:1 was {was}, is sha256:" in moved.failures()
    assert typist.ok("build", *line).changed() == {"spark-1": 0, "spark-2": 0}
    typist.ok("lock", *line, "--refresh", "--yes")
    assert typist.ok("build", *line).changed() == {"spark-1": 1, "spark-2": 1}


def test_a_locked_commit_that_is_gone_stops_the_build(lab: Lab, project: tuple[Typist, Path]) -> None:
    typist, folder = project
    engine = folder / "git" / "maker" / "engine"
    whole = commit(engine, "first")
    write_recipe(folder / "recipes" / "l", whole[:12])
    line = ("--lane=L", f"--recipes={folder / 'recipes'}")
    typist.ok("lock", *line, "--yes")
    shutil.rmtree(engine)
    commit(engine, "another history")
    shutil.rmtree(lab.own("spark-1") / DATA / "git")
    said = typist.json("build", *line)
    assert said.status == 1
    assert f"commit {whole} is not in {REPO} any more" in said.failures()
    assert not (lab.own("spark-1") / DATA / "contexts").exists()
