"""What must be free before a job begins, judged from raw answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkyard.plan import Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.steps import job as jobs
from tests.unit import sample
from tests.unit.job_answers import (
    GIB,
    HOME,
    LANE,
    RENDERED,
    WHOLE,
    begun,
    container,
    judge,
    rendered,
    rows,
    steps,
    told,
)


def serving(lane: str = "T", service: str = "engine") -> dict[str, Any]:
    return {"name": "serves", "labels": {"sparkyard.lane": lane, "sparkyard.service": service}}


def gate(lane: RenderedLane = RENDERED, **more: Any) -> Verdict:
    return judge("job:rows-gates@spark-1", told(0, **more), told(1), lane=lane)


def test_room_is_judged_in_bytes():
    verdict = gate(available=999_999)
    assert verdict.state == "blocked"
    assert verdict.reason == f"999999 bytes are free on {HOME}/rows; the job rows needs 1000000 bytes"
    assert verdict.next_step == "free 1 bytes there (0.0 GB)"
    assert gate(available=1_000_000).state == "ok"


def written(*held: int, since: int = 1_600_000_000, device: int = 9) -> str:
    """The answer about what was written since; ``WHOLE`` is of 1,700,000,000."""
    lines = (f"held {device} {taken} {taken}\n" for taken in held)
    return f"since {since}.000000000\nplace ab 9\nplace cd 10\n{''.join(lines)}"


def held(more: int, **told: Any) -> None:
    """Exactly so many bytes count as free beside those that are."""
    assert gate(available=1_000_000 - more, **told).state == "ok"
    assert gate(available=999_999 - more, **told).state == "blocked"


def test_what_its_own_outputs_hold_counts_as_free():
    held(4096, made=WHOLE)
    held(4096, made=WHOLE, started=begun(0), written=written(since=1_800_000_000))
    verdict = gate(made=WHOLE, available=1_000_000 - 4097)
    assert "and 4096 are held by what it left" in verdict.reason


def test_what_an_unfinished_run_has_written_counts_as_free_and_nothing_twice():
    held(700_000, started=begun(0), written=written(700_000))
    held(700_000, started=begun(0), written=written(700_000), made=WHOLE)  # the output is among them
    held(704_096, started=begun(0), written=written(700_000, since=1_800_000_000), made=WHOLE)  # it is not
    held(0, started=begun(0), written=written(700_000, device=10))  # of a place on another filesystem


def test_what_was_written_before_the_job_was_begun_is_not_its_own():
    held(0, written=written(700_000))  # a record that is gone meanwhile
    held(0, started=begun(0, hash="0" * 64), written=written(700_000))  # of a job that was made otherwise


def test_removing_one_of_several_names_frees_nothing():
    linked = f"{WHOLE[:-1]}2"
    held(0, made=linked)
    held(700_000, made=linked, started=begun(0), written=written(700_000))  # the other name is its own too


def test_a_job_without_room_asks_for_none():
    lane = rendered(room=[])
    asked = steps(lane)["job:rows-gates@spark-1"].asks("spark-1")
    assert "ask_written" not in [question.ask for question in asked]
    assert gate(lane).state == "ok"


def test_two_rooms_on_one_filesystem_are_added():
    path = "{{ root }}/rows"
    lane = rendered(room=[{"path": path, "bytes": "600000"}, {"path": path, "bytes": "600000"}])
    assert "needs 1200000 bytes" in gate(lane, available=1_000_000).reason


def test_memory_that_is_missing_is_told():
    lane = rendered(memory=120 * GIB)
    assert "the job rows needs 128.8 GB" in gate(lane).reason


def test_a_job_that_the_guard_would_kill_at_once_is_not_begun():
    limits = {"memory": 103 * GIB, "guard": 102 * GIB}  # 104.9 GiB are free
    lane = sample.lane(data=sample.recipe_data() | {"jobs": {"rows": rows()}, "limits": limits})
    (step,) = [s for s in jobs.job_steps(lane, RENDERED, RENDERED.jobs) if s.id == "job:rows-gates@spark-1"]
    answers = [told(rank, memory={"MemAvailable": 101 << 20}) for rank in (0, 1)]
    verdict = step.judge(replace(answers[0], others={"spark-2": answers[1]}))
    assert verdict.state == "blocked"
    assert verdict.reason == (
        "108.4 GB of memory are free; the job rows would be killed below 109.5 GB (limits.guard)"
    )
    assert step.judge(replace(told(0), others={"spark-2": told(1)})).state == "ok"


@pytest.mark.parametrize(("memory", "state"), [(96 * GIB, "ok"), (98 * GIB, "blocked")])
def test_beside_a_serving_lane_eight_gib_stay_free(memory, state):
    lane = rendered(memory=memory)  # 112.6 GB are free
    verdict = gate(lane, found=(serving("X"),))
    assert verdict.state == state
    if state == "blocked":
        assert verdict.reason.startswith(
            "the job rows needs the lane stopped: 112.6 GB are free beside lane X"
        )
        assert verdict.next_step == "invoke stop --lane=X"


def test_a_job_that_needs_the_gpu_waits_for_no_lane():
    lane = rendered(gpu=True)
    assert gate(lane).state == "ok"
    verdict = gate(lane, found=(serving("X"),))
    assert "needs the lane stopped: it needs the GPU, and lane X serves" in verdict.reason
    engine = {"name": "vllm", "image": "vllm/vllm-openai"}
    assert "is not sparkyard's; expected no other engine" in gate(lane, found=(engine,)).reason
    left = container(0, name="other", labels={"sparkyard.lane": "X", "sparkyard.job": "export"})
    assert "job export of lane X" in gate(lane, found=(left,)).reason


def test_what_a_serving_lane_reads_is_not_made_again_below_it():
    """One pack of four is gone: to make all of them again, those that the ranks of the lane read would be removed."""
    reads = gate(made=WHOLE, found=(serving(),))
    assert reads.state == "blocked"
    assert "needs the lane stopped: serves runs, and reads what the job left" in reads.reason
    assert reads.next_step == "invoke stop --lane=T"
    assert gate(made=WHOLE, found=(serving("X"),)).state == "ok"  # another lane has files of its own
    assert gate(found=(serving(),)).state == "ok"  # nothing is there to be read


def test_a_job_of_a_start_runs_beside_what_came_before_it():
    lane = rendered(at="start", memory=GIB)
    found = {s.id: s for s in jobs.job_steps(LANE, lane, lane.jobs, beside=("agent",))}
    step = found["job:rows-gates@spark-1"]

    def ask(service: str) -> Verdict:
        answers = told(0, found=(serving(service=service),))
        return step.judge(replace(answers, others={"spark-2": told(1)}))

    assert ask("agent").state == "ok"
    assert ask("engine").next_step == "invoke restart --lane=T"
