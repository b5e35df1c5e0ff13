"""What a recipe may make depend: rules of a start, checks with a condition, mounts on some ranks, targets and variants of jobs by template."""

from __future__ import annotations

from typing import Any

import pytest

from sparkyard.errors import ConfigError
from sparkyard.normal_form import of_run
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit import sample

JOB = {
    "about": "packs",
    "source": {"kind": "chosen", "why": "test"},
    "nodes": "all",
    "timeout": 60,
    "mounts": [{"source": "{{ root }}/out", "target": "/out", "read_only": False, "create": True}],
    "makes": [{"path": "{{ root }}/out/{{ lane.context }}.bin", "at_least": "1"}],
    "variant": "c{{ lane.context }}",
}


def rendered(data: dict[str, Any], **settings: Any) -> RenderedLane:
    return render_lane(sample.lane(2, data, **settings), {})


def test_a_rule_of_a_start_stops_nothing_else():
    data = sample.recipe_data()
    rule = {"must": "lane.streams > 9", "message": "{{ lane.streams }} streams", "source": "test"}
    data["rules"].append({**rule, "at": "start"})
    (fault,) = rendered(data).start_faults
    assert "rules.1: 4 streams (must be: lane.streams > 9; test) (on spark-1, spark-2)" in str(fault)
    assert rendered(data, streams=10, context=65536).start_faults == ()
    data["rules"][-1] = rule
    with pytest.raises(ConfigError, match="4 streams"):
        rendered(data)


def test_a_check_belongs_to_the_lane_only_where_its_condition_holds():
    data = sample.recipe_data()
    data["verify"][0]["when"] = "lane.streams > 4"
    assert [check.name for check in rendered(data).checks] == ["models"]
    assert [check.name for check in rendered(data, streams=5, context=65536).checks] == ["greedy", "models"]


def test_a_mount_may_have_the_same_path_inside_and_be_on_one_rank_alone():
    data = sample.recipe_data()
    path = "{% if rank == 0 %}{{ checkpoints.model.path }}{% endif %}"
    data["services"]["engine"]["mounts"].append({"source": path, "target": path})
    forms = [of_run(container.words) for container in rendered(data).containers]
    (target,) = forms[0].mounts.keys() - forms[1].mounts.keys()
    assert forms[0].mounts[target] == f"{target}:ro"
    assert target.startswith("<discovered: home>/")


def test_variants_of_a_job_are_on_record_side_by_side():
    data = {**sample.recipe_data(), "jobs": {"pack": JOB}}
    (one,), (other,) = rendered(data).jobs, rendered(data, context=65536).jobs
    assert one.seal("spark-1").endswith("/jobs/pack@c4096.json")
    assert one.begun("spark-2").endswith("/jobs/pack@c4096.begun.json")
    assert other.seal("spark-1").endswith("/jobs/pack@c65536.json")
    (plain,) = rendered({**data, "jobs": {"pack": {**JOB, "variant": ""}}}).jobs
    assert plain.seal("spark-1").endswith("/jobs/pack.json")


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ("a/b", "a word for the name of a file is expected, found 'a/b'"),
        ("r{{ rank }}", "must be the same on all ranks, found r0, r1"),
    ],
)
def test_a_variant_is_one_word_on_all_ranks(variant, says):
    with pytest.raises(ConfigError, match=says):
        rendered({**sample.recipe_data(), "jobs": {"pack": {**JOB, "variant": variant}}})
