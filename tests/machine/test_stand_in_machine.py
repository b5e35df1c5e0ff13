"""Stand-ins in the lab: what a real engine would refuse ends a start with its own words, and the former state is known."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Said, Typist

pytestmark = pytest.mark.machine

TWIN = ("--lane=twin", f"--recipes={PROJECT / 'tests' / 'data' / 'recipes'}")


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type, with checkpoints and image in place."""
    folder = tmp_path_factory.mktemp("inventory") / "stand-in"
    shutil.copytree(session_lab.folder / "stand-in", folder)
    made = Typist(folder)
    made.ok("download", "build", *TWIN, "--yes")
    return made


@pytest.fixture(autouse=True)
def nothing_runs(lab: Lab) -> None:
    for node in ("spark-1", "spark-2"):
        lab.away(node)


def start(typist: Typist, *settings: str) -> Said:
    return typist.json("start", *TWIN, *(word for setting in settings for word in ("--set", setting)))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("worker_parallel=2", "--parallel is '2' on rank 1 and '4' on rank 0"),
        ("engram=false", "no Engram tables: TF_DS_ENGRAM is not set"),
        ("env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE must be 0"),
        ("env.STAND_IN_0=--die-after 0 --last-words 'NCCL error 6'", "NCCL error 6"),
    ],
)
def test_what_the_real_engine_refuses_ends_the_start_with_its_words(
    lab: Lab, typist: Typist, setting: str, said: str
) -> None:
    failed = start(typist, setting)
    assert failed.status == 1
    assert said in failed.failures()
    for node in ("spark-1", "spark-2"):
        assert lab.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""


def test_a_reply_that_is_not_what_was_asked_fails_verify(lab: Lab, typist: Typist) -> None:
    assert start(typist, "env.STAND_IN_0=--drop-after 2").status == 0
    assert typist.json("verify", *TWIN).status == 3


def test_a_lane_that_does_not_run_is_asked_nothing(lab: Lab, typist: Typist) -> None:
    del lab
    typist.ok("stop", *TWIN)
    said = typist.json("verify", *TWIN)
    assert said.status == 3
    assert "does not run; nothing was asked" in said.failures()
    assert not said.of("step-failed")


def test_a_lane_without_a_tiny_repository_is_refused_before_anything(
    lab: Lab, typist: Typist, tmp_path: Path
) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(PROJECT / "tests" / "data" / "recipes" / "twin", odd)
    text = (odd / "recipe.yml").read_text()
    (odd / "recipe.yml").write_text(text.replace("Mia-AiLab/", "Nobody/").replace("lane: twin", "lane: odd"))
    refused = typist.json("download", "--lane=odd", f"--recipes={tmp_path}")
    assert refused.status == 2
    assert "the lab's hub has no stand-in for Nobody/" in refused.failures()
