"""How a job stands, judged from raw answers: what its steps are, sealed, going on, of one start alone, and what status says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkyard import drift
from sparkyard.actions import StopContainer
from sparkyard.actions_job import RemoveFiles, RunJob
from sparkyard.job_facts import job_question
from sparkyard.render import render_lane
from sparkyard.steps import job as jobs
from sparkyard.steps.job_standing import standing
from tests.unit import sample
from tests.unit.job_answers import (
    HOME,
    JOB,
    LANE,
    MISSING,
    NODES,
    RENDERED,
    WHOLE,
    acts,
    begun,
    container,
    judge,
    kinds,
    rendered,
    rows,
    seal,
    sealed_both,
    steps,
    told,
)

# --- what the steps are -----------------------------------------------------------------------------------------------


def test_each_node_is_made_ready_before_the_first_runs_them_all():
    found = steps()
    gates = ["job:rows-gates@spark-1", "job:rows-gates@spark-2"]
    ready = ["job:rows-ready@spark-1", "job:rows-ready@spark-2"]
    assert list(found) == [*gates, *ready, "job:rows@spark-1"]
    assert list(found["job:rows-ready@spark-2"].needs) == gates
    assert list(found["job:rows@spark-1"].needs) == [*gates, *ready]
    assert set(found["job:rows@spark-1"].also) == {"spark-2"}


def test_a_job_follows_what_it_needs():
    data = sample.recipe_data() | {"jobs": {"second": rows(needs=["first"], makes=[]), "first": rows()}}
    lane = render_lane(sample.lane(data=data), {})
    assert [job.name for job in lane.jobs] == ["first", "second"]
    found = {step.id: step for step in jobs.job_steps(LANE, lane, lane.jobs)}
    assert "job:first@spark-1" in found["job:second-ready@spark-2"].needs


# --- sealed -----------------------------------------------------------------------------------------------------------


def test_a_sealed_job_is_left_alone():
    answers = sealed_both()
    for id_ in steps():
        assert judge(id_, *answers).state == "ok"


@pytest.mark.parametrize(
    ("sealed", "made", "why"),
    [
        ("", MISSING, "was not done yet"),
        ("{broken", WHOLE, "has a seal that cannot be read"),
        (seal(0, version=2), WHOLE, "has a seal that cannot be read"),
        (seal(0, hash="0" * 64), WHOLE, "was done otherwise: what it is made of has changed since"),
        (seal(0), MISSING, f"{HOME}/rows/rows-0.bin is gone"),
        (seal(0), WHOLE.replace("regular file", "symbolic link"), "is no regular file"),
        (seal(0), WHOLE.replace("|4096|", "|4095|"), "has 4095 bytes, expected 4096"),
        (seal(0), WHOLE.replace("|7|", "|8|"), "was changed since it was sealed"),
        (seal(0), WHOLE.replace("000000001", "000000009"), "was changed since it was sealed"),
        (seal(0), WHOLE.replace("000000002", "000000009"), "was changed since it was sealed"),
        (seal(0, outputs=[]), WHOLE, "was not an output when it was sealed"),
    ],
)
def test_a_seal_that_does_not_hold_on_one_node_runs_the_job_anew(sealed, made, why):
    answers = (told(0, sealed, made=made), told(1, seal(1), made=WHOLE))
    verdict = judge("job:rows@spark-1", *answers)
    assert verdict.state == "change"
    assert why in verdict.reason
    assert verdict.reason.startswith("job rows: on spark-1 ")
    (run,) = acts(verdict)
    assert isinstance(run, RunJob)
    assert not run.attach


def test_a_new_hard_link_is_no_change_of_an_output_that_is_linked():
    makes = rows()["makes"]
    linked = rendered(makes=[makes[0] | {"linked": True}])
    for place, state in (("000000002", "ok"), ("000000001", "change")):  # ctime, mtime
        made = WHOLE.replace(place, "000000009")
        answers = (told(0, seal(0), made=made), told(1, seal(1), made=WHOLE))
        assert judge("job:rows@spark-1", *answers, lane=linked).state == state


def test_an_output_of_another_wanted_size_runs_the_job_anew():
    lane = rendered(makes=[{"path": "{{ root }}/rows/rows-{{ rank }}.bin", "bytes": "8192"}])
    assert lane.jobs[0].hash == JOB.hash
    assert "has 4096 bytes, expected 8192" in judge("job:rows@spark-1", *sealed_both(), lane=lane).reason


def test_what_a_start_demands_is_judged_by_each_node_alone():
    found = {step.node: step for step in jobs.sealed_steps(RENDERED.jobs)}
    assert found["spark-2"].judge(told(1, seal(1), made=WHOLE)).state == "ok"
    verdict = found["spark-2"].judge(told(1))
    assert (verdict.state, verdict.reason, verdict.actions) == ("change", "job rows was not done yet", ())


def test_what_is_left_behind_a_seal_is_removed():
    answers = (told(0, seal(0), begun(0), WHOLE, (container(0, "exited"),)), told(1, seal(1), made=WHOLE))
    verdict = judge("job:rows-ready@spark-1", *answers)
    assert kinds(verdict) == [StopContainer, RemoveFiles]
    assert acts(verdict)[1].paths == (f"{HOME}/jobs/rows.begun.json",)
    assert judge("job:rows@spark-1", *answers).state == "ok"


# --- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", [("running", "running"), ("exited", "running"), ("exited", "exited")])
def test_ranks_of_this_very_job_are_waited_for(states):
    answers = tuple(told(n, "", begun(n), found=(container(n, state),)) for n, state in enumerate(states))
    assert judge("job:rows-ready@spark-2", *answers).state == "ok"
    (run,) = acts(judge("job:rows@spark-1", *answers))
    assert run.attach
    assert run.shown() == "wait for sparkyard-T-job-rows-0, sparkyard-T-job-rows-1"


def test_a_node_that_was_sealed_before_the_other_is_part_of_it():
    answers = (
        told(0, seal(0), begun(0), WHOLE, (container(0, "exited"),)),
        told(1, "", begun(1), WHOLE, (container(1, "exited"),)),
    )
    (run,) = acts(judge("job:rows@spark-1", *answers))
    assert run.attach


@pytest.mark.parametrize(
    "other",
    [
        {"found": ()},
        {"found": (container(1, "exited", more={"ExitCode": 1}),)},
        {"found": (container(1, "created"),)},
        {"found": (container(1, "paused"),)},
        {"found": (container(1, restarts=1),)},
        {
            "found": (
                container(1, labels={"sparkyard.lane": "T", "sparkyard.job": "rows", "sparkyard.hash": "0"}),
            )
        },
        {"found": (container(1),), "started": ""},
        {"found": (container(1),), "started": begun(1, hash="0" * 64)},
        {"found": (container(1, "exited"),), "sealed": seal(1), "made": MISSING},
    ],
)
def test_anything_else_is_run_anew(other):
    answers = (told(0, "", begun(0), found=(container(0),)), told(1, **{"started": begun(1)} | other))
    (run,) = acts(judge("job:rows@spark-1", *answers))
    assert not run.attach
    verdict = judge("job:rows-ready@spark-1", *answers)
    assert kinds(verdict) == [StopContainer, RemoveFiles]  # that it was begun is on record already


# --- of one start alone -----------------------------------------------------------------------------------------------

SERVING = {
    "name": "sparkyard-T-engine-0",
    "labels": {"sparkyard.lane": "T", "sparkyard.service": "engine"},
    "state": "running",
}


@pytest.mark.parametrize(
    ("fresh", "age", "running", "state"),
    [
        (None, 10**6, (), "sealed"),
        (600.0, 30, (), "sealed"),
        (600.0, 601, (), "anew"),
        (600.0, 601, (SERVING,), "sealed"),
        (600.0, 601, (SERVING | {"state": "exited"},), "anew"),
        (600.0, -(10**6), (), "anew"),
    ],
)
def test_what_is_of_one_start_alone_is_done_again_for_the_next(fresh, age, running, state):
    job = replace(JOB, fresh=fresh)
    answers = {
        NODES[rank].name: told(rank, seal(rank), made=WHOLE, age=age, found=running if rank == 0 else ())
        for rank in (0, 1)
    }
    assert standing(job, LANE, answers).state == state


# --- what status says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sealed", "made", "words"),
    [
        (seal(0), WHOLE, ()),
        (seal(0), MISSING, (f"job rows: {HOME}/rows/rows-0.bin is gone",)),
        (
            seal(0),
            WHOLE.replace("|7|", "|8|"),
            (f"job rows: {HOME}/rows/rows-0.bin was changed since it was sealed",),
        ),
        ("", WHOLE, ("job rows: was not done yet",)),
    ],
)
def test_what_a_job_left_and_is_not_as_it_was_sealed_is_drift_of_the_rank(sealed, made, words):
    """A rank may go on serving from a file that is gone; its next start will not."""
    assert job_question(JOB, "spark-1") in drift.status_questions(RENDERED, "spark-1")
    assert drift._jobs_drift(RENDERED, told(0, sealed, made=made)) == words
