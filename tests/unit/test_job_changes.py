"""What has changed since a job was sealed, in words: from the very record that its seal keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sparkyard.job_changes import what_changed
from sparkyard.rendered import RenderedLane
from tests.unit.job_answers import HOME, JOB, RENDERED, WHOLE, acts, both, judge, rendered, seal, told

WORDS = "its words, variables, mounts or ranks"


def record(lane: RenderedLane = RENDERED) -> dict[str, Any]:
    """What a seal of the job would say beside its outputs."""
    (run,) = acts(judge("job:rows@spark-1", *both(), lane=lane))
    found: dict[str, Any] = json.loads(json.dumps(run.record))
    return found


def test_nothing_has_changed_of_what_was_sealed_just_now() -> None:
    assert what_changed(JOB, record()) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"words": ["pack", "{{ rank }}", "--fast"]}, (WORDS,)),
        ({"env": {"A": "1"}}, (WORDS,)),
        ({"nodes": "head"}, (WORDS,)),
        ({"bound_to": ["another index"]}, ("what it is bound to",)),
        ({"timeout": 90.0}, ()),
    ],
)
def test_what_a_recipe_says_otherwise_is_named(changes: Mapping[str, Any], words: tuple[str, ...]) -> None:
    (job,) = rendered(**changes).jobs
    assert what_changed(job, record()) == words


def test_another_image_is_named_without_the_words_that_hold_its_name() -> None:
    made = dict(JOB.made_of) | {"image": "0" * 64}
    assert what_changed(replace(JOB, made_of=made), record()) == ("its image",)


def test_another_edited_text_is_named() -> None:
    made = dict(JOB.made_of) | {"patches": {"sampling": "0" * 64}}
    assert what_changed(replace(JOB, made_of=made), record()) == ("an edited text that it mounts",)


def test_a_secret_that_is_masked_in_the_seal_is_no_change() -> None:
    (job,) = rendered(bound_to=["hunter22"], words=["pack", "hunter22"]).jobs
    lane = replace(RENDERED, jobs=(job,), secrets=("hunter22",))
    kept = record(lane)
    assert "hunter22" not in json.dumps(kept)
    assert what_changed(job, kept) == ()


@pytest.mark.parametrize("kept", [{}, {"made_of": 1}, {"made_of": {}, "ranks": 3, "bound_to": None}])
def test_a_seal_of_another_form_is_no_fault(kept: Mapping[str, Any]) -> None:
    what_changed(JOB, kept)


def test_a_person_is_told_what_has_changed() -> None:
    old = record(rendered(words=["pack"]))
    answers = (told(0, seal(0, **old), made=WHOLE), told(1, seal(1, **old), made=WHOLE))
    verdict = judge("job:rows-ready@spark-1", *answers)
    assert f"{HOME}/rows/rows-0.bin on spark-1 (4096 bytes) is a sealed output" in verdict.destroys
    assert f"has changed since ({WORDS})" in verdict.destroys
