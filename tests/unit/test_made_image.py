"""An image that a project's own scripts make: rendered, judged from raw answers, stood in for."""

from __future__ import annotations

import base64
import subprocess
from typing import Any

import pytest

from sparkyard import facts, stand_in
from sparkyard.actions import Run
from sparkyard.actions_image import GitFetch, MakeImage, ShipImage
from sparkyard.lab import git_repos
from sparkyard.lock import Lock, LockedGit
from sparkyard.made_record import MadeRecord
from sparkyard.pins import unlocked_pins
from sparkyard.plan import Question, Verdict
from sparkyard.render import render_lane
from sparkyard.rendered_tree import texts
from sparkyard.scopes import origin
from sparkyard.steps import image
from sparkyard.steps.switch import purge_steps
from tests.unit import raw, sample

URL = "https://example.org/fork"
COMMIT = "5" * 40
SOURCE = {"kind": "chosen", "why": "test"}
LABELS = {"tree.a": "1", "tree.b": "2"}
GIT: dict[str, object] = {"url": URL, "commit": COMMIT, "source": SOURCE}
MADE: dict[str, object] = {
    "git": GIT,
    "steps": [["bin/spark", "build", "prepare"], ["bin/spark", "build", "image", "--apply"]],
    "reference": "fork:r1",
    "labels": LABELS,
    "memory": 64 << 30,
}


def lane(**changes: Any):
    data = sample.recipe_data()
    data["image"] = {**data["image"], "build": None, "made": MADE | changes}
    return sample.lane(data=data)


RENDERED = render_lane(lane(), {})
WANTED = RENDERED.image
SOURCE_STEP, MAKE, SHIP = image.build_steps(lane(), RENDERED)
OURS, THEIRS = facts.image_question(WANTED.reference), facts.image_question("fork:r1")
RECORD = next(q for q in MAKE.questions if q.ask == "ask_file")
BARE = "/home/spark/.local/share/sparkyard/git/example.org--fork.git"
FOLDER = f"/home/spark/.local/share/sparkyard/made/tiny-{WANTED.mark[:12]}"
RIGHT = raw.image(labels=LABELS)
NO_FILE = (1, "", "stat: cannot statx: No such file or directory")


def recorded(mark: str = WANTED.mark, layers: tuple[str, ...] = ("sha256:l1",)) -> tuple[int, str, str]:
    text = MadeRecord(mark, "fork:r1", layers, LABELS).text().encode()
    return 0, f"regular file|644|{len(text)}\ncontent {base64.b64encode(text).decode()}\n", ""


def judged(
    ours: Any = raw.NO_IMAGE, theirs: Any = raw.NO_IMAGE, record: Any = NO_FILE, **changes: Any
) -> Verdict:
    given = {OURS: ours, THEIRS: theirs, RECORD: record, **changes.pop("more", {})}
    return MAKE.judge(raw.answers(raw.HEAD, given, **changes))


def test_it_is_named_by_what_goes_in():
    assert WANTED.reference == f"sparkyard/tiny:{WANTED.mark[:12]}"
    marks = {
        render_lane(lane(**changes), {}).image.mark
        for changes in (
            {},
            {"labels": {"tree.a": "1"}},
            {"steps": [["bin/spark"]]},
            {"git": GIT | {"commit": "6" * 40}},
        )
    }
    assert len(marks) == 4
    assert WANTED.mark in marks
    assert origin(lane().recipe.image) == COMMIT[:12]
    assert WANTED.made is not None
    assert f"cd '{WANTED.made.folder}'\nbin/spark build prepare\n" in texts(RENDERED)["image.sh"]


def test_its_commit_is_a_pin_that_the_lock_answers():
    short = lane(git=GIT | {"commit": COMMIT[:8]})
    assert unlocked_pins(short, Lock()) == ("image.made.git",)
    lock = Lock(git={"image.made.git": LockedGit(URL, COMMIT[:8], COMMIT)})
    assert unlocked_pins(short, lock) == ()
    assert render_lane(short, {}, lock).image.mark == WANTED.mark
    (tree,) = render_lane(short, {}).image.trees
    assert tree.commit == f"<unlocked: {COMMIT[:8]}>"


def test_its_repository_comes_first():
    asked = Question("ask_git", (WANTED.trees[0].clone, COMMIT))
    given = {OURS: raw.NO_IMAGE, THEIRS: raw.NO_IMAGE, RECORD: NO_FILE, asked: (1, "", "")}
    (fetch,) = SOURCE_STEP.judge(raw.answers(raw.HEAD, given)).actions
    assert fetch == GitFetch(URL, COMMIT, BARE, URL)
    given |= {OURS: RIGHT, RECORD: recorded()}
    assert SOURCE_STEP.judge(raw.answers(raw.HEAD, given)).state == "ok"


def test_a_missing_image_is_made_by_the_steps_in_a_fresh_clone():
    verdict = judged()
    (make,) = verdict.actions
    assert isinstance(make, MakeImage)
    assert [step.words for step in make.steps] == [
        ("env", f"--chdir={FOLDER}", "bin/spark", "build", "prepare"),
        ("env", f"--chdir={FOLDER}", "bin/spark", "build", "image", "--apply"),
    ]
    assert make.check_out.words[-3:] == (FOLDER, BARE, COMMIT)
    assert make.shown().endswith(f"bin/spark build image --apply; docker tag fork:r1 {WANTED.reference}")


def test_what_was_made_is_right_only_with_labels_and_record():
    assert judged(RIGHT, record=recorded()).state == "ok"
    assert judged(RIGHT).reason.endswith("is not on record as made here")
    assert judged(RIGHT, record=recorded("0" * 64)).reason.endswith("is not on record as made here")
    assert judged(RIGHT, record=recorded(layers=("x",))).reason.endswith(
        "another image than the one made here"
    )
    other = judged(raw.image(labels={"tree.a": "9"}), record=recorded())
    assert other.reason.endswith("label tree.a is '9', expected '1'; label tree.b is missing, expected '2'")


def test_an_image_that_was_finished_before_the_run_was_cut_short_is_only_named():
    def steps(theirs: Any) -> int:
        (make,) = judged(theirs=theirs).actions
        assert isinstance(make, MakeImage)
        return len(make.steps)

    assert steps(RIGHT) == 0
    assert steps(raw.image(labels={"tree.a": "9"})) == 2


def test_it_is_refused_beside_a_serving_lane_and_without_its_memory():
    busy = {facts.CONTAINERS: raw.containers({"name": "e", "labels": {"sparkyard.lane": "X"}})}
    verdict = judged(more=busy)
    assert (verdict.state, verdict.next_step) == ("blocked", "invoke stop --lane=X")
    verdict = judged(memory={"MemAvailable": 32 << 20})
    assert verdict.reason == "34.4 GB of memory are free; making the image needs 68.7 GB"


def test_a_worker_gets_it_when_a_label_differs():
    also = raw.answers(raw.WORKER, {OURS: raw.image(labels={"tree.a": "1", "tree.b": "3"})})
    verdict = SHIP.judge(also)
    assert verdict.reason.endswith("label tree.b is '3', expected '2'")
    assert verdict.actions == (ShipImage(WANTED.reference, "10.0.0.2"),)


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b'{"mark": 1}'])
def test_a_damaged_record_is_none(content):
    answer = 0, f"regular file|644|1\ncontent {base64.b64encode(content).decode()}\n", ""
    assert judged(RIGHT, record=answer).reason.endswith("is not on record as made here")


def words(verdict: Verdict) -> list[tuple[str, ...]]:
    """What a purge runs, each as its words."""
    runs = [action for action in verdict.actions if isinstance(action, Run)]
    assert len(runs) == len(verdict.actions)
    return [run.command.words for run in runs]


def purged(theirs: Any, record: Any, clone: Any) -> Verdict:
    step = next(s for s in purge_steps(lane(), RENDERED, {}, ()) if s.name == "purge-made")
    asked = dict(zip(step.questions, (theirs, record, clone), strict=True))
    return step.judge(raw.answers(raw.HEAD, asked))


def test_a_purge_removes_what_making_it_left_and_a_name_only_of_the_recorded_image():
    there = (0, "directory|755|spark\nwritable\n", "")
    assert words(purged(RIGHT, recorded(), there)) == [
        ("docker", "image", "rm", "fork:r1"),
        ("rm", "-rf", "--", FOLDER, f"{FOLDER}.json"),
    ]
    other = purged(raw.image(layers=["x"]), recorded(), there)
    assert [each[0] for each in words(other)] == ["rm"]
    assert "fork:r1" not in other.destroys
    assert purged(RIGHT, NO_FILE, NO_FILE).state == "ok"


FORK = "https://github.com/christopherowen/spark-ds41f"


def test_a_stand_in_is_made_by_the_labs_own_repository_where_there_is_one():
    made = stand_in._image(lane(git={"url": FORK, "commit": "1234567", "source": SOURCE}).recipe.image).made
    assert made is not None
    assert made.git.commit == git_repos.commits()[FORK][:7]
    assert (made.steps, made.labels) == (MADE["steps"], LABELS)
    assert stand_in._image(lane().recipe.image).build is not None


def test_the_labs_repository_is_sound_and_holds_what_its_image_is_built_from():
    files = git_repos.contents()[FORK]
    subprocess.run(["sh", "-n"], input=files["bin/spark"], check=True)
    assert {"image/stand-in/Dockerfile", "image/engine/rendezvous.py", ".gitignore"} <= files.keys()
    labels = dict(line.split("=") for line in files["labels"].decode().splitlines())
    assert labels["local.spark3.vllm.tree"] == "a00a6b07ff47deda27b9d9892bc8c79894a35ada"
    assert len(labels) == 6
