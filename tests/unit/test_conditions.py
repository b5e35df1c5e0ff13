"""A checkpoint belongs to a lane only where its condition over the settings holds; everybody asks the lane."""

from __future__ import annotations

import pytest

from sparkyard.conditions import holds
from sparkyard.errors import ConfigError
from sparkyard.model import Manifest, RemoteFile
from sparkyard.render import render_lane
from sparkyard.resolve import known_manifests
from sparkyard.scopes import unlocked
from sparkyard.steps.checkpoint import download_steps
from tests.unit import sample


def data(when: str = "lane.streams == 4", other: str = "lane.streams != 4"):
    found = sample.recipe_data()
    spec = found["checkpoints"]["model"]
    found["checkpoints"] = {
        "model": {**spec, "when": when},
        "other": {**spec, "repo": "example/other", "when": other},
    }
    return found


@pytest.mark.parametrize(("streams", "chosen"), [(4, "model"), (3, "other")])
def test_only_the_chosen_checkpoint_belongs_to_the_lane(streams, chosen):
    assert list(sample.lane(data=data(), streams=streams).checkpoints) == [chosen]


def test_both_or_neither_may_hold():
    assert list(sample.lane(data=data("true", "true")).checkpoints) == ["model", "other"]
    assert not sample.lane(data=data("false", "false")).checkpoints


def test_templates_see_only_the_chosen_one():
    lane = sample.lane(data=data(), streams=3)
    with pytest.raises(ConfigError, match=r"checkpoints\.model is not known"):
        render_lane(lane, {})


def test_locks_and_marks_speak_of_the_chosen_one_alone():
    found = data()
    found["checkpoints"]["other"]["revision"] = "main"
    assert unlocked(sample.lane(data=found), {}) == ()
    assert unlocked(sample.lane(data=found, streams=3), {}) == ("other",)
    assert known_manifests(sample.lane(data=found, streams=3)) == {}


def test_download_brings_what_the_manifests_of_the_chosen_one_say():
    lane = sample.lane(data=data(), streams=3)
    manifest = Manifest("example/other", sample.COMMIT, (RemoteFile("a", 1, "0" * 64),))
    assert {step.name for step in download_steps(lane, {"other": manifest})} >= {"other"}


def test_a_condition_that_cannot_be_judged_is_a_fault_with_its_key():
    with pytest.raises(
        ConfigError,
        match=r"recipe\.yml: checkpoints\.model\.when: lane\.strems is not known \(did you mean streams\?\)",
    ):
        assert sample.lane(data=data("lane.strems")).checkpoints


@pytest.mark.parametrize("expression", ["lane.none", "1 +", "lane.a.__class__", "lane.a ** 9", "1 / 0"])
def test_what_a_condition_may_not_do(expression):
    with pytest.raises(ValueError, match=r"\w"):
        holds(expression, {"a": 3})
