"""Builds that end in the middle, for real in the lab: killed, or by Ctrl-C once and twice; nothing goes on behind them, and the next run heals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.conftest import Lab, with_stand_ins
from tests.machine.test_made_machine import BUILD, FORK, REFERENCE, VLLM, forget, names
from tests.machine.typed import LIMIT, PROJECT, Typist, until

pytestmark = pytest.mark.machine

HELD = "held-in-a-build"
"""A word of the command that a build runs until it is ended."""
DOCKERFILE = f"FROM sparkyard-lab/engine-base:latest\nRUN echo {HELD} && sleep 600\n"
STEP = "[ ! -e ~/held/Dockerfile ] || docker build --no-cache ~/held"
"""A step of a project that holds in a build of its own while there is such a folder on the head."""
MADE = f"""\
  made:
    git: {{url: "{FORK}", commit: "fc723fa2", source: {{kind: chosen, why: test}}}}
    steps:
      - [bin/spark, build, prepare]
      - [sh, -c, "{STEP}"]
      - [bin/spark, build, image, --apply]
    reference: "{REFERENCE}"
    labels: {{local.spark3.vllm.tree: {VLLM}}}
"""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twin recipe with an image that a project's steps make, one of which holds; the lab's with a Dockerfile that holds."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PROJECT / "tests" / "data" / "recipes" / "twin", folder / "made")
    path = folder / "made" / "recipe.yml"
    path.write_text(path.read_text().replace(BUILD, MADE))
    shutil.copytree(PROJECT / "recipes" / "lab", folder / "held")
    path = folder / "held" / "recipe.yml"
    path.write_text(path.read_text().replace("lane: lab\n", "lane: held\n", 1))
    path = folder / "held" / "Dockerfile"
    path.write_text(f"{path.read_text()}RUN echo {HELD} && sleep 600\n")
    return folder


@pytest.fixture(scope="module")
def made(session_lab: Lab, recipes: Path) -> tuple[str, ...]:
    return ("build", "--lane=twin", f"--recipes={recipes}", "--yes", "--limit=spark-1")


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    return with_stand_ins(session_lab, tmp_path_factory)


@pytest.fixture
def holding(lab: Lab) -> Iterator[Lab]:
    """A head on which the project's second step holds."""
    forget(lab)
    lab.run(
        "spark-1",
        "sh",
        "-c",
        f"mkdir ~/held && printf '{DOCKERFILE}' > ~/held/Dockerfile".replace("\n", "\\n"),
    )
    yield lab
    goes_on(lab)


def goes_on(lab: Lab) -> None:
    """From now on the project's second step ends at once."""
    lab.run("spark-1", "sh", "-c", "rm -rf ~/held")


def ours(lab: Lab) -> list[str]:
    """Commands of builds that run on the head, in containers and beside them."""
    inside = lab.out("spark-1", "docker", "ps", "--no-trunc", "--format", "{{.Command}}").splitlines()
    beside = [line for words in ("docker build", "bin/spark") for line in lab.processes("spark-1", words)]
    return [line for line in inside if HELD in line] + beside


def building(lab: Lab) -> bool:
    return any(HELD in line for line in ours(lab))


def clones(lab: Lab) -> list[str]:
    return lab.out("spark-1", "sh", "-c", "ls -d ~/.local/share/sparkyard/made/*/").split()


def ended(line: subprocess.Popen[str], *signals: int) -> tuple[int, list[dict[str, object]]]:
    for each in signals:
        line.send_signal(each)
    out, err = line.communicate(timeout=LIMIT)
    assert "Traceback" not in out + err
    return line.returncode, [json.loads(text) for text in out.splitlines()]


@pytest.mark.long
def test_a_made_image_that_was_killed_in_a_step_is_made_anew(
    holding: Lab, typist: Typist, made: tuple[str, ...]
) -> None:
    line = typist.start(*made, "--json", start_new_session=True)
    until(lambda: building(holding))
    os.killpg(line.pid, signal.SIGKILL)
    line.communicate()
    until(lambda: not ours(holding))
    assert names(holding, "spark-1") == []
    half = clones(holding)
    assert len(half) == 1
    line = typist.start(*made, "--json")  # a second time, in the same step
    until(lambda: building(holding))
    status, events = ended(line, signal.SIGINT)
    assert status == 130, events
    until(lambda: not ours(holding))
    goes_on(holding)
    healed = typist.ok(*made)
    assert healed.changed()["spark-1"] == 1
    assert clones(holding) == half
    assert typist.ok(*made).changed()["spark-1"] == 0


@pytest.mark.long
def test_ctrl_c_twice_in_a_step_leaves_nothing_that_builds(
    holding: Lab, typist: Typist, made: tuple[str, ...]
) -> None:
    line = typist.start(*made, "--json")
    until(lambda: building(holding))
    status, events = ended(line, signal.SIGINT, signal.SIGINT)
    assert status == 130, events
    until(lambda: not ours(holding))
    assert names(holding, "spark-1") == []


@pytest.mark.parametrize("signals", [1, 2], ids=["once", "twice"])
@pytest.mark.long
def test_ctrl_c_in_a_docker_build_ends_what_it_runs(
    lab: Lab, inventory: Path, recipes: Path, signals: int
) -> None:
    typist = Typist(inventory)
    line = typist.start("build", "--lane=held", f"--recipes={recipes}", "--yes", "--limit=spark-1", "--json")
    until(lambda: building(lab))
    status, events = ended(line, *[signal.SIGINT] * signals)
    assert status == 130, events
    until(lambda: not ours(lab))
    assert "held" not in lab.out("spark-1", "docker", "image", "ls")
