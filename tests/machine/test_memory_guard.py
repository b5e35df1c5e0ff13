"""A node whose memory runs low in the middle of a boot, a job or a build: what is ours there is killed, and nothing else."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkyard.lab import faults
from sparkyard.lab import node as nodes
from sparkyard.lab.places import here
from tests.machine.conftest import PAIR, Lab
from tests.machine.jobs.sparks import LANE, JobTypist, Sparks
from tests.machine.test_job import slow_build
from tests.machine.typed import LIMIT as TOLD
from tests.machine.typed import PROJECT, Said, Typist, until

pytestmark = pytest.mark.machine

LOW = 300_000_000
"""Bytes: less than the limit of the lab's lane, 500,000,000."""
SLOW = (
    "--set",
    "engine=scripted",
    "--set",
    "script=--boot-seconds 600",
    "--set",
    "follower_script=--boot-seconds 600",
)
OTHERS = ("someone-else", "other-lane")
LIMIT = "0.30 GB of memory were available, the limit is 0.50 GB (limits.guard)"


@pytest.fixture(scope="module")
def built(session_lab: Lab, inventory: Path) -> Typist:
    """Somebody to type, with the lab's lane ready to be started."""
    made = Typist(inventory)
    made.ok("download", "build", "--lane=lab")
    return made


@pytest.fixture
def typist(lab: Lab, built: Typist) -> Iterator[Typist]:
    """The same, on nodes that run nothing and have all their memory."""
    for node in PAIR:
        away(lab, node)
    yield built
    for node in PAIR:
        faults.whole_memory(node)
        away(lab, node)


def away(lab: Lab, node: str) -> None:
    """Remove every container of a node."""
    lab.run(node, "sh", "-c", "docker ps -aq | xargs -r docker rm --force", check=False)


def others(lab: Lab) -> None:
    """Two containers on each node that are not this lane's: somebody's, and another lane's."""
    names = ("docker", "images", "--format", "{{.Repository}}:{{.Tag}}", "sparkyard/lab-engine")
    image = lab.out("spark-1", *names).split()[0]
    for node in PAIR:
        for name, label in zip(OTHERS, ("who=someone", "sparkyard.lane=other"), strict=True):
            words = ("docker", "run", "--detach", "--network", "host", "--name", name, "--label", label)
            lab.run(node, *words, "--entrypoint", "sleep", image, "3600")


def running(lab: Lab, node: str) -> set[str]:
    """Names of the containers that run there."""
    return set(lab.out(node, "docker", "ps", "--format", "{{.Names}}").split())


def left_watching(node: str) -> bool:
    """Whether a process of the guard is still there, in this node of this lab."""
    for pid in nodes.pids(here().node(node)):
        with contextlib.suppress(OSError):
            if b"sparkyard-memory" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
    return False


def until_unwatched(node: str) -> None:
    until(lambda: not left_watching(node))


def cut_short(lab: Lab, typist: Typist, low: str, ready: Callable[[], bool], *line: str) -> Said:
    """Type a line, and take the memory of a node away when ``ready`` says so; by then others run there too."""
    process = typist.start(*line, "--json")
    try:
        until(lambda: ready() or process.poll() is not None, 240)
        assert process.poll() is None, process.communicate()
        others(lab)
        faults.low_memory(low, LOW)
        out, err = process.communicate(timeout=TOLD)
    finally:
        process.kill()
    return Said(process.returncode, [json.loads(text) for text in out.splitlines()], err)


def test_a_boot_that_takes_the_memory_is_killed_and_named(lab: Lab, typist: Typist) -> None:
    def both() -> bool:
        return all(running(lab, node) for node in PAIR)

    said = cut_short(lab, typist, "spark-2", both, "start", "--lane=lab", *SLOW)
    assert said.status == 1
    assert f"was killed by sparkyard before the node froze: {LIMIT}" in said.failures()
    (failed,) = [e for e in said.of("step-failed") if "was killed by sparkyard" in e["message"]]
    assert "the rank on spark-2 (container " in failed["message"]
    assert failed["data"]["next"].startswith("free memory on spark-2")
    assert failed["data"]["exit"] == 1
    for node in PAIR:
        assert running(lab, node) == set(OTHERS)
        until_unwatched(node)


def test_a_healthy_boot_is_not_disturbed_and_what_serves_is_left_alone(lab: Lab, typist: Typist) -> None:
    typist.ok("start", "--lane=lab", "--set", "engine=scripted", "--set", "script=--boot-seconds 3")
    for node in PAIR:
        until_unwatched(node)
    before = [running(lab, node) for node in PAIR]
    faults.low_memory("spark-1", LOW)
    again = typist.json(
        "start",
        "--lane=lab",
        "--set",
        "engine=scripted",
        "--set",
        "script=--boot-seconds 3",
        "--only=service",
    )
    assert again.status == 0, again.failures()
    assert [running(lab, node) for node in PAIR] == before


def test_a_job_is_killed_on_its_node_and_not_sealed(lab: Lab, typist: Typist, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "tests" / "data" / "recipes" / "jobs", tmp_path / "jobs")
    recipe = tmp_path / "jobs" / "recipe.yml"
    text = recipe.read_text().replace(
        "\nsources:\n", "\nlimits: {memory: 600000000, guard: 500000000}\nsources:\n  limits.*: *ours\n"
    )
    assert text.count("guard: 500000000") == 1
    recipe.write_text(text)
    jobs = Sparks(lab, JobTypist(typist.inventory, tmp_path))
    jobs.typist.ok("build", "--only=image")
    try:
        said = cut_short(lab, jobs.typist, "spark-2", jobs.waiting, "build", "--set=fault=wait")
        assert said.status == 1
        assert (
            "job rows: the rank on spark-2 (container sparkyard-J-job-rows-1) was killed by sparkyard before the node froze: "
            + LIMIT
        ) in said.failures()
        assert [jobs.containers(node) for node in PAIR] == [[], []]
        assert jobs.sealed() == []
        assert [running(lab, node) for node in PAIR] == [set(OTHERS)] * 2
    finally:
        for node in PAIR:  # its label only: `forget` takes the other lane's container too
            shutil.rmtree(lab.own(node) / LANE, ignore_errors=True)


def test_a_build_is_killed_with_the_container_of_its_step(lab: Lab, typist: Typist, tmp_path: Path) -> None:
    recipes = slow_build(tmp_path)
    building = "docker ps --format '{{.Command}}' | grep -q 'sleep $(cat'"

    def in_the_step() -> bool:
        return lab.run("spark-1", "sh", "-c", building, check=False).returncode == 0

    said = cut_short(lab, typist, "spark-1", in_the_step, "build", "--lane=slow", f"--recipes={recipes}")
    assert said.status == 1
    assert "docker build of sparkyard/lab-engine:" in said.failures()
    assert f"was killed by sparkyard before the node froze: {LIMIT}" in said.failures()
    until(lambda: running(lab, "spark-1") == set(OTHERS))
    faults.whole_memory("spark-1")
    (recipes / "slow" / "pause").write_text("0")
    typist.ok("build", "--lane=slow", f"--recipes={recipes}")
