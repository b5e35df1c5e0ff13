"""Leaving a lane: what a change of lanes looks at under ``--check``, what a purge takes, and what only root may remove."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkyard.actions import Run
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.executors import words
from sparkyard.plan import Answers, Plan, Step, Verdict
from sparkyard.steps.switch import as_if_stopped, purge_steps
from sparkyard.world import Completed, World
from tests.unit.test_recipe_d import lane, rendered


def blocked(_answers: Answers) -> Verdict:
    return Verdict("blocked", "lane D is running on more nodes")


def test_lanes_that_would_be_stopped_are_in_nobody_s_way():
    others = Step("service", "others", "spark-1", "other lanes: stop", blocked)
    ports = Step("preflight", "ports", "spark-1", "ports are free", blocked)
    plan = as_if_stopped(Plan("switch", "kit", (others, ports)), ["D"])
    found = [step.judge(Answers("spark-1")) for step in plan.steps]
    assert [one.state for one in found] == ["ok", "blocked"]
    assert found[0].reason == "lane D is stopped before"


def test_a_purge_takes_the_secrets_that_were_made_for_the_lane():
    head = [step for step in purge_steps(lane(), rendered(), {}, ()) if step.node == "spark-1"]
    names = {step.name for step in head}
    assert {"purge-agent_token", "purge-join_code", "purge-lane", "purge-export"} <= names
    (token,) = (step for step in head if step.name == "purge-agent_token")
    assert token.title == "lane D: remove agent_token"
    assert token.questions[-1].arguments[0].endswith("/secrets/D-agent_token")
    workers = {step.name for step in purge_steps(lane(), rendered(), {}, ()) if step.node == "spark-2"}
    assert "purge-agent_token" not in workers


@pytest.mark.parametrize(
    ("command", "said", "next_step"),
    [
        (("rm", "-rf", "--", "/a b"), "Permission denied", "sudo rm -rf -- '/a b'"),
        (("rm", "-rf", "--", "/a"), "Device or resource busy", ""),
        (("docker", "image", "rm", "x"), "Permission denied", ""),
    ],
)
def test_what_only_root_may_remove_is_told_with_the_line(command: tuple[str, ...], said: str, next_step: str):
    def run(*_words: Any, **_more: Any) -> Completed:
        return Completed(1, b"", f"rm: cannot remove '/a': {said}\n".encode())

    shell = SimpleNamespace(node=SimpleNamespace(name="spark-2"), run=run)
    world = cast("World", SimpleNamespace(shell=lambda _node: shell))
    with pytest.raises(StepFailed) as caught:
        words.run(Run("remove it", Command(command)), "spark-2", world)
    assert caught.value.next_step.endswith(next_step)
    assert bool(caught.value.next_step) == bool(next_step)
