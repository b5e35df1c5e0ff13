"""What a lane demands of hosts, judged from raw answers: held, not held, only told, not to be checked; never done."""

from __future__ import annotations

from typing import Any

import pytest

from sparkyard.errors import ConfigError
from sparkyard.plan import Verdict
from sparkyard.recipe import HostSpec
from sparkyard.render import render_lane
from sparkyard.stand_in import _host
from sparkyard.steps.host import host_steps
from sparkyard.steps.preflight import preflight_steps
from sparkyard.verdicts import judged
from tests.unit import raw, sample

PAGES: dict[str, Any] = {
    "what": "pages of 64 KiB",
    "getconf": "PAGESIZE",
    "must": "seen == '65536'",
    "why": "the cache was measured with them",
    "next_step": "boot the 64k kernel on {{ node.name }}",
    "source": "setup.md",
}
KHO = PAGES | {"getconf": None, "read": "/proc/cmdline", "must": "seen and 'kho=off' in seen"}
DESKTOP = PAGES | {"getconf": None, "unit": "display-manager.service", "must": "seen != 'active'"}
LIBRARY = PAGES | {
    "getconf": None,
    "sha256": "/opt/nccl-{{ rank }}/libnccl.so.2",
    "must": f"seen == '{'9' * 64}'",
}
MISSING = (1, "", "head: cannot open '/x' for reading: No such file or directory")


def steps(**spec: Any):
    data = sample.recipe_data()
    data["host"] = [{name: value for name, value in spec.items() if value is not None}]
    return host_steps(render_lane(sample.lane(data=data), {}))


def verdict(answer: tuple[int, str, str], **spec: Any) -> Verdict:
    first = steps(**spec)[0]
    return judged(first, raw.answers(raw.HEAD, {first.questions[0]: answer}))


def test_there_is_a_step_for_each_chosen_node_and_one_question_in_each():
    assert [s.id for s in steps(**PAGES)] == ["preflight:host-0@spark-1", "preflight:host-0@spark-2"]
    assert [s.node for s in steps(**PAGES, nodes="workers")] == ["spark-2"]
    assert steps(**PAGES, when="lane.streams == 99") == ()
    assert [(q.ask, q.arguments) for q in steps(**PAGES)[0].questions] == [("ask_getconf", ("PAGESIZE",))]


def test_a_path_is_rendered_for_each_rank_and_must_be_absolute():
    asked = [(q.ask, q.arguments) for step in steps(**LIBRARY) for q in step.questions]
    assert asked == [
        ("ask_sha256", ("/opt/nccl-0/libnccl.so.2",)),
        ("ask_sha256", ("/opt/nccl-1/libnccl.so.2",)),
    ]
    with pytest.raises(ConfigError, match=r"host\.0\.sha256: 'lib-0' is not absolute"):
        steps(**LIBRARY | {"sha256": "lib-{{ rank }}"})


def test_they_are_part_of_preflight():
    data = sample.recipe_data()
    data["host"] = [PAGES]
    lane = sample.lane(data=data)
    ids = [step.id for step in preflight_steps(lane, render_lane(lane, {}))]
    assert "preflight:host-0@spark-2" in ids


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        (PAGES, (0, "65536\n", "")),
        (KHO, (0, "quiet kho=off\n", "")),
        (DESKTOP, (3, "inactive\n", "")),
        (DESKTOP, (4, "inactive\n", "")),
        (DESKTOP, (127, "", "")),
        (KHO | {"must": "seen is none"}, MISSING),
        (PAGES | {"must": "seen is none"}, (2, "", "getconf: Unrecognized variable `X'")),
        (PAGES | {"must": "seen is none"}, (0, "undefined\n", "")),
        (PAGES | {"must": "seen | int >= rank + world"}, (0, "3\n", "")),
        (LIBRARY, (0, f"{'9' * 64}  /opt/nccl/libnccl.so.2\n", "")),
        (LIBRARY | {"must": "seen is none"}, (1, "", "sha256sum: /opt/x: No such file or directory")),
    ],
)
def test_what_holds_is_right(spec, answer):
    assert verdict(answer, **spec).state == "ok"


def test_what_does_not_hold_stops_a_start_and_says_why():
    found = verdict((0, "4096\n", ""), **PAGES)
    assert (found.state, found.actions) == ("blocked", ())
    assert found.reason == "getconf PAGESIZE is 4096; must be: seen == '65536'"
    assert found.next_step == "boot the 64k kernel on spark-1"
    assert found.details == ("why: the cache was measured with them", "source: setup.md")
    assert found.data == {"seen": "4096", "must": "seen == '65536'", "holds": False}


def test_what_is_only_told_stops_nothing():
    found = verdict((0, "active\n", ""), **DESKTOP, blocks=False)
    assert found.state == "ok"
    assert found.reason.startswith("not so, and the lane starts without it: unit display-manager")
    assert "to make it so: boot the 64k kernel on spark-1" in found.details


@pytest.mark.parametrize(
    ("spec", "answer", "words"),
    [
        (PAGES, (124, "", ""), "getconf PAGESIZE: status 124"),
        (KHO, (1, "", "head: /proc/cmdline: Permission denied"), "Permission denied"),
        (DESKTOP, (1, "", "Failed to connect to bus"), "Failed to connect to bus"),
        (PAGES | {"must": "seen + 1 > 2"}, (0, "65536\n", ""), "in: seen + 1 > 2"),
    ],
)
def test_what_cannot_be_checked_is_a_third_result(spec, answer, words):
    found = verdict(answer, **spec)
    assert found.state == "unknown"
    assert words in found.reason


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"must": "sene == '1'"}, "sene is not known (did you mean seen?)"),
        ({"must": "seen =="}, "template error"),
        ({"must": "seen | nothing"}, "nothing"),
        ({"getconf": None, "read": "etc/x"}, "'etc/x' is not absolute"),
        ({"when": "lane.nothing"}, "lane.nothing is not known"),
    ],
)
def test_a_requirement_that_cannot_be_judged_is_a_fault_of_the_recipe(spec, words):
    with pytest.raises(ConfigError) as refused:
        steps(**PAGES | spec)
    assert words in str(refused.value)


def test_in_the_lab_only_what_it_shows_of_a_spark_stays_a_requirement():
    kept, told = (
        HostSpec.model_validate({k: v for k, v in s.items() if v is not None}) for s in (KHO, PAGES)
    )
    assert _host(kept) == kept
    assert _host(told) == told.model_copy(update={"blocks": False})


def test_what_is_only_told_and_cannot_be_looked_at_stops_nothing():
    hidden = (1, "", "head: cannot open '/x' for reading: Permission denied")
    told = verdict(hidden, **KHO, blocks=False)
    assert told.state == "ok"
    assert "could not be looked at, and the lane starts without it" in told.reason
    assert "Permission denied" in told.reason
    assert verdict(hidden, **KHO).state != "ok"
