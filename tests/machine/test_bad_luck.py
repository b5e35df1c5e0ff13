"""Lines whose machine, node or record fails under them, typed on two simulated Sparks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import Said, Typist

pytestmark = pytest.mark.machine

SCRIPTED = ("--set", "engine=scripted")
STATE = "home/.local/state"


@pytest.fixture
def serving(lab: Lab, inventory: Path) -> Iterator[Typist]:
    """Somebody to type, while the scripted engine serves."""
    typist = Typist(inventory)
    typist.ok("download", "build", "start", "--lane=lab", "--yes", *SCRIPTED)
    yield typist
    simulated.up(2, print)  # what the test broke
    for node in ("spark-1", "spark-2"):
        lab.away(node)


def logs_of(lab: Lab, said: Said) -> list[str]:
    """The names of the logs that the run's record keeps."""
    (recap,) = said.of("recap")
    return lab.out("spark-1", "ls", f"{recap['data']['record']}/logs").split()


def test_a_stop_keeps_the_log_and_state_of_every_rank_in_its_record(lab: Lab, serving: Typist) -> None:
    said = serving.ok("stop")
    assert logs_of(lab, said) == [
        "spark-1-sparkyard-lab-server-0.log",
        "spark-1-sparkyard-lab-server-0.state.json",
        "spark-2-sparkyard-lab-follower-1.log",
        "spark-2-sparkyard-lab-follower-1.state.json",
    ]


def test_a_stop_reaches_every_node_that_answers(lab: Lab, serving: Typist) -> None:
    faults.kill_node("spark-2")
    said = serving.json("stop")
    assert said.status == 4
    assert (said.nodes["spark-1"]["changed"], said.nodes["spark-2"]["unreachable"]) == (1, 1)
    assert lab.out("spark-1", "docker", "ps", "--quiet") == ""


def test_an_engine_that_is_gone_on_one_node_does_not_keep_the_others_running(
    lab: Lab, serving: Typist
) -> None:
    faults.kill_dockerd("spark-2")
    said = serving.json("stop")
    assert said.status == 1
    assert (said.nodes["spark-1"]["changed"], said.nodes["spark-2"]["failed"]) == (1, 1)
    assert lab.out("spark-1", "docker", "ps", "--quiet") == ""


def test_a_node_that_does_not_answer_is_counted_as_unreachable(lab: Lab, inventory: Path) -> None:
    del lab
    faults.kill_node("spark-2")
    said = Typist(inventory).json("download", "--yes")
    assert said.status == 4
    assert said.nodes["spark-2"]["unreachable"] == 1
    assert [event["node"] for event in said.of("node-unreachable")] == ["spark-2"]


def test_a_state_folder_without_room_ends_before_anything_is_done(lab: Lab, inventory: Path) -> None:
    folder = faults.small_disk("spark-1", 16384, STATE)
    try:
        (lab.own("spark-1") / STATE / "filler").touch()
        lab.run("spark-1", "sh", "-c", f"head -c 16384 /dev/zero >{folder}/filler", check=False)
        done = Typist(inventory).type("download", "--yes")
        assert done.returncode == 1
        assert "No space left on device\n  next: make room" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        faults.whole_disk("spark-1", STATE)


def test_files_that_are_nowhere_cannot_be_adopted(lab: Lab, inventory: Path) -> None:
    del lab
    said = Typist(inventory).json("adopt", "--from=/nonexistent", "--yes")
    assert said.status == 1
    assert "nothing was taken: on no node is there a folder /nonexistent" in said.failures()
