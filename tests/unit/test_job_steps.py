"""Jobs, judged from raw answers: sealed, going on, to be run anew, and what forbids it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sparkyard import drift, facts
from sparkyard.actions import Run, StopContainer, WriteFile
from sparkyard.actions_job import RemoveFiles, RunJob
from sparkyard.facts import folder_question
from sparkyard.job_facts import job_question
from sparkyard.model import Node
from sparkyard.plan import Answers, Step, Verdict
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.steps import job as jobs
from sparkyard.steps import job_purge
from sparkyard.steps.job_gates import room_question
from sparkyard.steps.job_standing import standing
from tests.unit import raw, sample

GIB = 2**30
HOME = "/home/spark/.local/share/sparkyard/lanes/T"
SOURCE = {"kind": "chosen", "why": "for a test"}
NODES = (raw.HEAD, raw.WORKER)
MISSING = "ab|missing"
WHOLE = "ab|regular file|7|4096|8|1700000000.000000001|1700000000.000000002"
THERE = {"path": f"{HOME}/rows/rows-0.bin", "bytes": 4096, "inode": 7}
TIMES = {"mtime_ns": 1_700_000_000_000_000_001, "ctime_ns": 1_700_000_000_000_000_002}


def rows(**changes: Any) -> dict[str, Any]:
    """A job of both ranks that leaves a file of 4,096 bytes on each."""
    made: dict[str, Any] = {
        "about": "packs",
        "source": SOURCE,
        "nodes": "all",
        "timeout": 60.0,
        "words": ["pack", "{{ rank }}"],
        "mounts": [{"source": "{{ root }}/rows", "target": "/out", "read_only": False, "create": True}],
        "makes": [{"path": "{{ root }}/rows/rows-{{ rank }}.bin", "bytes": "4096"}],
        "room": [{"path": "{{ root }}/rows", "bytes": "1000000"}],
    }
    return made | changes


def rendered(**changes: Any) -> RenderedLane:
    data = sample.recipe_data() | {"jobs": {"rows": rows(**changes)}}
    return render_lane(sample.lane(data=data), {})


LANE = sample.lane(data=sample.recipe_data() | {"jobs": {"rows": rows()}})
RENDERED = rendered()
(JOB,) = RENDERED.jobs


def steps(lane: RenderedLane = RENDERED) -> dict[str, Step]:
    return {step.id: step for step in jobs.job_steps(LANE, lane, lane.jobs)}


def seal(rank: int, **changes: Any) -> str:
    output = THERE | TIMES | {"path": f"{HOME}/rows/rows-{rank}.bin"}
    return json.dumps({"version": 1, "hash": JOB.hash, "outputs": [output]} | changes)


def begun(rank: int, **changes: Any) -> str:
    path = JOB.outputs_of(NODES[rank].name)[0].path
    return json.dumps({"version": 1, "job": "rows", "hash": JOB.hash, "outputs": [path]} | changes)


def told(
    rank: int,
    sealed: str = "",
    started: str = "",
    made: str = MISSING,
    found: tuple[Mapping[str, Any], ...] = (),
    available: int = 10**12,
    age: int = 0,
    **more: Any,
) -> Answers:
    """The answers of one node about the job."""
    node: Node = NODES[rank]
    asked = job_question(JOB, node.name)
    text = f"job 1 {age}\n//seal\n{sealed}\n//begun\n{started}\n//made\n{made}\n//done\n"
    disk = f"disk 1\nfs ab\navailable {available}\nat {HOME}/rows\n//done\n"
    given = {
        asked: (0, text, ""),
        facts.CONTAINERS: raw.containers(*found),
        room_question(JOB.room_of(node.name)[0]): (0, disk, ""),
        folder_question(f"{sample.node(rank).root}/lanes/T/rows"): (0, "directory|755|spark\nwritable\n", ""),
    }
    return raw.answers(node, given, **more)


def container(rank: int, state: str = "running", **changes: Any) -> dict[str, Any]:
    labels = {"sparkyard.lane": "T", "sparkyard.job": "rows", "sparkyard.hash": JOB.hash}
    return {"name": f"sparkyard-T-job-rows-{rank}", "labels": labels, "state": state} | changes


def judge(id_: str, *answers: Answers, lane: RenderedLane = RENDERED) -> Verdict:
    """The verdict of a step, with the other node's answers beside its own."""
    step = steps(lane)[id_]
    own = next(each for each in answers if each.node == step.node)
    others = {each.node: each for each in answers if each is not own}
    return step.judge(replace(own, others=others))


def acts(verdict: Verdict) -> tuple[Any, ...]:
    """Its actions, each of the kind that the test expects."""
    return verdict.actions


def both(**more: Any) -> tuple[Answers, Answers]:
    return told(0, **more), told(1, **more)


def kinds(verdict: Verdict) -> list[type]:
    return [type(action) for action in verdict.actions]


def sealed_both() -> tuple[Answers, Answers]:
    return told(0, seal(0), made=WHOLE), told(1, seal(1), made=WHOLE)


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
    assert kinds(verdict) == [StopContainer, RemoveFiles, WriteFile]


# --- made ready -------------------------------------------------------------------------------------------------------


def test_records_are_written_before_files_are_removed():
    answers = (told(0, "", begun(0), WHOLE), told(1))
    verdict = judge("job:rows-ready@spark-1", *answers)
    forget, write, remove = acts(verdict)
    assert forget.paths == (f"{HOME}/jobs/rows.json",)
    assert json.loads(write.content)["hash"] == JOB.hash
    assert remove.paths == (f"{HOME}/rows/rows-0.bin", f"{HOME}/rows/rows-0.bin.sparkyard.json")
    assert verdict.destroys == ""  # an unfinished file of its own


def test_a_node_that_is_ready_stays_as_it_is():
    answers = (told(0, "", begun(0)), told(1))
    assert judge("job:rows-ready@spark-1", *answers).state == "ok"
    assert judge("job:rows-ready@spark-2", *answers).state == "change"


def test_folders_that_are_missing_are_made():
    missing = {
        folder_question(f"{sample.node(0).root}/lanes/T/rows"): (
            1,
            "",
            "stat: cannot statx '/x': No such file or directory",
        )
    }
    head = told(0)
    verdict = judge(
        "job:rows-ready@spark-1",
        replace(head, given={**head.given, **raw.answers(raw.HEAD, missing).given}),
        told(1),
    )
    assert verdict.state in ("change", "unknown")
    assert Run in kinds(verdict)


@pytest.mark.parametrize(
    ("sealed", "words"),
    [
        (seal(0, hash="0" * 64), "is a sealed output and would be made again"),
        ("", "is not on record as job rows left it, and would be removed"),
    ],
)
def test_whole_and_unknown_files_are_removed_after_a_yes_alone(sealed, words):
    verdict = judge("job:rows-ready@spark-1", told(0, sealed, made=WHOLE), told(1))
    assert words in verdict.destroys
    assert "rows-0.bin on spark-1 (4096 bytes)" in verdict.destroys


def test_what_is_no_file_is_never_removed():
    verdict = judge(
        "job:rows-gates@spark-1", told(0, made=WHOLE.replace("regular file", "directory")), told(1)
    )
    assert verdict.state == "blocked"
    assert verdict.next_step == f"look at it and remove it: rm -r -- {HOME}/rows/rows-0.bin"


@pytest.mark.parametrize(
    "labels", [{}, {"sparkyard.lane": "T"}, {"sparkyard.lane": "X", "sparkyard.job": "rows"}]
)
def test_a_container_with_our_name_that_is_not_ours_is_never_touched(labels):
    verdict = judge("job:rows-gates@spark-1", told(0, found=(container(0, labels=labels),)), told(1))
    assert (verdict.state, verdict.actions) == ("blocked", ())


def test_a_job_without_all_its_nodes_is_passed_over():
    for id_ in steps():
        node = steps()[id_].node
        verdict = steps()[id_].judge(told(0 if node == "spark-1" else 1))
        assert verdict.state == "skipped"
        assert "--limit leaves out" in verdict.reason


# --- gates ------------------------------------------------------------------------------------------------------------


def serving(lane: str = "T", service: str = "engine") -> dict[str, Any]:
    return {"name": "serves", "labels": {"sparkyard.lane": lane, "sparkyard.service": service}}


def gate(lane: RenderedLane = RENDERED, **more: Any) -> Verdict:
    return judge("job:rows-gates@spark-1", told(0, **more), told(1), lane=lane)


def test_room_is_judged_in_bytes():
    verdict = gate(available=999_999)
    assert verdict.state == "blocked"
    assert verdict.reason == f"999999 bytes are free on {HOME}/rows; the job rows needs 1000000 bytes"
    assert verdict.next_step == "free 1 bytes there (0.0 GiB)"
    assert gate(available=1_000_000).state == "ok"


def test_what_its_own_outputs_hold_counts_as_free():
    assert gate(started=begun(0), made=WHOLE, available=1_000_000 - 4096).state == "ok"
    verdict = gate(started=begun(0), made=WHOLE, available=1_000_000 - 4097)
    assert "and 4096 are held by what it left" in verdict.reason


def test_two_rooms_on_one_filesystem_are_added():
    path = "{{ root }}/rows"
    lane = rendered(room=[{"path": path, "bytes": "600000"}, {"path": path, "bytes": "600000"}])
    assert "needs 1200000 bytes" in gate(lane, available=1_000_000).reason


def test_memory_that_is_missing_is_told():
    lane = rendered(memory=120 * GIB)
    assert "the job rows needs 120.0 GiB" in gate(lane).reason


@pytest.mark.parametrize(("memory", "state"), [(96 * GIB, "ok"), (98 * GIB, "blocked")])
def test_beside_a_serving_lane_eight_gib_stay_free(memory, state):
    lane = rendered(memory=memory)  # 104.9 GiB are free
    verdict = gate(lane, found=(serving("X"),))
    assert verdict.state == state
    if state == "blocked":
        assert verdict.reason.startswith(
            "the job rows needs the lane stopped: 104.9 GiB are free beside lane X"
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


# --- the action -------------------------------------------------------------------------------------------------------


def test_the_action_has_every_word_filled_and_every_place_on_its_node():
    (run,) = acts(judge("job:rows@spark-1", *both()))
    assert [rank.node for rank in run.ranks] == ["spark-1", "spark-2"]
    assert not any("<discovered" in word for rank in run.ranks for word in rank.command.words)
    assert run.ranks[1].command.words[-2:] == ("pack", "1")
    assert run.seals == {node.name: f"{HOME}/jobs/rows.json" for node in NODES}
    assert [output.path for output in run.makes] == [f"{HOME}/rows/rows-{n}.bin" for n in (0, 1)]
    assert run.record["hash"] == JOB.hash


# --- purge ------------------------------------------------------------------------------------------------------------


def purge(answers: Answers) -> Verdict:
    (step,) = job_purge.purge_steps(RENDERED.jobs, answers.node)
    return step.judge(answers)


@pytest.mark.parametrize("records", [{"sealed": seal(0)}, {"started": begun(0)}])
def test_purge_removes_what_is_on_record_after_a_yes(records):
    verdict = purge(told(0, made=WHOLE, **records))
    assert verdict.destroys == f"{HOME}/rows/rows-0.bin (4.1 kB) on spark-1"
    assert kinds(verdict) == [RemoveFiles, Run]
    assert acts(verdict)[0].paths == (f"{HOME}/rows/rows-0.bin", f"{HOME}/rows/rows-0.bin.sparkyard.json")


def test_purge_leaves_what_nobody_knows():
    verdict = purge(told(0, made=WHOLE))
    assert (verdict.state, verdict.actions) == ("ok", ())
    assert verdict.details == (f"{HOME}/rows/rows-0.bin is not on record and stays",)


def test_purge_removes_nothing_below_a_job_that_runs():
    assert purge(told(0, started=begun(0), made=WHOLE, found=(container(0),))).state == "blocked"


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
