"""Each operator, each way to miss, and the exact words people read."""

import pytest

from sparkyard.expectations import distinct_faults, judge, judge_all, shortened, values_at
from sparkyard.recipe import ExpectSpec

REPLY = {
    "data": [{"id": "Deep-1"}, {"id": "other"}],
    "choices": [{"message": {"content": '{"city": "Bonn", "age": 7}'}, "finish_reason": "stop"}],
    "usage": {"completion_tokens": 160},
    "flag": True,
}
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("usage.completion_tokens", [160]),
        ("choices.0.finish_reason", ["stop"]),
        ("choices.-1.finish_reason", ["stop"]),
        ("data.*.id", ["Deep-1", "other"]),
        ("choices.1.message", []),
        ("usage.completion_tokens.more", []),
        ("data.x.id", []),
        ("", [REPLY]),
    ],
)
def test_a_path_leads_to_its_values(path, found):
    assert values_at(REPLY, path) == found


@pytest.mark.parametrize(
    "expect",
    [
        ExpectSpec(path="data.*.id", equals="other"),
        ExpectSpec(path="data.*.id", contains="eep"),
        ExpectSpec(path="choices.0.message.content", json_text=True, valid_for=SCHEMA),
        ExpectSpec(path="usage.completion_tokens", at_least=1),
        ExpectSpec(path="choices.0.message.content", matches="Bo+nn"),
        ExpectSpec(path="flag", equals=True),
        ExpectSpec(path="usage", contains="completion_tokens"),
        ExpectSpec(path="error", present=False),
        ExpectSpec(path="usage", present=True),
    ],
)
def test_what_holds_has_no_fault(expect):
    assert judge(REPLY, expect) == ""


@pytest.mark.parametrize(
    ("expect", "fault"),
    [
        (
            ExpectSpec(path="usage.total", at_least=1),
            "usage.total is missing; expected a number of at least 1",
        ),
        (ExpectSpec(path="nothing"), "nothing is missing; expected it to be there"),
        (ExpectSpec(path="flag", present=False), "flag is true; expected it to be absent"),
        (ExpectSpec(path="flag", at_least=1), "flag is true; expected a number of at least 1"),
        (ExpectSpec(path="flag", equals=1), "flag is true; expected 1"),
        (
            ExpectSpec(path="data.*.id", equals="deep-1"),
            'data.*.id is "Deep-1"; expected "deep-1" (only the case differs) (the first of 2 values; none fits)',
        ),
        (
            ExpectSpec(path="usage.completion_tokens", matches="1"),
            "usage.completion_tokens is 160; expected text that matches /1/",
        ),
        (
            ExpectSpec(path="choices.0.finish_reason", json_text=True),
            'choices.0.finish_reason is "stop"; expected JSON text',
        ),
        (
            ExpectSpec(
                path="choices.0.message.content",
                json_text=True,
                valid_for={"properties": {"age": {"minimum": 9}}},
            ),
            'choices.0.message.content is {"city": "Bonn", "age": 7}; its schema refuses age: "7 is less than the minimum of 9"',
        ),
    ],
)
def test_what_does_not_hold_is_said(expect, fault):
    assert judge(REPLY, expect) == fault


def test_an_empty_structured_reply_is_a_fault():  # T85
    reply = {"choices": [{"message": {"content": ""}}]}
    expect = ExpectSpec(path="choices.0.message.content", json_text=True, valid_for=SCHEMA)
    assert judge(reply, expect) == 'choices.0.message.content is ""; expected JSON text'


def test_all_faults_come_at_once():
    assert len(judge_all({}, [ExpectSpec(path="a"), ExpectSpec(path="b")])) == 2


def test_long_values_are_cut_in_the_middle():
    assert shortened("x" * 1000).startswith('"xxx')
    assert len(shortened("x" * 1000)) < 170


REPLIES = [{"text": text} for text in ("a", "b", "a", "c")]


@pytest.mark.parametrize(
    ("expect", "fault"),
    [
        ({"distinct_at_most": 3}, ""),
        ({"distinct_at_least": 3}, ""),
        ({}, ""),
        ({"distinct_at_most": 2},
         'text has 3 different values in 4 replies; expected at most 2: "a"; "b"; "c"'),
        ({"distinct_at_least": 4},
         'text has 3 different values in 4 replies; expected at least 4: "a"; "b"; "c"'),
        ({"distinct_at_least": 1, "distinct_at_most": 1},
         'text has 3 different values in 4 replies; expected at least 1 and at most 1: "a"; "b"; "c"'),
    ],
)  # fmt: skip
def test_different_values_are_counted_over_all_replies(expect, fault):
    found = distinct_faults(REPLIES, [ExpectSpec(path="text", **expect)])
    assert found == ((fault,) if fault else ())


def test_objects_that_differ_in_order_alone_are_the_same():
    replies = [{"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}]
    assert distinct_faults(replies, [ExpectSpec(path="a", distinct_at_most=1)]) == ()
