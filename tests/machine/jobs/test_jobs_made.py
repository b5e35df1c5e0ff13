"""Jobs on two simulated Sparks: run, sealed, left alone, run again; and their secrets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.machine.conftest import Lab
from tests.machine.jobs.sparks import LANE, NODES, NONE, TOKEN, JobTypist, Sparks
from tests.machine.typed import LIMIT, VALID, Said, until

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def built(session_lab: Lab, typist: JobTypist) -> tuple[Sparks, Said]:
    """One build from nothing, for the tests that only look at it; the first test that has nodes of its own forgets it."""
    session_lab.forget(NODES, LANE)
    return Sparks(session_lab, typist), typist.ok("build")


def test_both_ranks_leave_their_rows_and_are_sealed(built: tuple[Sparks, Said]) -> None:
    sparks, said = built
    assert [sparks.rows(rank).stat().st_size for rank in (0, 1)] == [4096, 4096]
    seals = [sparks.seal(node) for node in NODES]
    assert [(seal["job"], seal["lane"], len(seal["ranks"])) for seal in seals] == [("rows", "J", 2)] * 2
    assert seals[0]["hash"] == seals[1]["hash"]
    assert seals[1]["outputs"][0]["bytes"] == 4096
    assert seals[1]["outputs"][0]["inode"] == sparks.rows(1).stat().st_ino
    assert seals[0]["images"].keys() == set(NODES)
    sidecar = json.loads(sparks.rows(1).with_name("rows-1.bin.sparkyard.json").read_text())
    assert sidecar["ranks"] == seals[1]["ranks"]
    assert sidecar["ranks"][1]["argv"][-4:] == ["/opt/pack.sh", "1", "4096", "none"]
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert said.changed() == {"spark-1": 3, "spark-2": 2}


def test_the_next_rank_waits_for_the_gate(built: tuple[Sparks, Said]) -> None:
    sparks, said = built
    stamps = [
        sparks.log(said, f"{node}-sparkyard-J-job-rows-{rank}.log").split()[0]
        for rank, node in enumerate(NODES)
    ]
    assert stamps[1] < stamps[0]


def test_a_sealed_job_is_left_alone(built: tuple[Sparks, Said]) -> None:
    sparks, _ = built
    before = [sparks.rows(rank).stat() for rank in (0, 1)]
    assert sparks.typist.ok("build").changed() == NONE
    assert sparks.typist.json("build", "--check").status == 0
    assert [sparks.rows(rank).stat().st_mtime_ns for rank in (0, 1)] == [stat.st_mtime_ns for stat in before]


def test_what_each_rank_writes_is_told_while_it_runs(sparks: Sparks) -> None:
    """Each waits with 10 bytes of 4,096; a file of the same folder that is older than the job does not count."""
    for rank in (0, 1):
        old = sparks.rows(rank).with_name("old.bin")
        old.parent.mkdir(parents=True)
        old.write_bytes(bytes(5000))
    process = sparks.typist.start("build", "--set=fault=wait", "--json")
    assert process.stdout is not None
    told: dict[str, dict[str, Any]] = {}
    while len(told) < 2 and (line := process.stdout.readline()):
        event = json.loads(line)
        VALID.validate(event)
        progress = event["data"].get("progress", {})
        if progress.get("label", "").startswith("rows rank") and progress["done"]:
            told[event["node"]] = event
    sparks.go()
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, out + err
    assert {event["step"] for event in told.values()} == {"job:rows@spark-1"}
    for rank, node in enumerate(NODES):
        progress = told[node]["data"]["progress"]
        assert (progress["label"], progress["done"], progress["total"]) == (f"rows rank {rank}", 10, 4096)
        assert "at_most" not in progress


def test_check_shows_the_words_and_changes_nothing(sparks: Sparks) -> None:
    said = sparks.typist.json("build", "--check")
    assert said.status == 6
    shown = json.dumps(said.of("step-would-change"))
    assert "--name sparkyard-J-job-rows-1" in shown
    assert "/opt/pack.sh 1 4096 none" in shown
    assert not sparks.path("spark-1", "").exists()


def test_other_words_make_it_anew_after_a_yes(sparks: Sparks) -> None:
    sparks.typist.ok("build")
    refused = sparks.typist.json("build", "--set=bytes=8192")
    assert refused.status == 2
    assert "would be made again" in refused.failures()
    assert "what it is made of has changed" in refused.failures()
    assert [sparks.rows(rank).stat().st_size for rank in (0, 1)] == [4096, 4096]
    sparks.typist.ok("build", "--set=bytes=8192", "--yes")
    assert [sparks.rows(rank).stat().st_size for rank in (0, 1)] == [8192, 8192]
    assert sparks.typist.ok("build", "--set=bytes=8192").changed() == NONE


def test_a_file_that_was_changed_is_made_anew_after_a_yes(sparks: Sparks) -> None:
    sparks.typist.ok("build")
    with sparks.rows(1).open("r+b") as file:
        file.write(b"x")
    started = sparks.typist.json("start")
    assert started.status == 1
    assert "rows-1.bin was changed since it was sealed" in started.failures()
    assert "invoke build --lane=J" in started.failures()
    refused = sparks.typist.json("build")
    assert refused.status == 2
    assert "is not on record as job rows left it" in refused.failures()
    said = sparks.typist.ok("build", "--yes")
    assert "rows-1.bin was changed since it was sealed" in json.dumps(said.events)
    assert sparks.rows(1).read_bytes() == bytes(4096)


def test_a_file_that_is_gone_is_made_anew(sparks: Sparks) -> None:
    sparks.typist.ok("build")
    for rank in (0, 1):
        sparks.rows(rank).unlink()
    said = sparks.typist.ok("build")
    assert "rows-0.bin is gone" in json.dumps(said.events)
    assert sparks.rows(0).stat().st_size == 4096


def test_a_file_that_nobody_knows_is_not_removed_without_a_yes(sparks: Sparks) -> None:
    sparks.rows(0).parent.mkdir(parents=True)
    sparks.rows(0).write_text("mine")
    assert sparks.typist.json("build").status == 2
    assert sparks.rows(0).read_text() == "mine"
    sparks.rows(0).unlink()
    sparks.rows(0).mkdir()
    said = sparks.typist.json("build", "--yes")
    assert said.status == 1
    assert "rm -r -- " in said.failures()


def test_a_limit_that_leaves_ranks_out_runs_no_job(sparks: Sparks) -> None:
    said = sparks.typist.ok("build", "--limit=spark-1")
    assert "--limit leaves out spark-2" in json.dumps(said.of("step-skipped"))
    assert sparks.sealed() == []


def test_a_secret_of_an_environment_file_stands_nowhere(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=wait", "--json")
    until(sparks.waiting)
    told = "{{json .Args}} {{json .Path}} {{json .Config.Cmd}} {{json .Config.Labels}} {{json .HostConfig.Binds}}"
    for rank, node in enumerate(NODES):
        seen = sparks.lab.out(node, "docker", "inspect", "--format", told, f"sparkyard-J-job-rows-{rank}")
        assert "pack.sh" in seen
        assert TOKEN not in seen + sparks.lab.out(node, "ps", "axww", "-o", "args")
    sparks.go()
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, out + err
    assert TOKEN not in out + err
    for node in NODES:
        own = sparks.lab.own(node) / "home" / ".local"
        found = subprocess.run(
            ("grep", "-rlF", TOKEN, str(own)), capture_output=True, text=True, check=False
        ).stdout.split()
        assert [Path(path).name for path in found] == ["token.env"]
        assert Path(found[0]).stat().st_mode & 0o777 == 0o600
