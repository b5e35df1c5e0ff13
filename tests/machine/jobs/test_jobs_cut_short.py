"""Every way in which a job on two simulated Sparks can be cut short, and what the next line makes of it."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.jobs.sparks import NODES, NONE, Sparks
from tests.machine.typed import LIMIT, until

pytestmark = pytest.mark.machine


def test_killed_while_it_runs_is_waited_for(sparks: Sparks) -> None:
    sparks.killed()
    running = [sparks.containers(node, "--no-trunc", "--quiet") for node in NODES]
    shown = sparks.typist.json("status")
    assert "job rows of lane J: sparkyard-J-job-rows-0 runs since" in shown.failures()
    line = sparks.typist.going("build", "--set=fault=wait")
    line.says("spark-1: packing rank 0")  # it waits for both, and tells what they say
    assert [sparks.containers(node, "--no-trunc", "--quiet") for node in NODES] == running
    sparks.go()
    status, out, err = line.end()
    assert status == 0, out + err
    assert "wait for sparkyard-J-job-rows-0, sparkyard-J-job-rows-1" in out
    assert "docker run" not in out
    assert sparks.sealed() == list(NODES)
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.typist.ok("build", "--set=fault=wait").changed() == NONE


def test_killed_and_ended_before_the_seal_is_sealed(sparks: Sparks) -> None:
    sparks.killed()
    sparks.go()
    until(lambda: all(sparks.containers(node, "--filter", "status=exited") for node in NODES))
    assert sparks.sealed() == []
    said = sparks.typist.ok("build", "--set=fault=wait")
    assert "docker run" not in json.dumps(said.events)
    assert sparks.sealed() == list(NODES)
    assert [sparks.containers(node) for node in NODES] == [[], []]


def test_the_time_limit_of_a_job_that_is_picked_up_counts_from_its_start(
    sparks: Sparks, tmp_path: Path
) -> None:
    patient = replace(sparks, typist=sparks.typist.limited(tmp_path / "patient", 600))
    patient.typist.ok("build", "--only=image")
    patient.killed()
    words = ("docker", "inspect", "--format", "{{.State.StartedAt}}", "sparkyard-J-job-rows-1")
    started = datetime.fromisoformat(sparks.lab.out("spark-2", *words))
    until(lambda: datetime.now(UTC) - started > timedelta(seconds=10))
    said = sparks.typist.limited(tmp_path / "short", 5).json("build", "--set=fault=wait")
    assert said.status == 1
    told = re.search(r"job rows did not end within 5 s: it was started (\d+) s ago", said.failures())
    assert told is not None, said.failures()
    assert int(told[1]) >= 10
    assert "docker run" not in json.dumps(said.events)
    assert "last lines of spark-2 (sparkyard-J-job-rows-1):" in said.failures()
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []


def test_killed_and_a_rank_lost_is_run_anew(sparks: Sparks) -> None:
    sparks.killed()
    sparks.lab.kill("spark-2", "name=sparkyard-J-job-rows-1")
    sparks.go("spark-1")
    said = sparks.typist.ok("build")
    assert "docker run" in json.dumps(said.events)
    assert sparks.sealed() == list(NODES)


def test_killed_and_meant_otherwise_is_run_anew(sparks: Sparks) -> None:
    sparks.killed()
    sparks.typist.ok("build")
    assert sparks.seal("spark-1")["ranks"][0]["argv"][-1] == "none"


def test_killed_between_seal_and_end_is_tidied(sparks: Sparks) -> None:
    sparks.typist.ok("build")
    seal = sparks.seal("spark-1")
    begun = {"version": 1, "job": "rows", "hash": seal["hash"], "outputs": []}
    sparks.path("spark-1", "jobs/rows.begun.json").write_text(json.dumps(begun))
    image = seal["ranks"][0]["argv"][-6]
    labels = [word for word in seal["ranks"][0]["argv"] if word.startswith("sparkyard.")]
    words = [part for label in labels for part in ("--label", label)]
    sparks.lab.run("spark-1", "docker", "run", "--name", "sparkyard-J-job-rows-0", *words, image, "true")
    assert sparks.typist.ok("build").changed() == {"spark-1": 1, "spark-2": 0}
    assert sparks.containers("spark-1") == []
    assert sparks.typist.ok("build").changed() == NONE


def test_ctrl_c_ends_the_ranks_and_the_next_build_heals(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=wait", "--json", start_new_session=True)
    until(sparks.waiting)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, out + err
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []
    sparks.typist.ok("build")
    assert sparks.sealed() == list(NODES)


def test_a_rank_that_hears_no_term_is_killed_after_its_grace(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=deaf", "--json", start_new_session=True)
    until(lambda: len(sparks.containers("spark-1", "--filter", "status=running")) == 1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert [sparks.containers(node) for node in NODES] == [[], []]


def test_a_node_that_goes_away_is_named_and_the_job_begins_anew_when_it_is_back(sparks: Sparks) -> None:
    line = sparks.typist.going("build", "--set=fault=wait")
    line.says("spark-1: packing rank 0")  # all ranks were started
    faults.kill_node("spark-2")
    try:
        status, out, err = line.end()
        assert status == 4, out + err
        assert "all ranks were started, and were left to go on" in out
        assert sparks.containers("spark-1", "--filter", "status=running") == ["sparkyard-J-job-rows-0"]
    finally:
        simulated.up(2, print)
    sparks.typist.ok("build")
    assert sparks.sealed() == list(NODES)


def test_stop_ends_a_job_that_a_killed_run_left(sparks: Sparks) -> None:
    sparks.killed()
    assert sparks.typist.ok("stop").changed() == {"spark-1": 1, "spark-2": 1}
    assert [sparks.containers(node) for node in NODES] == [[], []]
