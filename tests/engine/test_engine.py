"""The walk, with real facts scripts, shells and files on this machine."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from sparkyard import facts
from sparkyard.actions import Action, Run, WriteFile
from sparkyard.command import Command
from sparkyard.engine import Engine, Mode
from sparkyard.errors import CouldNotCheck, Interrupted
from sparkyard.events import Event
from sparkyard.plan import Answers, Plan, Step, Verdict
from sparkyard.step_world import Surroundings
from tests.engine.local_nodes import surroundings
from tests.machine.typed import until


class Listener:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def ends(self) -> list[tuple[str, str]]:
        return [
            (e.type, e.step) for e in self.events if e.step and e.type not in ("step-start", "step-output")
        ]

    def of(self, type_: str) -> list[Event]:
        return [e for e in self.events if e.type == type_]


def file_step(node: str, path: Path, content: bytes, *needs: str, destroys: str = "") -> Step:
    question = facts.file_question(str(path))

    def judge(answers: Answers) -> Verdict:
        found = facts.file(answers, question)
        if found.sha256 == hashlib.sha256(content).hexdigest():
            return Verdict("ok", "as wanted")
        return Verdict("change", f"{path.name} differs", (WriteFile(str(path), content),), destroys=destroys)

    return Step("file", path.name, node, f"file {path.name}", judge, (question,), needs)


def verdict_step(node: str, name: str, verdict: Verdict, *needs: str, noun: str = "service") -> Step:
    return Step(noun, name, node, name, lambda _answers: verdict, (), needs, recheck=False)


def run_step(node: str, name: str, words: tuple[str, ...], *needs: str) -> Step:
    action: Action = Run(name, Command(words))
    return verdict_step(node, name, Verdict("change", "to run", (action,)), *needs)


def engine(around: Surroundings, *, check: bool = False, confirm: bool = True) -> tuple[Engine, Listener]:
    heard = Listener()
    return Engine(around, heard, Mode(check), lambda _destroyed: confirm), heard


@pytest.fixture
def around(tmp_path: Path):
    made = surroundings(tmp_path)
    yield made
    made.close()


def test_second_run_changes_nothing(around: Surroundings, tmp_path: Path) -> None:
    steps = (
        file_step("spark-1", tmp_path / "a", b"1"),
        file_step("spark-2", tmp_path / "b", b"2", "file:a@spark-1"),
    )
    first, heard = engine(around)
    assert first.run(Plan("build", "lab", steps)) == 0
    assert heard.ends() == [("step-changed", "file:a@spark-1"), ("step-changed", "file:b@spark-2")]
    second, heard = engine(around)
    assert second.run(Plan("build", "lab", steps)) == 0
    assert heard.ends() == [("step-ok", "file:a@spark-1"), ("step-ok", "file:b@spark-2")]


def test_check_shows_all_changes_nothing_and_is_status_six(around: Surroundings, tmp_path: Path) -> None:
    steps = (
        file_step("spark-1", tmp_path / "a", b"1"),
        file_step("spark-2", tmp_path / "b", b"2", "file:a@spark-1"),
    )
    checking, heard = engine(around, check=True)
    assert checking.run(Plan("build", "lab", steps)) == 6
    assert not (tmp_path / "a").exists()
    first, second = heard.of("step-would-change")
    assert first.data["actions"] == [f"write {tmp_path / 'a'} (1 bytes, mode 0644)"]
    assert second.message == "will run after: file a"


def test_check_over_two_verbs_remembers_what_the_first_would_do(around: Surroundings, tmp_path: Path) -> None:
    download = file_step("spark-1", tmp_path / "a", b"1")
    blocked = Verdict("blocked", "not there", next_step="invoke download")
    start = Step("file", "a", "spark-1", "file a", lambda _answers: blocked)
    checking, heard = engine(around, check=True)
    assert checking.run(Plan("download", "lab", (download,))) == 6
    assert checking.run(Plan("start", "lab", (start,))) == 0
    assert heard.ends() == [("step-would-change", "file:a@spark-1"), ("step-skipped", "file:a@spark-1")]
    assert heard.of("step-skipped")[0].message == "is to be done first, as told above"


def test_a_final_block_stops_everything_before_it_begins(around: Surroundings, tmp_path: Path) -> None:
    steps = (
        file_step("spark-1", tmp_path / "a", b"1"),
        verdict_step(
            "spark-2", "disk", Verdict("blocked", "1 byte free", next_step="make room"), noun="preflight"
        ),
    )
    running, heard = engine(around)
    assert running.run(Plan("download", "lab", steps)) == 1
    assert heard.ends() == [("step-skipped", "file:a@spark-1"), ("step-failed", "preflight:disk@spark-2")]
    assert heard.of("step-failed")[0].data["next"] == "make room"
    assert not (tmp_path / "a").exists()


def test_could_not_check_is_a_failure_and_never_a_pass(around: Surroundings) -> None:
    def judge(_answers: Answers) -> Verdict:
        raise CouldNotCheck("the answer was cut short")

    step = Step("preflight", "gpu", "spark-1", "gpu", judge)
    running, heard = engine(around)
    assert running.run(Plan("start", "lab", (step,))) == 1
    assert heard.of("step-failed")[0].message == "could not check: the answer was cut short"


def test_a_failed_step_takes_its_dependents_with_it_and_no_others(
    around: Surroundings, tmp_path: Path
) -> None:
    steps = (
        run_step("spark-1", "bad", ("sh", "-c", "echo no room >&2; exit 3")),
        run_step("spark-1", "after", ("true",), "service:bad@spark-1"),
        file_step("spark-2", tmp_path / "b", b"2"),
    )
    running, heard = engine(around)
    assert running.run(Plan("build", "lab", steps)) == 1
    assert set(heard.ends()) == {
        ("step-failed", "service:bad@spark-1"),
        ("step-skipped", "service:after@spark-1"),
        ("step-changed", "file:b@spark-2"),
    }
    assert any("no room" in line for line in heard.of("step-failed")[0].data["details"])


def test_acted_but_still_not_as_wanted_is_a_failure(around: Surroundings, tmp_path: Path) -> None:
    question = facts.file_question(str(tmp_path / "never"))

    def judge(answers: Answers) -> Verdict:
        facts.file(answers, question)
        return Verdict("change", "never is missing", (Run("touch", Command.of("true")),))

    step = Step("file", "never", "spark-1", "file never", judge, (question,))
    running, heard = engine(around)
    assert running.run(Plan("build", "lab", (step,))) == 1
    assert heard.of("step-failed")[0].message == "acted, but it is still not as wanted: never is missing"


def test_nothing_is_destroyed_without_a_yes(around: Surroundings, tmp_path: Path) -> None:
    step = file_step("spark-1", tmp_path / "a", b"1", destroys="lane A serves on spark-1")
    refusing, _heard = engine(around, confirm=False)
    with pytest.raises(Interrupted, match="not confirmed"):
        refusing.run(Plan("start", "lab", (step,)))
    assert not (tmp_path / "a").exists()


def test_an_interrupt_ends_the_running_command_and_skips_the_rest(
    around: Surroundings, tmp_path: Path
) -> None:
    long = ("sh", "-c", 'echo >"$0"; exec sleep 600', str(tmp_path / "it-runs"))
    steps = (run_step("spark-1", "long", long), run_step("spark-1", "rest", ("true",)))
    running, heard = engine(around)

    def interrupt() -> None:
        until((tmp_path / "it-runs").exists)
        around.interrupted.set()
        around.stop.set()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    assert running.run(Plan("build", "lab", steps)) == 130
    interrupting.join()
    assert set(heard.ends()) == {  # what will not run is told while what runs is being ended
        ("step-failed", "service:long@spark-1"),
        ("step-skipped", "service:rest@spark-1"),
    }


def test_secrets_never_show_in_output(around: Surroundings) -> None:
    around.secrets = ("hunter2hunter2",)
    action = Run("talk", Command.of("sh", "-c", "echo key is hunter2hunter2"), stream=True)
    step = verdict_step("spark-1", "talk", Verdict("change", "to run", (action,)))
    running, heard = engine(around)
    assert running.run(Plan("build", "lab", (step,))) == 0
    lines = [e.data["line"] for e in heard.of("step-output")]
    assert lines == ["key is ********"]


def test_a_change_whose_actions_are_not_known_yet_is_pending_under_check(around: Surroundings) -> None:
    step = verdict_step("spark-1", "template", Verdict("change", "the text is not fetched yet"), noun="file")
    runner, heard = engine(around, check=True)
    assert runner.run(Plan("build", "T", (step,))) == 6
    assert [event.type for event in heard.of("step-would-change")] == ["step-would-change"]
