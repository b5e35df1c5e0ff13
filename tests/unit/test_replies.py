"""Streams put together, tokens counted, and checks judged from saved replies."""

import json

import pytest

from sparkyard.recipe import CheckSpec, ExpectSpec
from sparkyard.replies import (
    Assembly,
    Judgement,
    Reply,
    completion_tokens,
    described,
    generated,
    hints,
    judge_reply,
    listed_models,
    model_hint,
    together,
)


def check(**fields):
    known = {
        "name": "chat",
        "path": "/v1/chat/completions",
        "expect": [ExpectSpec(path="choices.0.message.content")],
    }
    return CheckSpec(**(known | fields))


def chunk(**delta):
    return "data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": None}]})


def assembled(*lines):
    assembly = Assembly()
    for second, line in enumerate(lines):
        assembly.feed(line, float(second))
    return assembly


def test_tokens_are_what_usage_says_and_never_the_chunks():  # T86
    usage = 'data: {"choices": [], "usage": {"completion_tokens": 160}}'
    document = assembled(*[chunk(content="abcd")] * 40, usage, "data: [DONE]").document()
    assert document["chunks"] == 40
    assert completion_tokens(document) == 160
    assert "160 tokens" in described(Reply(200, document, 2.0))
    assert described(Reply(200, {"usage": {"completion_tokens": 1}}, 2.0)).startswith(
        "200 in 2.00 s, 1 token: "
    )


def test_without_usage_the_number_of_tokens_is_unknown():
    document = assembled(chunk(content="a"), "data: [DONE]").document()
    assert completion_tokens(document) is None
    assert "tokens" not in described(Reply(200, document, 2.0))


def test_a_stream_is_one_text_with_the_time_of_its_first_token():
    document = assembled(
        ": ping", chunk(role="assistant"), chunk(content="Hel"), chunk(content="lo"), "data: [DONE]"
    ).document()
    assert (document["content"], document["first_token_seconds"]) == ("Hello", 2.0)


def test_tool_calls_come_in_parts_and_empty_lists_are_none():
    document = assembled(
        chunk(tool_calls=[]),
        chunk(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a"'}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        "data: [DONE]",
    ).document()
    assert document["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    ]
    assert assembled(chunk(tool_calls=[]), "data: [DONE]").document()["tool_calls"] == []


def test_both_names_of_reasoning_are_read():
    document = assembled(chunk(reasoning="a"), chunk(reasoning_content="b"), "data: [DONE]").document()
    assert document["reasoning"] == "ab"


def test_a_stream_is_whole_only_with_its_end():
    assert not assembled(chunk(content="a")).whole
    with pytest.raises(ValueError):
        assembled('data: {"choices": [{"del')


@pytest.mark.parametrize(
    ("document", "is_generated"),
    [
        ({"usage": {"completion_tokens": 1}}, True),
        ({"choices": [{"message": {"content": "x"}}]}, True),
        ({"choices": [{"message": {"content": "", "reasoning": "x"}}]}, True),
        ({"choices": [{"text": "x"}]}, True),
        ({"choices": [{"message": {"content": ""}}], "usage": {"completion_tokens": 0}}, False),
        ({"choices": []}, False),
        ({"usage": {"completion_tokens": True}}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_a_generation_needs_a_token(document, is_generated):
    assert generated(document) is is_generated


def test_case_counts_in_model_names():  # T82
    hint = model_hint("deepseek-v4.1-flash-1017", ["DeepSeek-V4.1-Flash-1017"])
    assert (
        hint
        == "the server lists DeepSeek-V4.1-Flash-1017; deepseek-v4.1-flash-1017 differs from it in case alone, and case counts"
    )
    assert model_hint("a", ["b", "c"]) == "the server lists b, c; asked was a"
    assert model_hint("a", []) == "the server lists no model; asked was a"
    assert model_hint("a", ["a"]) == ""


REFUSED = Reply(400, {"error": {"message": "tool_choice required is not supported"}}, 0.01)
GOOD = Reply(200, {"choices": [{"message": {"content": "x"}}]}, 0.01)


def test_a_published_gap_is_no_failure_and_an_unpublished_one_is():  # T83
    assert judge_reply(check(not_supported="README"), REFUSED).result == "not supported (published)"
    assert judge_reply(check(), REFUSED).result == "fail"


def test_wrong_content_where_a_gap_is_published():  # T85
    empty = Reply(200, {"choices": [{"message": {"content": ""}}]}, 0.005)
    asked = [ExpectSpec(path="choices.0.message.content", json_text=True)]
    assert (
        judge_reply(check(expect=asked, not_supported="post 000"), empty).result
        == "not supported (published)"
    )
    assert judge_reply(check(expect=asked), empty).result == "fail"


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_a_published_gap_excuses_no_key_and_no_broken_server(status):
    assert judge_reply(check(not_supported="README"), Reply(status, {})).result == "fail"


def test_what_works_though_a_gap_is_published_passes():
    assert judge_reply(check(not_supported="README"), GOOD).result == "pass"


def test_no_answer_in_time_fails_and_no_connection_could_not_be_checked():
    late = judge_reply(
        check(timeout=30.0), Reply(unheard="no whole answer within 30 s", late=True, seconds=30.0)
    )
    assert (late.result, late.faults) == ("fail", ("no whole answer within 30 s",))
    assert judge_reply(check(), Reply(unheard="no connection")).result == "could not check"


def test_a_reply_that_is_no_json_fails():
    assert judge_reply(check(), Reply(200, None, text="<html>")).faults == (
        'the reply is not JSON: "<html>"',
    )


def test_a_list_of_models_is_shown_by_their_names():
    models = Reply(200, {"models": [], "data": [{"id": "a", "meta": {"much": 1}}, {"id": "b"}]}, 0.01)
    assert described(models) == '200 in 0.01 s: "models: a, b"'


def test_a_check_may_expect_another_status():
    expects = check(expect=[ExpectSpec(path="http_status", equals=400)])
    assert judge_reply(expects, REFUSED).result == "pass"
    assert judge_reply(expects, GOOD).faults == ("http_status is 200; expected 400",)


def test_a_budget_spent_in_reasoning_is_said():  # VER-02
    spent = {"choices": [{"finish_reason": "length", "message": {"content": None, "reasoning": "hm"}}]}
    strict = check(expect=[ExpectSpec(path="choices.0.message.content", matches=".")])
    assert "the server is fine" in judge_reply(strict, Reply(200, spent)).hints[0]


def test_the_worst_of_several_counts():
    answers = [
        Judgement("pass", (), "a"),
        Judgement("could not check", ("x",), "b"),
        Judgement("pass", (), "c"),
    ]
    assert together(answers) == Judgement("could not check", ("x",), "a | b | c")


@pytest.mark.parametrize(
    "document",
    [
        {"choices": "abc"},
        {"choices": ["x"]},
        {"choices": {"a": 1}},
        {"choices": [{"message": "hi"}]},
        {"choices": [{"message": ["x"]}]},
        {"data": 5},
        {"usage": []},
        [1],
        5,
    ],
)
def test_replies_of_another_form_are_read_without_a_fault(document: object) -> None:
    reply = Reply(200, document, 1.0)
    assert not generated(document)
    assert (hints(document), listed_models(document)) == ((), ())
    assert described(reply)
