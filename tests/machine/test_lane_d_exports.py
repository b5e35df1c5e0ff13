"""Exports of lane D that end early, on four simulated Sparks: whatever ended them, the next run heals, and no half package looks whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.lane_d import (
    CACHE,
    NODES,
    NOTHING,
    OWN,
    PACKAGE,
    containers_away,
    forget,
    inspected,
    somebody,
    unmade,
)
from tests.machine.typed import LIMIT, Said, Typist, until

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def typist(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    return somebody(four_lab, tmp_path_factory.mktemp("inventory") / "stand-in")


@pytest.fixture(scope="module")
def prepared(four_lab: Lab, typist: Typist) -> Iterator[Lab]:
    """The checkpoint is there; the first build of a test brings the image and its own word of itself."""
    forget(four_lab)
    typist.ok("download", "--lane=D", "--yes")
    yield four_lab
    forget(four_lab)


@pytest.fixture
def stopped(prepared: Lab) -> Lab:
    """The same nodes without anything that an export left."""
    unmade(prepared)
    return prepared


def export(typist: Typist, *line: str) -> Said:
    return typist.json("build", "--lane=D", "--yes", *line)


def seals(lab: Lab) -> list[bool]:
    return [(lab.own(node) / OWN / "jobs/export@c16-d5-csf-t1e-5.json").is_file() for node in NODES]


def log_of(lab: Lab, rank: int) -> str:
    done = lab.run(NODES[rank], "docker", "logs", f"sparkyard-D-job-export-{rank}", check=False)
    return done.stdout + done.stderr


def fault(lab: Lab, rank: int, words: str) -> None:
    """What a rank of the next export does wrong; empty: nothing any more."""
    path = lab.own(NODES[rank]) / CACHE / "stand-in/faults"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)


def held(lab: Lab, typist: Typist, phase: str) -> None:
    """An export that holds in a phase, and whose sparkyard was killed there."""
    fault(lab, 0, f"--hold-at {phase}")
    line = typist.start("build", "--lane=D", "--yes", start_new_session=True)
    try:
        until(lambda: f"holding in phase {phase}" in log_of(lab, 0))
    finally:
        killed(line)
    fault(lab, 0, "")


def killed(line: subprocess.Popen[str]) -> None:
    os.killpg(line.pid, signal.SIGKILL)
    line.communicate()


def attached(typist: Typist) -> subprocess.Popen[str]:
    """A second sparkyard, which has found the export going on and waits for it."""
    line = typist.start("build", "--lane=D", "--yes", "--json", start_new_session=True)
    assert line.stdout
    for text in line.stdout:
        event = json.loads(text)
        if event["type"] == "step-start" and event["step"] == "job:export@spark-1":
            assert "it is waited for" in event["message"]
            return line
    raise AssertionError("it ended and waited for nothing")


def jobs(lab: Lab) -> dict[str, str]:
    """The containers of jobs that run, by node."""
    words = ("docker", "ps", "--format", "{{.Names}}", "--filter", "label=sparkyard.job")
    return {node: lab.out(node, *words) for node in NODES}


@pytest.mark.long
def test_an_export_whose_nodes_went_down_in_a_phase_is_made_anew(stopped: Lab, typist: Typist) -> None:
    began = ""
    for phase in ("start", "rendezvous", "pull", "write"):  # each run gets further than the one before it
        held(stopped, typist, phase)
        for node in NODES:  # as a reboot does; a rank that lost its peers may have ended by itself
            stopped.kill(node, "label=sparkyard.job")
        again = inspected(stopped, "spark-1", "sparkyard-D-job-export-0")["Id"]
        assert again != began
        began = again
        assert seals(stopped) == [False] * 4
    said = export(typist)
    assert said.status == 0, said.failures()
    assert seals(stopped) == [True] * 4
    assert (stopped.own("spark-1") / PACKAGE).stat().st_size > 1 << 20
    assert export(typist).changed() == NOTHING


def test_a_rank_that_fails_ends_the_others_and_leaves_no_seal(stopped: Lab, typist: Typist) -> None:
    fault(stopped, 2, "--die-at compile")
    said = export(typist)
    assert said.status == 1
    assert "spark-3" in said.failures()
    assert "FATAL scripted death in phase compile" in said.failures()
    assert seals(stopped) == [False] * 4
    for node in NODES:
        assert stopped.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.job") == ""
    fault(stopped, 2, "")


def test_an_export_that_goes_on_without_sparkyard_is_waited_for(prepared: Lab, typist: Typist) -> None:
    """Begun anew over what the failed rank of the test before left."""
    held(prepared, typist, "end")
    (prepared.own("spark-1") / CACHE / "stand-in/go").touch()
    until(lambda: "signed by" in log_of(prepared, 0))
    made = (prepared.own("spark-1") / PACKAGE).stat()
    assert seals(prepared) == [False] * 4
    said = export(typist)
    assert said.status == 0, said.failures()
    assert seals(prepared) == [True] * 4
    assert (prepared.own("spark-1") / PACKAGE).stat().st_mtime_ns == made.st_mtime_ns


def test_a_disk_that_fills_leaves_no_half_package_that_looks_whole(stopped: Lab, typist: Typist) -> None:
    disk = faults.small_disk("spark-1", 6 << 20, f"{CACHE}")
    try:
        stopped.run("spark-1", "mkdir", f"{disk}/stand-in")
        stopped.run("spark-1", "sh", "-c", f"echo --hold-at write > {disk}/stand-in/faults")
        line = typist.start("build", "--lane=D", "--yes", "--json")
        until(lambda: "holding in phase write" in log_of(stopped, 0))
        stopped.run(
            "spark-1", "sh", "-c", f"head -c 5500000 /dev/zero > {disk}/filler; touch {disk}/stand-in/go"
        )
        out, _ = line.communicate(timeout=LIMIT)
        assert line.returncode == 1
        assert "No space left on device" in out
        assert seals(stopped) == [False] * 4
        stopped.run("spark-1", "rm", f"{disk}/filler", f"{disk}/stand-in/faults")
        healed = export(typist)
        assert healed.status == 0, healed.failures()
        size = stopped.out("spark-1", "stat", "-c", "%s %h", str(disk / Path(PACKAGE).relative_to(CACHE)))
        assert size.split()[1] == "2"
        assert int(size.split()[0]) > 1 << 20
    finally:
        for node in NODES:
            containers_away(stopped, node)
        faults.whole_disk("spark-1", CACHE)


def test_a_package_that_nobody_recorded_is_not_taken_for_ours(stopped: Lab, typist: Typist) -> None:
    path = stopped.own("spark-1") / PACKAGE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"somebody's")
    said = typist.json("build", "--lane=D")
    assert said.status == 2
    told = f"{Path(PACKAGE).name} on spark-1 (10 bytes) is not on record as job export left it, and would be removed"
    assert told in said.failures()
    assert path.read_bytes() == b"somebody's"
    assert seals(stopped) == [False] * 4


@pytest.mark.long
def test_an_export_that_is_cut_short_again_and_again_in_one_phase_heals(stopped: Lab, typist: Typist) -> None:
    """Killed, killed while it was waited for, stopped; then the head goes down in the same phase, with half a package there."""
    held(stopped, typist, "end")
    again = attached(typist)
    refused = typist.json("stop", "--lane=D")
    assert refused.status == 5, refused.failures()  # somebody works there
    killed(again)
    assert set(jobs(stopped).values()) == {f"sparkyard-D-job-export-{rank}" for rank in range(4)}
    typist.ok("stop", "--lane=D")
    assert set(jobs(stopped).values()) == {""}
    assert seals(stopped) == [False] * 4
    held(stopped, typist, "write")
    faults.kill_node("spark-1")
    package = stopped.own("spark-1") / PACKAGE
    package.parent.mkdir(parents=True, exist_ok=True)
    package.write_bytes(b"half")  # as a disk has it after a power cut
    simulated.up(4, print)
    said = export(typist)
    assert said.status == 0, said.failures()
    assert seals(stopped) == [True] * 4
    assert package.stat().st_size > 1 << 20
    assert set(jobs(stopped).values()) == {""}
    assert export(typist).changed() == NOTHING
