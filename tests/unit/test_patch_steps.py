"""Edited texts on nodes: missing, pristine, patched, neither; placed, demanded, put back."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sparkyard import drift
from sparkyard.actions import WriteFile
from sparkyard.errors import ConfigError
from sparkyard.lock import Lock, LockedFile
from sparkyard.patching import Known, patched
from sparkyard.plan import Verdict, required
from sparkyard.recipe import EditSpec
from sparkyard.render import render_lane
from sparkyard.steps import patch
from tests.unit import raw, sample

EDITS = [{"find": "cold", "replace": "warm", "why": "test"}]
TEXT = patched("text", b"a cold line\n", [EditSpec.model_validate(EDITS[0])], Known())
SOURCE = {"kind": "chosen", "why": "test"}
GIT = {"url": "https://example.org/kit", "commit": "1" * 40, "source": SOURCE}
LOCK = Lock(files={"text": LockedFile(TEXT.known.pristine, TEXT.known.patched)})
PATH = "/home/spark/.local/share/sparkyard/lanes/T/text.txt"


def lane(path: str = "{{ root }}/text.txt"):
    data = sample.recipe_data()
    data["patches"] = {"text": {"git": GIT, "file": "files/text.txt", "edits": EDITS, "path": path, "source": SOURCE}}  # fmt: skip
    return sample.lane(data=data)


RENDERED = render_lane(lane(), {}, LOCK)
Raw = tuple[int, str, str]
MISSING = (1, "", "stat: cannot statx: No such file or directory")


def there(content: bytes) -> Raw:
    return 0, f"regular file|644|{len(content)}\ncontent {base64.b64encode(content).decode()}\n", ""


def judged(answer: Raw, texts: Any = None, verb: str = "") -> Verdict:
    step = patch.patch_steps(RENDERED, {"text": TEXT} if texts is None else texts)[1]
    step = required(step, verb) if verb else step
    return step.judge(raw.answers(raw.WORKER, {step.questions[0]: answer}))


def test_there_is_a_step_for_each_node():
    steps = patch.patch_steps(RENDERED, {"text": TEXT})
    assert [step.id for step in steps] == ["patch:text@spark-1", "patch:text@spark-2"]


@pytest.mark.parametrize(
    ("answer", "words"), [(MISSING, "is missing"), (there(TEXT.pristine), "is pristine")]
)
def test_a_missing_or_pristine_text_is_replaced_without_asking(answer, words):
    verdict = judged(answer)
    (action,) = verdict.actions
    assert isinstance(action, WriteFile)
    assert (action.content, action.mode) == (TEXT.patched, 0o644)
    assert words in verdict.reason
    assert not verdict.destroys


def test_a_patched_text_is_right():
    assert judged(there(TEXT.patched)).state == "ok"


def test_one_changed_byte_is_neither_and_is_replaced_only_after_a_yes():
    verdict = judged(there(b"a warm lime\n"))
    assert (verdict.state, verdict.data["standing"]) == ("change", "neither")
    assert "on spark-2 is neither pristine nor patched" in verdict.destroys
    assert "-a warm line" in verdict.details
    assert "+a warm lime" in verdict.details


@pytest.mark.parametrize("texts", [None, {}])
def test_a_start_refuses_one_changed_byte_on_any_rank(texts):
    verdict = judged(there(b"a warm lime\n"), texts, verb="build --lane=T")
    assert (verdict.state, verdict.actions, verdict.destroys) == ("blocked", (), "")
    assert "neither pristine nor patched" in verdict.reason
    assert verdict.next_step == "invoke build --lane=T"
    assert texts is not None or "+a warm lime" in verdict.details


def test_without_the_text_the_locked_hash_tells():
    assert judged(there(TEXT.patched), {}).state == "ok"
    assert judged(MISSING, {}, verb="build").state == "blocked"


def test_what_is_no_file_is_not_touched():
    assert judged((0, "directory|755|0\n", "")).state == "blocked"
    assert judged((0, "socket|755|0\n", "")).state == "blocked"


def back(answer: Raw) -> Verdict:
    step = patch.pristine_steps(RENDERED, {"text": TEXT})[0]
    return step.judge(raw.answers(raw.HEAD, {step.questions[0]: answer}))


def test_putting_back():
    (action,) = back(there(TEXT.patched)).actions
    assert isinstance(action, WriteFile)
    assert action.content == TEXT.pristine
    assert [back(a).state for a in (there(TEXT.pristine), MISSING, there(b"mine"))] == ["ok", "ok", "skipped"]


def test_hashes_come_from_the_recipe_or_else_from_the_lock():
    assert {(p.pristine, p.patched) for p in RENDERED.patches} == {(TEXT.known.pristine, TEXT.known.patched)}
    assert {p.patched for p in render_lane(lane(), {}).patches} == {""}


@pytest.mark.parametrize(("path", "words"), [("/tmp/t", "/tmp"), ("{{ root }}/engine.env", "is the path of files.engine too")])  # fmt: skip
def test_paths_that_cannot_be(path, words):
    with pytest.raises(ConfigError, match=words):
        render_lane(lane(path), {})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (there(TEXT.patched), ()),
        (there(TEXT.pristine), (f"edited text {PATH} is pristine",)),
        (there(b"mine"), (f"edited text {PATH} is neither pristine nor patched",)),
        (MISSING, (f"edited text {PATH} is missing",)),
    ],
)
def test_status_tells_what_lies_there(answer, words):
    (asked,) = (q for q in drift.status_questions(RENDERED, "spark-1") if "text.txt" in "".join(q.arguments))
    assert drift._patches_drift(RENDERED, raw.answers(raw.HEAD, {asked: answer})) == words
