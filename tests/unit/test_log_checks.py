"""What logs must say: the first line that fits, numbers in it, what must hold of them, and a third result."""

from __future__ import annotations

from typing import Any

import pytest

from sparkyard.actions_log import CheckLog
from sparkyard.errors import ConfigError
from sparkyard.log_checks import LogReader, LogResult, number_of, worst
from sparkyard.plan import Answers
from sparkyard.render import render_lane
from sparkyard.steps.logs import log_steps
from tests.unit import sample

KV: dict[str, Any] = {
    "what": "the pool holds a context",
    "pattern": r"KV cache size: (?P<tokens>[\d,]+) tokens(?: at (?P<share>[\d.]+))?",
    "must": "found.tokens >= lane.streams * 1000",
    "message": "the engine granted {{ found.tokens }} tokens for {{ lane.streams }} streams",
    "source": "boot log",
}


def rendered(*checks: dict[str, Any]):
    data = sample.recipe_data()
    data["services"]["engine"]["log"] = list(checks)
    return render_lane(sample.lane(data=data), {})


def results(lines: list[str], *checks: dict[str, Any]) -> tuple[LogResult, ...]:
    lane = rendered(*checks)
    reader = LogReader([check for check in lane.logs if check.node == "spark-1"])
    for line in lines:
        reader.line(line)
    return reader.results()


@pytest.mark.parametrize(
    ("text", "value"),
    [("8,580,566", 8580566), ("42", 42), ("-1", -1), ("1,2", "1,2"), ("0.95", 0.95), ("1e-5", 1e-05), ("1,234.5", 1234.5),
     ("sm_121", "sm_121"), ("", ""), (None, None), ("0x10", "0x10"), ("nan", "nan")],
)  # fmt: skip
def test_numbers_where_they_look_like_numbers(text, value):
    assert number_of(text) == value
    assert type(number_of(text)) is type(value)


def test_what_is_found_and_holds_passes():
    (result,) = results(["boot", "x KV cache size: 8,580,566 tokens at 0.5", "KV cache size: 1 tokens"], KV)
    assert result == LogResult("the pool holds a context", "pass", {"tokens": 8580566, "share": 0.5})


def test_what_is_found_and_does_not_hold_says_the_recipes_words():
    (result,) = results(["KV cache size: 1,000 tokens"], KV)
    assert (result.result, result.found) == ("fail", {"tokens": 1000, "share": None})
    assert result.fault == (
        "the pool holds a context: the engine granted 1000 tokens for 4 streams (boot log)"
    )


def test_a_line_that_is_not_there_fails():
    (result,) = results(["nothing of it"], KV)
    assert result.result == "fail"
    assert "the log has no line that fits /KV cache" in result.fault


def test_an_expression_that_cannot_be_judged_is_a_third_result():
    (result,) = results(["KV cache size: 1,000 tokens"], KV | {"must": "found.share > 1"})
    assert result.result == "could not check"
    assert "in: found.share > 1" in result.fault


def test_the_worst_of_several():
    both = results(["KV cache size: 9,000 tokens"], KV, KV | {"pattern": "never"})
    assert [result.result for result in both] == ["pass", "fail"]
    assert worst(both) == "fail"
    assert worst(both[:1]) == "pass"


def test_one_step_a_container_reads_its_log_once():
    lane = rendered(KV, KV | {"what": "other", "nodes": "workers"}, KV | {"when": "lane.streams == 99"})
    steps = log_steps(lane)
    assert [(s.noun, s.node) for s in steps] == [("verify", "spark-1"), ("verify", "spark-2")]
    (action,) = steps[1].judge(Answers("spark-2", {})).actions
    assert isinstance(action, CheckLog)
    assert action.container == "sparkyard-T-engine-1"
    assert [check.what for check in action.checks] == ["the pool holds a context", "other"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern": "("}, "is no regular expression"),
        ({"must": "fuond.tokens"}, "fuond is not known (did you mean found?)"),
        ({"message": "{{ found.tokens"}, "template error"),
        ({"when": "lane.no"}, "lane.no is not known"),
    ],
)
def test_a_check_that_cannot_be_made_is_a_fault_of_the_recipe(change, words):
    with pytest.raises(ConfigError) as refused:
        rendered(KV | change)
    assert words in str(refused.value)
