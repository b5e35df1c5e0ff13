"""What is looked at before a lane's API is asked."""

from __future__ import annotations

import pytest

from sparkyard.errors import CouldNotCheck
from sparkyard.facts import ContainerFact
from sparkyard.looking import Found, absent, called
from tests.unit import sample

LANE = sample.lane()


def fact(lane: str, state: str = "running", job: str = "") -> ContainerFact:
    return ContainerFact("c", "i", state, labels={"sparkyard.lane": lane, "sparkyard.job": job})


def test_a_lane_that_runs_is_asked():
    found: Found = {"spark-1": (fact("X"), fact("T"))}
    assert absent(LANE, found) is None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((), "lane T does not run; nothing was asked"),
        ((fact("T", "exited"),), "lane T does not run; nothing was asked"),
        ((fact("T", job="pack"),), "lane T does not run; nothing was asked"),
        ((fact("X"),), "lane T does not run, lane X does; nothing was asked"),
    ],
)
def test_another_lane_on_the_same_port_is_never_asked_in_its_place(facts, words):
    """C and boot10 have the same port and name of the model: what one answers must not pass for the other."""
    failure = absent(LANE, {"spark-1": facts})
    assert failure is not None
    assert (failure.status, failure.message, failure.node) == (3, words, "spark-1")
    assert failure.next_step == "invoke start --lane=T"


def test_a_head_that_does_not_say_what_runs_is_left_to_the_checks():
    assert absent(LANE, {"spark-1": CouldNotCheck("no docker")}) is None


def test_lines_are_told_apart_where_a_node_has_several_containers():
    agent = ContainerFact("a", "i", "running", labels={"sparkyard.service": "agent"})
    packing = ContainerFact("p", "i", "running", labels={"sparkyard.job": "pack"})
    assert called("spark-1", agent, (agent,)) == "spark-1"
    assert [called("spark-1", fact, (agent, packing)) for fact in (agent, packing)] == [
        "spark-1 agent",
        "spark-1 job pack",
    ]
