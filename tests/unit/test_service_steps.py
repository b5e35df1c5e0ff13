"""Start, stop and restart, judged from raw answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sparkyard import facts
from sparkyard.actions import Run, StartContainer, StopContainer, WaitReady
from sparkyard.plan import Answers, Plan, Step, Verdict, joined
from sparkyard.render import render_lane
from sparkyard.steps import service
from sparkyard.system import SYSTEM
from tests.unit import raw, sample

LANE = sample.lane()
RENDERED = render_lane(LANE, {})
STEPS = {step.id: step for step in service.start_steps(LANE, RENDERED, ("file:engine@spark-1",))}
CACHE = facts.folder_question(RENDERED.containers[0].folders[0])
THERE = {CACHE: (0, "directory|755|spark\nwritable\n", "")}


def ours(rank: int, **changes: Any) -> dict[str, Any]:
    """A container of ours as it shall be, with changes."""
    wanted = RENDERED.containers[rank]
    labels = {"sparkyard.lane": "T", "sparkyard.hash": wanted.hash, "sparkyard.discovered": '{"gid": "3"}'}
    return {"name": wanted.name, "image": wanted.image, "labels": labels} | changes


def asked(rank: int, *found: Mapping[str, Any], **more: Any) -> Answers:
    node = (raw.HEAD, raw.WORKER)[rank]
    return raw.answers(node, {facts.CONTAINERS: raw.containers(*found), **THERE}, **more)


def judge(id_: str, answers: Answers) -> Verdict:
    return STEPS[id_].judge(answers)


def kinds(verdict: Verdict) -> list[type]:
    return [type(action) for action in verdict.actions]


def test_ranks_start_in_order_after_everything_in_the_way_is_stopped():
    worker, head = STEPS["service:engine@spark-2"], STEPS["service:engine@spark-1"]
    clear = {
        "service:others@spark-1",
        "service:others@spark-2",
        "service:engine-outdated@spark-1",
        "service:engine-outdated@spark-2",
    }
    assert clear | {"file:engine@spark-1"} == set(worker.needs)
    assert set(head.needs) == {*worker.needs, worker.id}
    assert set(STEPS["service:ready@spark-1"].needs) == {head.id, worker.id}
    assert [step.id for step in STEPS.values()].index(worker.id) < [step.id for step in STEPS.values()].index(
        head.id
    )


def test_a_missing_container_is_started_with_the_exact_words():
    verdict = judge("service:engine@spark-1", asked(0))
    (start,) = verdict.actions
    assert isinstance(start, StartContainer)
    assert start.container == "sparkyard-T-engine-0"
    assert "NCCL_IB_GID_INDEX=3" in start.command.words
    assert 'sparkyard.discovered={"gid": "3"}' in start.command.words
    assert not any("<discovered" in word for word in start.command.words)
    assert (start.gate_port, start.gate_timeout, start.log_silence) == (("10.0.0.1", 29500), 30.0, 20.0)


def test_a_folder_to_be_mounted_is_made_first():
    missing = {CACHE: (1, "", "stat: cannot statx '/x': No such file or directory")}
    verdict = judge("service:engine@spark-1", raw.answers(raw.HEAD, missing))
    assert kinds(verdict) == [Run, StartContainer]
    assert verdict.actions[0].shown() == "mkdir -p -- /home/spark/.local/share/sparkyard/lanes/T/cache"


def test_a_running_container_with_the_same_hash_is_left_alone():
    answers = asked(0, ours(0))
    for id_ in ("service:engine@spark-1", "service:engine-outdated@spark-1", "service:others@spark-1"):
        assert judge(id_, answers).state == "ok"


@pytest.mark.parametrize(
    ("changes", "reason", "destroys"),
    [
        ({"labels": {"sparkyard.lane": "T", "sparkyard.hash": "0"}}, "was started with other settings", True),
        ({"state": "exited", "more": {"ExitCode": 0}}, "is exited (exit code 0)", False),  # T55
        ({"state": "exited", "more": {"ExitCode": 137}}, "is exited (exit code 137)", False),
        ({"state": "created"}, "is created", False),  # T59
        ({"restarts": 3}, "was restarted 3 times, and a rank cannot rejoin alone", True),  # T58
        ({"state": "paused"}, "is paused", True),
    ],
)
def test_a_container_that_is_not_as_wanted_is_replaced(changes, reason, destroys):
    answers = asked(0, ours(0, **changes))
    outdated, start = (judge(f"service:{name}@spark-1", answers) for name in ("engine-outdated", "engine"))
    assert outdated.reason == f"sparkyard-T-engine-0 {reason}"
    assert kinds(outdated) == [StopContainer]
    assert bool(outdated.destroys) is destroys
    assert kinds(start) == [StopContainer, StartContainer]


@pytest.mark.parametrize("labels", [{}, {"sparkyard.lane": "X"}])
def test_a_container_with_our_name_that_is_not_ours_is_never_touched(labels):  # T88
    answers = asked(0, ours(0, labels=labels, state="exited"))
    for name in ("engine", "engine-outdated"):
        verdict = judge(f"service:{name}@spark-1", answers)
        assert (verdict.state, verdict.actions) == ("blocked", ())
        assert "it is not ours, and was left alone" in verdict.reason


def test_a_moved_gid_is_told_and_replaces_nothing():  # T08
    lines, netdevs = raw.devices(raw.HEAD, "f1")
    moved = [line.replace("/3:", "/4:") for line in lines]
    verdict = judge("service:engine@spark-1", asked(0, ours(0), devices=(moved, netdevs)))
    assert verdict.state == "ok"
    assert verdict.details == ("gid moved from 3 to 4 since it was started: all ranks need a restart",)


def test_a_gid_that_cannot_be_discovered_blocks_the_start():
    verdict = judge("service:engine@spark-1", asked(0, devices=raw.devices(raw.HEAD, "f1", address="")))
    assert (verdict.state, verdict.reason) == ("blocked", "gid could not be discovered on spark-1")


def test_nothing_is_stopped_for_a_rank_that_cannot_be_started():
    """Also when ``--only=service`` leaves the preflight out, which would have said so first."""
    step = STEPS["service:engine-outdated@spark-1"]
    assert SYSTEM in step.questions
    gone = {"devices": raw.devices(raw.HEAD, "f1", address="")}
    for found in ((), (ours(0, labels={"sparkyard.lane": "T", "sparkyard.hash": "0"}),)):
        verdict = step.judge(asked(0, *found, **gone))
        assert (verdict.state, verdict.reason) == ("blocked", "gid could not be discovered on spark-1")
    assert step.judge(asked(0, ours(0), **gone)).state == "ok"


def test_a_checkpoint_that_is_not_locked_blocks_the_start():
    data = sample.recipe_data()
    data["checkpoints"]["model"]["revision"] = "afc7aa0a"
    lane = sample.lane(data=data)
    step = next(
        s for s in service.start_steps(lane, render_lane(lane, {})) if s.id == "service:engine@spark-1"
    )
    assert step.judge(asked(0)).next_step == "invoke lock --lane=T"


def test_another_lane_is_stopped_after_a_yes():
    other = {
        "name": "sparkyard-X-e-0",
        "labels": {"sparkyard.lane": "X", "sparkyard.nodes": "spark-1,spark-2"},
    }
    verdict = judge("service:others@spark-1", asked(0, other))
    assert verdict.destroys == "lane X is running on spark-1, spark-2"
    assert kinds(verdict) == [StopContainer]


def test_another_lane_that_reaches_further_is_not_torn_apart():
    other = {
        "name": "sparkyard-X-e-0",
        "labels": {"sparkyard.lane": "X", "sparkyard.nodes": "spark-1,spark-2,spark-3"},
    }
    verdict = judge("service:others@spark-1", asked(0, other))
    assert (verdict.state, verdict.next_step) == ("blocked", "invoke stop --lane=X")


def plan() -> Plan:
    return Plan("start", "T", tuple(STEPS.values()))


def verdicts(steps: tuple[Step, ...], answers: Mapping[str, Answers]) -> dict[str, Verdict]:
    return {step.id: step.judge(answers[step.node]) for step in steps}


def test_when_one_rank_is_dead_the_others_are_stopped_too():
    answers = {"spark-1": asked(0, ours(0)), "spark-2": asked(1)}
    whole = joined(plan(), answers, verdicts(plan().steps, answers))
    after = verdicts(whole.steps, answers)
    stop = after["service:engine-outdated@spark-1"]
    assert (stop.state, kinds(stop), stop.destroys) == ("change", [StopContainer], "")
    gone = {"spark-1": asked(0), "spark-2": asked(1, ours(1))}
    assert verdicts(whole.steps, gone)["service:engine-outdated@spark-1"].state == "ok"
    assert verdicts(whole.steps, gone)["service:engine@spark-1"].state == "change"


def test_a_second_start_changes_nothing():
    answers = {"spark-1": asked(0, ours(0)), "spark-2": asked(1, ours(1))}
    whole = joined(plan(), answers, verdicts(plan().steps, answers))
    changes = [id_ for id_, verdict in verdicts(whole.steps, answers).items() if verdict.state != "ok"]
    assert changes == ["service:ready@spark-1"]


def test_the_last_step_waits_for_a_real_generation_and_watches_every_rank():
    (wait,) = judge("service:ready@spark-1", asked(0)).actions
    assert isinstance(wait, WaitReady)
    assert wait.body["messages"]
    assert wait.containers == (("spark-1", "sparkyard-T-engine-0"), ("spark-2", "sparkyard-T-engine-1"))


def test_stop_takes_everything_of_the_lane_and_nothing_else():
    stop = {step.node: step for step in service.stop_steps(LANE)}
    other = {"name": "x", "labels": {"sparkyard.lane": "X"}}
    answers = asked(0, ours(0), ours(0, name="sparkyard-T-old-0", state="exited"), other, {"name": "web"})
    verdict = stop["spark-1"].judge(answers)
    assert [action.container for action in verdict.actions if isinstance(action, StopContainer)] == [
        "sparkyard-T-engine-0",
        "sparkyard-T-old-0",
    ]
    assert stop["spark-1"].judge(asked(0)).state == "ok"


@pytest.mark.parametrize(
    ("order", "waits"), [("together", []), ("head-first", ["spark-2"]), ("workers-first", ["spark-1"])]
)
def test_stop_keeps_the_order_of_the_recipe(order, waits):
    data = sample.recipe_data()
    data["stop"]["order"] = order
    steps = service.stop_steps(sample.lane(data=data))
    assert [step.node for step in steps if step.needs] == waits


def test_a_restart_starts_only_after_every_stop():
    steps = service.restart_steps(LANE, RENDERED)
    stops = {step.id for step in steps if step.name == "stop"}
    assert len(stops) == 2
    assert all(stops <= set(step.needs) for step in steps if step.name == "engine")


def test_what_a_failed_start_takes_back():
    found = service.on_failure(LANE, RENDERED)
    assert found["spark-2"] == (StopContainer("sparkyard-T-engine-1", 7.0),)
