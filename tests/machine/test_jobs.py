"""Jobs on two simulated Sparks: run, sealed, left alone, run again; and every way in which they can be cut short."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Said, Typist, until

pytestmark = pytest.mark.machine

NODES = ("spark-1", "spark-2")
LANE = "home/.local/share/sparkyard/lanes/J"
TOKEN = "t0ken-that-nobody-may-read"
NONE = {"spark-1": 0, "spark-2": 0}


@dataclass(frozen=True)
class JobTypist(Typist):
    """Types lines for lane J, whose recipe lies with the tests."""

    recipes: Path = PROJECT / "tests" / "data" / "recipes"

    def words(self, *line: str) -> list[str]:
        return [*super().words(*line), "--lane=J", f"--recipes={self.recipes}"]


@dataclass(frozen=True)
class Sparks:
    """Two Sparks and somebody to type, as tests of jobs look at them."""

    lab: Lab
    typist: JobTypist

    def path(self, node: str, name: str) -> Path:
        """A file in the lane's own folder, as seen from outside."""
        return self.lab.own(node) / LANE / name

    def rows(self, rank: int) -> Path:
        return self.path(NODES[rank], f"rows/rows-{rank}.bin")

    def seal(self, node: str, job: str = "rows") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path(node, f"jobs/{job}.json").read_text())
        return found

    def sealed(self, job: str = "rows") -> list[str]:
        return [node for node in NODES if self.path(node, f"jobs/{job}.json").exists()]

    def containers(self, node: str, *more: str) -> list[str]:
        """Names of the containers of jobs, running or not."""
        words = ("docker", "ps", "--all", "--filter", "label=sparkyard.job", "--format", "{{.Names}}", *more)
        return self.lab.out(node, *words).split()

    def go(self, *nodes: str) -> None:
        """Let jobs that wait go on."""
        for node in nodes or NODES:
            (self.path(node, "rows") / "go").touch()

    def let_go(self) -> None:
        """The next ones wait again."""
        for node in NODES:
            (self.path(node, "rows") / "go").unlink(missing_ok=True)

    def waiting(self) -> bool:
        """Whether both ranks of a job wait for ``go``."""
        return all(self.rows(rank).exists() for rank in (0, 1))

    def killed(self, *line: str) -> None:
        """Type a build whose ranks wait, and kill sparkyard itself while they do."""
        process = self.typist.start("build", "--set=fault=wait", *line, "--json", start_new_session=True)
        until(self.waiting)
        process.kill()
        process.communicate(timeout=30)

    def log(self, said: Said, name: str) -> str:
        """A log in the record of a run."""
        (recap,) = said.of("recap")
        return self.lab.out("spark-1", "cat", f"{recap['data']['record']}/logs/{name}")


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> JobTypist:
    """Somebody to type; the image is built and shipped once."""
    folder = tmp_path_factory.mktemp("inventory") / "lab"
    shutil.copytree(PROJECT / "inventory" / "lab", folder, ignore=shutil.ignore_patterns("locks"))
    hosts = folder / "hosts.yml"
    text = hosts.read_text()
    hosts.write_text(
        text.replace("    lab: true\n", f"    lab: true\n    lanes: {{J: {{token: {TOKEN}}}}}\n")
    )
    made = JobTypist(folder)
    made.ok("build", "--only=image")
    return made


@pytest.fixture
def sparks(lab: Lab, typist: JobTypist) -> Iterator[Sparks]:
    """Nodes without anything of lane J but its image, before and after."""
    lab.forget(NODES, LANE)
    yield Sparks(lab, typist)
    lab.forget(NODES, LANE)


@pytest.fixture(scope="module")
def built(session_lab: Lab, typist: JobTypist) -> tuple[Sparks, Said]:
    """One build from nothing, for the tests that only look at it; the first test that has nodes of its own forgets it."""
    session_lab.forget(NODES, LANE)
    return Sparks(session_lab, typist), typist.ok("build")


@pytest.fixture(scope="module")
def serving(session_lab: Lab, typist: JobTypist) -> Iterator[Sparks]:
    """The lane, built and started once, for the tests beside it; each leaves it serving, or is the last."""
    session_lab.forget(NODES, LANE)
    refused = typist.json("start")
    assert refused.status == 1
    assert "invoke build --lane=J" in refused.failures()
    order = [event["step"] for event in typist.ok("build", "start").of("step-changed")]
    wanted = [
        "service:agent@spark-2",
        "service:agent@spark-1",
        "job:pair-ready@spark-1",
        "job:pair@spark-1",
        "service:server@spark-1",
    ]
    assert [step for step in order if step in wanted] == wanted
    yield Sparks(session_lab, typist)
    session_lab.forget(NODES, LANE)


# --- as it should be --------------------------------------------------------------------------------------------------


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


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_rank_that_fails_ends_the_others_and_is_named(sparks: Sparks) -> None:
    began = time.monotonic()
    said = sparks.typist.json("build", "--set=fault=fail-1")
    assert said.status == 1
    assert time.monotonic() - began < 40
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
        ("log_silence: 3\n    timeout: 60", "no rank wrote a log line for 3 s, and they have not ended"),
    ],
)
def test_a_job_that_hangs_is_ended_at_its_limit(
    sparks: Sparks, tmp_path: Path, limit: str, words: str
) -> None:
    shutil.copytree(sparks.typist.recipes / "jobs", tmp_path / "jobs")
    recipe = tmp_path / "jobs" / "recipe.yml"
    recipe.write_text(recipe.read_text().replace("timeout: 60\n    grace", f"{limit}\n    grace"))
    said = JobTypist(sparks.typist.inventory, tmp_path).json("build", "--set=fault=wait")
    assert said.status == 1
    assert words in said.failures()
    assert "last lines of spark-2 (sparkyard-J-job-rows-1):" in said.failures()
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []


# --- cut short --------------------------------------------------------------------------------------------------------


def test_killed_while_it_runs_is_waited_for(sparks: Sparks) -> None:
    sparks.killed()
    running = [sparks.containers(node, "--no-trunc", "--quiet") for node in NODES]
    shown = sparks.typist.json("status")
    assert "job rows of lane J: sparkyard-J-job-rows-0 runs since" in shown.failures()
    process = sparks.typist.start("build", "--set=fault=wait", "--json")
    time.sleep(3)
    assert [sparks.containers(node, "--no-trunc", "--quiet") for node in NODES] == running
    sparks.go()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
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


def test_killed_and_a_rank_lost_is_run_anew(sparks: Sparks) -> None:
    sparks.killed()
    sparks.lab.run("spark-2", "docker", "kill", "sparkyard-J-job-rows-1")
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
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert time.monotonic() - began < 20
    assert [sparks.containers(node) for node in NODES] == [[], []]
    assert sparks.sealed() == []
    sparks.typist.ok("build")
    assert sparks.sealed() == list(NODES)


def test_a_rank_that_hears_no_term_is_killed_after_its_grace(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=deaf", "--json", start_new_session=True)
    until(lambda: len(sparks.containers("spark-1", "--filter", "status=running")) == 1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert [sparks.containers(node) for node in NODES] == [[], []]


def test_a_node_that_goes_away_is_named_and_the_job_begins_anew_when_it_is_back(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=wait", "--json")
    until(sparks.waiting)
    until(lambda: sparks.containers("spark-1", "--filter", "status=running"))
    faults.kill_node("spark-2")
    try:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 4, out + err
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


# --- beside a lane, and in a start ------------------------------------------------------------------------------------


def test_stages_are_started_in_their_order_and_once(serving: Sparks) -> None:
    sparks = serving
    assert sparks.typist.ok("build", "start").changed() == NONE
    assert sparks.typist.json("status").status == 0


def test_a_job_of_a_start_does_not_run_below_what_comes_after_it(serving: Sparks) -> None:
    sparks = serving
    sparks.path("spark-1", "pair/paired").unlink()
    said = sparks.typist.json("start")
    assert said.status == 1
    assert (
        "the job pair needs the lane stopped: sparkyard-J-server-0 runs, and comes after it"
        in said.failures()
    )
    assert "invoke restart --lane=J" in said.failures()
    sparks.typist.ok("restart")
    assert sparks.path("spark-1", "pair/paired").read_text() == "paired\n"


def test_a_job_that_needs_the_gpu_is_refused_beside_a_serving_lane(serving: Sparks) -> None:
    sparks = serving
    said = sparks.typist.json("build", "--set=heavy=true")
    assert said.status == 1
    assert "the job heavy needs the lane stopped: it needs the GPU, and lane J serves" in said.failures()
    assert sparks.typist.json("status").status == 0
    sparks.typist.ok("stop")
    sparks.typist.ok("build", "--set=heavy=true")
    assert sparks.sealed("heavy") == ["spark-1"]


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_of_an_environment_file_stands_nowhere(sparks: Sparks) -> None:
    process = sparks.typist.start("build", "--set=fault=wait", "--json")
    until(sparks.waiting)
    told = "{{json .Args}} {{json .Path}} {{json .Config.Cmd}} {{json .Config.Labels}} {{json .HostConfig.Binds}}"
    for rank, node in enumerate(NODES):
        seen = sparks.lab.out(node, "docker", "inspect", "--format", told, f"sparkyard-J-job-rows-{rank}")
        assert "pack.sh" in seen
        assert TOKEN not in seen + sparks.lab.out(node, "ps", "axww", "-o", "args")
    sparks.go()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert TOKEN not in out + err
    for node in NODES:
        own = sparks.lab.own(node) / "home" / ".local"
        found = subprocess.run(
            ("grep", "-rlF", TOKEN, str(own)), capture_output=True, text=True, check=False
        ).stdout.split()
        assert [Path(path).name for path in found] == ["token.env"]
        assert Path(found[0]).stat().st_mode & 0o777 == 0o600
