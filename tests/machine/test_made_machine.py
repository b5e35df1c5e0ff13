"""An image that a project's own scripts make, for real in the lab: made once, shipped with its labels, healed after it was cut short."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

FORK = "https://github.com/christopherowen/spark-ds41f"
REFERENCE = "vllm-ds41f-kkref:19f2c20ed4d6-r6d"
VLLM = "a00a6b07ff47deda27b9d9892bc8c79894a35ada"
BUILD = '  build: {base: "nvcr.io/nvidia/pytorch:26.07-py3", memory: 30000000000}\n'
MADE = f"""\
  made:
    git: {{url: "{FORK}", commit: "fc723fa2", source: {{kind: chosen, why: test}}}}
    steps: [[bin/spark, build, prepare], [bin/spark, build, image, --apply]]
    reference: "{REFERENCE}"
    labels: {{local.spark3.vllm.tree: {VLLM}}}
"""
NODES = ("spark-1", "spark-2")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twin recipe with an image that the fork's scripts make."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PROJECT / "tests" / "data" / "recipes" / "twin", folder / "twin")
    path = folder / "twin" / "recipe.yml"
    text = path.read_text()
    assert BUILD in text
    path.write_text(text.replace(BUILD, MADE))
    return folder


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    folder = tmp_path_factory.mktemp("inventory") / "stand-in"
    shutil.copytree(session_lab.folder / "stand-in", folder)
    return Typist(folder)


def names(lab: Lab, node: str) -> list[str]:
    words = ("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
    return [name for name in lab.out(node, *words).split() if name.startswith(("sparkyard/twin", "vllm-"))]


def forget(lab: Lab) -> None:
    for node in NODES:
        for name in names(lab, node):
            lab.run(node, "docker", "image", "rm", "--force", name)
    lab.run("spark-1", "sh", "-c", "rm -rf ~/.local/share/sparkyard/made")


def test_made_once_shipped_and_healed(lab: Lab, typist: Typist, recipes: Path) -> None:
    forget(lab)
    line = ("build", "--lane=twin", f"--recipes={recipes}", "--yes")
    first = typist.ok(*line)
    said = [event["message"] for event in first.of("step-output")]
    assert f"prepare: local.spark3.vllm.tree is at tree {VLLM}" in said
    assert f"image: {REFERENCE}" in said
    (ours,) = (name for name in names(lab, "spark-1") if name.startswith("sparkyard/"))
    for node in NODES:
        labels = json.loads(
            lab.out(node, "docker", "image", "inspect", "--format", "{{json .Config.Labels}}", ours)
        )
        assert labels["local.spark3.vllm.tree"] == VLLM
    assert typist.ok(*line).changed() == dict.fromkeys(NODES, 0)

    # Killed between the scripts' end and our name: named without another run of the steps.
    lab.run("spark-1", "docker", "image", "rm", ours)
    again = typist.ok(*line)
    assert again.changed()["spark-1"] == 1
    assert not [e for e in again.of("step-output") if "prepare" in e["message"]]

    # A worker's image with another label is told with both values, and replaced.
    lab.run(
        "spark-2",
        "sh",
        "-c",
        f"echo 'FROM {ours}' | docker build -q --label local.spark3.vllm.tree=0 -t {ours} -",
    )
    checked = typist.json(*line, "--check")
    assert checked.status == 6
    words = "\n".join(event["message"] for event in checked.events)
    assert f"label local.spark3.vllm.tree is '0', expected '{VLLM}'" in words
    assert typist.ok(*line).changed() == {"spark-1": 0, "spark-2": 1}


def test_a_step_that_fails_says_which_and_the_next_run_begins_anew(
    lab: Lab, typist: Typist, recipes: Path
) -> None:
    forget(lab)
    lab.run(
        "spark-1",
        "sh",
        "-c",
        f"echo 'FROM sparkyard-lab/engine-base:latest' | docker build -q -t {REFERENCE} -",
    )
    line = ("build", "--lane=twin", f"--recipes={recipes}", "--yes")
    failed = typist.json(*line)
    assert failed.status == 1
    assert f"step 2 of 2 that makes {REFERENCE} failed with status 1" in failed.failures()
    assert f"the image {REFERENCE} is there already" in failed.failures()
    lab.run("spark-1", "docker", "image", "rm", REFERENCE)
    assert typist.ok(*line).changed()["spark-1"] == 1
