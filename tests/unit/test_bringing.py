"""Settings that a job brings forth: what is refused, what is rendered, and what a refused start says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkyard.bringing import _matching, still_to_set
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit import sample
from tests.unit.job_answers import rows
from tests.unit.test_job_recipe import said

KEY = {"default": "", "about": "what it made", "source": {"kind": "chosen", "why": "test"}, "secret": True}
BRINGS = {"setting": "key", "folder": "{{ root }}/keys", "log": "key"}


def rendered(**settings: Any) -> RenderedLane:
    data = sample.recipe_data() | {"jobs": {"rows": rows(brings=[BRINGS])}}
    data["settings"] = data["settings"] | {"key": KEY | settings}
    return render_lane(sample.lane(data=data), {})


def test_a_setting_without_a_value_is_looked_for_on_the_head():
    (one,) = rendered().jobs[0].brings
    assert one.setting == "key"
    assert one.folder.endswith("/keys")
    assert one.container == rendered().jobs[0].containers[0].name
    assert rendered(default="known").jobs[0].brings == ()


def test_a_job_is_the_same_whatever_it_brings_forth():
    plain = sample.recipe_data() | {"jobs": {"rows": rows()}}
    assert render_lane(sample.lane(data=plain), {}).jobs[0].hash == rendered().jobs[0].hash


def test_a_refused_start_names_the_line_that_goes_without_it():
    lane = rendered()
    wanted = f"invoke download build --lane={lane.lane} needs no key, and ends with where to find it"
    assert still_to_set(lane) == wanted
    assert still_to_set(rendered(default="known")) == ""


def test_a_setting_that_is_looked_for_in_two_places_is_named_once():
    data = sample.recipe_data() | {"jobs": {"rows": rows(brings=[BRINGS, BRINGS])}}
    data["settings"] = data["settings"] | {"key": KEY}
    assert "needs no key, and" in still_to_set(render_lane(sample.lane(data=data), {}))


@pytest.mark.parametrize(
    ("job", "brings", "words"),
    [
        ({}, {"setting": "kei"}, "jobs.rows.brings.0.setting: not a known setting (did you mean key?)"),
        ({}, {"setting": "port"}, "jobs.rows.brings.0.setting: port has a default"),
        ({}, {"log": "("}, "jobs.rows.brings.0.log: not a pattern"),
        ({"at": "start"}, {}, "jobs.rows.brings.0: only a job of build with a rank on the head"),
    ],
)
def test_what_cannot_be_is_refused(job: dict[str, Any], brings: dict[str, Any], words: str):
    settings = sample.recipe_data()["settings"] | {"key": KEY}
    found = said({"rows": rows(brings=[BRINGS | brings], **job)}, settings=settings)
    assert len(found) == 1
    assert words in found[0]


def test_lines_are_found_behind_the_stamp_of_docker(tmp_path: Path):
    log = tmp_path / "rank.log"
    stamp = "2026-11-30T08:26:34.327091870Z"
    log.write_bytes(f"{stamp} STAND-IN key\n{stamp} signed, key in x\n{stamp} \xff\n".encode("latin-1"))
    assert _matching(log, r"^(?!STAND-IN).*\bkey\b") == [2]
