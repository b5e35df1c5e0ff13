"""What is done for a job that must run, judged from raw answers: its nodes made ready, the run, and what a purge takes away."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sparkyard.actions import Run
from sparkyard.actions_job import RemoveFiles
from sparkyard.facts import folder_question
from sparkyard.job_facts import job_question
from sparkyard.plan import Answers, Verdict
from sparkyard.steps import job_purge
from tests.unit import raw, sample
from tests.unit.job_answers import (
    HOME,
    JOB,
    NODES,
    RENDERED,
    WHOLE,
    acts,
    begun,
    both,
    container,
    judge,
    kinds,
    seal,
    steps,
    told,
)

# --- made ready -------------------------------------------------------------------------------------------------------


def test_records_are_written_before_files_are_removed():
    answers = (told(0, "", begun(0, hash="0" * 64), WHOLE), told(1))
    verdict = judge("job:rows-ready@spark-1", *answers)
    forget, write, remove = acts(verdict)
    assert forget.paths == (f"{HOME}/jobs/rows.json",)
    assert json.loads(write.content)["hash"] == JOB.hash
    assert remove.paths == (f"{HOME}/rows/rows-0.bin", f"{HOME}/rows/rows-0.bin.sparkyard.json")
    assert verdict.destroys == ""  # an unfinished file of its own


def test_the_record_of_a_job_that_is_begun_again_keeps_its_time():
    """What was written since then is its own."""
    verdict = judge("job:rows-ready@spark-1", told(0, "", begun(0), WHOLE), told(1))
    assert kinds(verdict) == [RemoveFiles, RemoveFiles]
    assert verdict.destroys == ""


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


def test_purge_tells_what_nobody_knows():
    verdict = purge(told(0, made=WHOLE))
    assert (verdict.state, verdict.actions) == ("ok", ())
    assert verdict.details == (
        f"{HOME}/rows/rows-0.bin is not on record, and would go with {HOME}: move it away to keep it",
    )
    elsewhere = replace(RENDERED.jobs[0], folders=dict.fromkeys(RENDERED.jobs[0].folders, "/other/jobs"))
    asked = {
        **told(0).given,
        job_question(elsewhere, "spark-1"): told(0, made=WHOLE).of(job_question(JOB, "spark-1")),
    }
    (step,) = job_purge.purge_steps([elsewhere], "spark-1")
    verdict = step.judge(replace(told(0), given=asked))
    assert verdict.details == (f"{HOME}/rows/rows-0.bin is not on record and stays",)


def test_purge_removes_nothing_below_a_job_that_runs():
    assert purge(told(0, started=begun(0), made=WHOLE, found=(container(0),))).state == "blocked"
