"""Jobs on two simulated Sparks that fail, hang, lack room or leave the wrong thing: told on every rank, and nothing sealed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparkyard.lab import faults
from tests.machine.jobs.sparks import LANE, NODES, JobTypist, Sparks
from tests.machine.typed import until

pytestmark = pytest.mark.machine


def test_a_rank_that_fails_ends_the_others_and_is_named(sparks: Sparks) -> None:
    line = sparks.typist.going("build", "--set=fault=fail-1")
    until(sparks.waiting)  # the other rank waits, and hears when it is told to end
    sparks.go("spark-2")
    said = line.said_all()
    assert said.status == 1
    (failed,) = said.of("step-failed")
    assert (
        "job rows: the rank on spark-2 (container sparkyard-J-job-rows-1) ended with exit code 3"
        in failed["message"]
    )
    assert "  rank 1 met a bad row" in failed["data"]["details"]
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []
    assert "told to end" in sparks.log(said, "spark-1-sparkyard-J-job-rows-0.log")
    sparks.typist.ok("build")
    assert sparks.sealed() == list(NODES)


def test_a_log_that_lacks_a_line_is_a_failure_on_every_rank(sparks: Sparks) -> None:
    said = sparks.typist.json("build", "--set=fault=mute")
    assert said.status == 1
    words = said.failures()
    assert "spark-1: the rows are packed" in words
    assert "spark-2: the rows are packed" in words
    assert sparks.sealed() == []


def test_outputs_of_another_size_are_a_failure_on_every_rank(sparks: Sparks) -> None:
    said = sparks.typist.json("build", "--set=fault=short")
    assert said.status == 1
    assert said.failures().count("has 10 bytes, expected 4096") == 2
    assert sparks.sealed() == []


def test_too_little_room_is_told_in_bytes_before_anything_runs(sparks: Sparks) -> None:
    faults.small_disk("spark-2", 1_048_576, f"{LANE}/rows")
    try:
        said = sparks.typist.json("build", "--set=room=2000000")
        assert said.status == 1
        (failed,) = said.of("step-failed")
        assert failed["node"] == "spark-2"
        assert "1048576 bytes are free" in failed["message"]
        assert "the job rows needs 2000000 bytes" in failed["message"]
        assert not sparks.path("spark-1", "jobs").exists()
    finally:
        faults.whole_disk("spark-2", f"{LANE}/rows")


def test_what_a_run_that_failed_has_written_already_is_no_reason_to_refuse_the_next(sparks: Sparks) -> None:
    """Its cache stays, and is used again: 446,464 bytes are free beside it."""
    faults.small_disk("spark-2", 1_048_576, f"{LANE}/rows")
    try:
        line = ("build", "--set=room=1000000", "--set=fault=once-1")
        assert "rank 1 met a bad row" in sparks.typist.json(*line).failures()
        refused = sparks.typist.json(*line, "--set=bytes=5000")
        # another job: that cache is not known to be its own
        assert "446464 bytes are free" in refused.failures()
        sparks.typist.ok(*line)
        assert sparks.sealed() == list(NODES)
    finally:
        faults.whole_disk("spark-2", f"{LANE}/rows")


def test_a_disk_that_fills_leaves_nothing_that_looks_whole(sparks: Sparks) -> None:
    faults.small_disk("spark-2", 1_048_576, f"{LANE}/rows")
    try:
        said = sparks.typist.json("build", "--set=bytes=4000000")
        assert said.status == 1
        assert "(container sparkyard-J-job-rows-1) ended with exit code 1" in said.failures()
        assert sparks.sealed() == []
        assert sparks.typist.json("start", "--set=bytes=4000000").status == 1
    finally:
        faults.whole_disk("spark-2", f"{LANE}/rows")
    sparks.typist.ok("build", "--set=bytes=4000000")
    assert [sparks.rows(rank).stat().st_size for rank in (0, 1)] == [4_000_000, 4_000_000]


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("timeout: 4", "job rows did not end within 4 s"),
        ("log_silence: 3\n    timeout: 600", "no rank wrote a log line for 3 s, and they have not ended"),
    ],
)
def test_a_job_that_hangs_is_ended_at_its_limit(
    sparks: Sparks, tmp_path: Path, limit: str, words: str
) -> None:
    shutil.copytree(sparks.typist.recipes / "jobs", tmp_path / "jobs")
    recipe = tmp_path / "jobs" / "recipe.yml"
    text = recipe.read_text()
    assert "timeout: 600\n    grace" in text
    recipe.write_text(text.replace("timeout: 600\n    grace", f"{limit}\n    grace"))
    said = JobTypist(sparks.typist.inventory, tmp_path).json("build", "--set=fault=wait")
    assert said.status == 1
    assert words in said.failures()
    assert "last lines of spark-2 (sparkyard-J-job-rows-1):" in said.failures()
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []
