"""The memory guard beside a real Docker engine: only what is ours is killed, only while it starts, and no longer than that."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard.actions import StartContainer, WaitReady
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.executors.ready import wait_ready
from sparkyard.executors.service import start_container
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings
from tests.machine.docker_engine import DockerEngine, running
from tests.machine.typed import until

pytestmark = pytest.mark.machine
IMAGE = "sparkyard-test:1"
NEVER, ALWAYS = 1, 2**60
"""Limits in bytes: no machine has less, and none has as much."""
OURS = ("--label", "sparkyard.lane=lab")
KILLED = r"\(container {}\) was killed by sparkyard before the node froze: .* GB of memory were available"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    with running(tmp_path_factory.mktemp("engine")) as docker:
        docker.add_image(IMAGE)
        yield docker


@pytest.fixture
def world(tmp_path: Path, engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[StepWorld]:
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    around = surroundings(tmp_path)
    step = Step("service", "x", "spark-1", "x", lambda _: Verdict("ok"))
    yield StepWorld(around, step, lambda _event: None, {})
    around.close()
    engine.away()


def words(name: str, *options: str) -> tuple[str, ...]:
    place = ("run", "--detach", "--pull", "never", "--network", "host", "--name", name)
    return (*place, *options, IMAGE, "/bin/sh", "-c", "echo up; exec sleep 600")


def start(guard: int, gate: str) -> StartContainer:
    return StartContainer(
        "lane-0", Command(("docker", *words("lane-0", *OURS))), gate, gate_timeout=300, guard=guard
    )


def up(engine: DockerEngine) -> set[str]:
    return set(engine.docker("ps", "--format", "{{.Names}}").split())


def waiting(port: int, timeout: float) -> WaitReady:
    containers = (("spark-2", "lane-9"),)
    return WaitReady(
        f"http://127.0.0.1:{port}", "/health", {}, timeout, 0, containers=containers, guard=ALWAYS
    )


def test_a_rank_is_killed_and_nothing_else(world: StepWorld, engine: DockerEngine) -> None:
    engine.docker(*words("lane-8", "--label", "sparkyard.lane=other"))
    engine.docker(*words("lane-9"))
    with pytest.raises(StepFailed, match=KILLED.format("lane-0")) as failure:
        start_container(start(ALWAYS, "never"), "spark-1", world)
    assert failure.value.node == "spark-1"
    assert "  up" in failure.value.details
    assert failure.value.next_step.startswith("free memory on spark-1")
    assert up(engine) == {"lane-8", "lane-9"}


def test_a_guard_that_is_lifted_leaves_no_process_and_the_rank_is_watched_on(
    world: StepWorld, engine: DockerEngine
) -> None:
    start_container(start(NEVER, "up"), "spark-1", world)
    until(lambda: "sparkyard-memory" in engine.clients())
    world.watches.guard(0)
    until(lambda: "sparkyard-memory" not in engine.clients())
    world.watches.demand_all_alive()
    engine.docker("kill", "lane-0")
    until(world.watches.died)
    with pytest.raises(StepFailed, match=r"\(container lane-0\) ended with exit code 137"):
        world.watches.demand_all_alive()


def test_ranks_of_an_earlier_run_are_guarded_while_nothing_listens(
    world: StepWorld, engine: DockerEngine
) -> None:
    engine.docker(*words("lane-9", *OURS))
    with pytest.raises(StepFailed, match=KILLED.format("lane-9")):
        wait_ready(waiting(9, 300), "spark-1", world)
    assert up(engine) == set()


def test_a_lane_that_listens_is_not_killed_however_slow_it_is(world: StepWorld, engine: DockerEngine) -> None:
    engine.docker(*words("lane-9", *OURS))
    with socket.create_server(("127.0.0.1", 0)) as busy, pytest.raises(StepFailed, match="not ready within"):
        wait_ready(waiting(busy.getsockname()[1], 3), "spark-1", world)
    assert up(engine) == {"lane-9"}


def test_what_is_not_ours_is_not_killed(world: StepWorld, engine: DockerEngine) -> None:
    engine.docker(*words("lane-9"))
    with pytest.raises(StepFailed, match="not ready within"):
        wait_ready(waiting(9, 3), "spark-1", world)
    assert up(engine) == {"lane-9"}
