"""Readiness and checks against real HTTP servers: the lab's scripted engine, and small ones that break off."""

import contextlib
import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkyard.actions import Request, WaitReady
from sparkyard.errors import Interrupted, StepFailed, VerifyFailed
from sparkyard.executors.ready import wait_ready
from sparkyard.executors.verify import request
from sparkyard.plan import Step, Verdict
from sparkyard.recipe import CheckSpec, ExpectSpec
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings

ENGINE = Path(__file__).parents[2] / "recipes" / "lab" / "engine" / "scripted.py"
CHAT = "/v1/chat/completions"
BODY = {"model": "scripted", "max_tokens": 4, "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def place(tmp_path):
    around = surroundings(tmp_path)
    yield around
    around.close()


@pytest.fixture
def said():
    return []


@pytest.fixture
def world(place, said):
    step = Step("verify", "x", "spark-1", "x", lambda _: Verdict("ok"))
    return StepWorld(place, step, lambda event: said.append(event.message), {})


@contextlib.contextmanager
def engine(*flags):
    """The scripted engine as a process of its own, once it says where it listens."""
    words = [sys.executable, "-u", str(ENGINE), "--port", "0", "--alias", "scripted", *flags]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                if found := re.search(r"http://[\d.]+:\d+", line):
                    yield found[0]
                    break
            else:
                raise AssertionError("the engine ended")
        finally:
            process.terminate()


@contextlib.contextmanager
def server(status=200, payload=b"{}", kind="application/json", length=None, others=()):
    """An HTTP server with one answer (but for the paths in ``others``); with a ``length`` beyond it, it breaks off."""
    answers = dict(others)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            code, said = answers.get(self.path, (status, payload))
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length or len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def other_model(name):
    """A server that serves one model and does not know the one it is asked for."""
    models = {"/v1/models": (200, b'{"data": [{"id": "%s"}]}' % name), "/health": (200, b"ok")}
    return server(404, b'{"error": "model not found"}', others=models)


def ready(url, **fields):
    known: dict[str, Any] = {"health": "/health", "body": BODY, "timeout": 300.0, "log_silence": 0.0}
    return WaitReady(url, **(known | fields))


def check(**fields):
    known = {
        "name": "chat",
        "path": CHAT,
        "body": BODY,
        "expect": [ExpectSpec(path="choices.0.message.content", matches=".")],
    }
    return CheckSpec(**(known | fields))


def test_ready_after_a_real_generation(world, said):
    with engine() as url:
        wait_ready(ready(url), "spark-1", world)
    assert re.fullmatch(r"/health answered 200 after [\d.]+ s", said[0])
    assert re.fullmatch(r"a real generation answered after [\d.]+ s", said[1])


@pytest.mark.parametrize("flag", ["--stall", "--no-tokens"])
def test_health_without_tokens_is_not_ready(world, flag):  # T80
    with engine(flag) as url, pytest.raises(StepFailed) as failure:
        wait_ready(ready(url, timeout=5.0), "spark-1", world)
    assert failure.value.message.startswith("not ready within 5 s: /health is 200 since ")
    assert "gave no token" in failure.value.message


def test_never_healthy_says_what_was_last_seen(world):
    with (
        engine("--health", "503") as url,
        pytest.raises(StepFailed, match=r"never answered 200; the last: HTTP status 503"),
    ):
        wait_ready(ready(url, timeout=5.0), "spark-1", world)


def test_nobody_listens(world):
    with pytest.raises(StepFailed, match="no connection"):
        wait_ready(ready("http://127.0.0.1:9", timeout=5.0), "spark-1", world)


def test_a_wrong_key_is_said_at_once(world, tmp_path):
    key = tmp_path / "key"
    key.write_text("right")
    with engine("--api-key-file", str(key)) as url:
        with pytest.raises(StepFailed, match=r"wants another key \(HTTP status 401; no key was sent\)"):
            wait_ready(ready(url), "spark-1", world)
        with pytest.raises(StepFailed, match="the key that was sent is not the engine's") as failure:
            wait_ready(ready(url, api_key="hunter2"), "spark-1", world)
        assert "hunter2" not in str(failure.value)
        wait_ready(ready(url, api_key="right"), "spark-1", world)


def test_a_model_name_in_the_wrong_case_is_said_at_once(world):  # T82
    with other_model(b"DeepSeek-V4.1-Flash-1017") as url, pytest.raises(StepFailed) as failure:
        wait_ready(ready(url, body=BODY | {"model": "deepseek-v4.1-flash-1017"}), "spark-1", world)
    assert "the server lists DeepSeek-V4.1-Flash-1017" in failure.value.message
    assert "case counts" in failure.value.message


def test_an_interrupt_ends_the_waiting(world, place):
    place.stop.set()
    with pytest.raises(Interrupted):
        wait_ready(ready("http://127.0.0.1:9"), "spark-1", world)


def test_a_check_that_passes_shows_both_sides(world):
    with engine("--reply", "The capital of France is Paris.") as url:
        request(Request(url, check(at_once=3)), "spark-1", world)
    assert world.results["result"] == "pass"
    assert world.results["asked"].startswith('3 at once: POST /v1/chat/completions {"model": "scripted"')
    assert world.results["answered"].count("The capital") == 3


def test_a_stream_is_judged_as_one_text(world):
    expect = [
        ExpectSpec(path="content", contains="capital"),
        ExpectSpec(path="chunks", at_least=2),
        ExpectSpec(path="usage.completion_tokens", at_least=1),
        ExpectSpec(path="first_token_seconds", at_least=0),
    ]
    body = BODY | {"max_tokens": 40, "stream_options": {"include_usage": True}}
    with engine("--reply", "The capital of France is Paris.") as url:
        request(Request(url, check(stream=True, expect=expect, body=body)), "spark-1", world)
    assert world.results["result"] == "pass"


def test_a_stream_that_breaks_off_could_not_be_checked(world):
    with engine("--drop-after", "2") as url, pytest.raises(VerifyFailed) as failure:
        request(
            Request(url, check(stream=True, expect=[ExpectSpec(path="chunks", at_least=1)])), "spark-1", world
        )
    assert world.results["result"] == "could not check"
    assert failure.value.status == 3


def test_a_reply_that_breaks_off_could_not_be_checked(world):
    with server(payload=b'{"choices": [', length=500) as url, pytest.raises(VerifyFailed, match="cut short"):
        request(Request(url, check()), "spark-1", world)
    assert world.results["result"] == "could not check"


def test_a_failed_check_says_what_was_expected_and_changes_nothing(world):
    with engine("--no-tokens") as url, pytest.raises(VerifyFailed) as failure:
        request(Request(url, check()), "spark-1", world)
    assert failure.value.message.startswith("chat: fail: choices.0.message.content ")
    assert "nothing was changed" in str(failure.value)


def test_no_answer_in_time_is_a_failure(world):
    with engine("--stall") as url, pytest.raises(VerifyFailed, match=r"no whole answer within 0\.5 s"):
        request(Request(url, check(timeout=0.5)), "spark-1", world)
    assert world.results["result"] == "fail"


def test_a_refusal_is_excused_only_where_it_is_published(world):  # T83
    with server(400, b'{"error": "tool_choice"}') as url:
        request(Request(url, check(not_supported="its README")), "spark-1", world)
        assert world.results["result"] == "not supported (published)"
        with pytest.raises(VerifyFailed, match="HTTP status 400; expected 200"):
            request(Request(url, check()), "spark-1", world)


def test_a_page_in_place_of_an_answer(world):
    with server(payload=b"<html>", kind="text/html") as url, pytest.raises(VerifyFailed, match="is not JSON"):
        request(Request(url, check(method="GET", path="/x")), "spark-1", world)


def test_a_key_in_an_answer_is_masked(world):
    with server(500, b'{"error": "bad key hunter2"}') as url, pytest.raises(VerifyFailed) as failure:
        request(Request(url, check(), api_key="hunter2"), "spark-1", world)
    assert "hunter2" not in str(failure.value) + str(world.results)


def test_a_wrong_model_in_a_check_is_explained(world):
    with other_model(b"Scripted") as url, pytest.raises(VerifyFailed) as failure:
        request(Request(url, check()), "spark-1", world)
    assert "the server lists Scripted" in str(failure.value)


@contextlib.contextmanager
def in_turn(*texts):
    """An HTTP server that says one text after the other, over and over; ``asked`` counts the requests."""
    asked: list[str] = []
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            with turn:
                text = texts[len(asked) % len(texts)]
                asked.append(text)
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()


CONTENT = "choices.0.message.content"


def test_a_request_is_repeated_and_the_different_texts_are_counted(world):
    expect = [ExpectSpec(path=CONTENT, matches=".", distinct_at_most=1)]
    with in_turn("same") as (url, asked):
        request(Request(url, check(repeats=5, expect=expect)), "spark-1", world)
    assert len(asked) == 5
    assert world.results["result"] == "pass"
    assert world.results["asked"].startswith("5 times: POST")
    with in_turn("a", "b") as (url, asked), pytest.raises(VerifyFailed) as failure:
        request(Request(url, check(repeats=5, expect=expect)), "spark-1", world)
    assert (
        f'{CONTENT} has 2 different values in 5 replies; expected at most 1: "a"; "b"'
        in failure.value.message
    )
    assert not any(
        line.startswith(("asked", "answered")) for line in failure.value.details
    )  # the verdict has them
    scatter = [ExpectSpec(path=CONTENT, distinct_at_least=2)]
    with in_turn("a", "b") as (url, asked):
        request(Request(url, check(repeats=2, at_once=2, expect=scatter)), "spark-1", world)
    assert len(asked) == 4


def test_every_repeated_reply_must_be_as_expected(world):
    expect = [ExpectSpec(path=CONTENT, equals="a", distinct_at_least=2)]
    with in_turn("a", "a", "b") as (url, asked), pytest.raises(VerifyFailed, match='is "b"; expected "a"'):
        request(Request(url, check(repeats=3, expect=expect)), "spark-1", world)
    assert len(asked) == 3


def test_it_is_not_repeated_after_no_usable_reply(world):
    with engine("--stall") as url, pytest.raises(VerifyFailed, match=r"no whole answer within 0\.5 s"):
        request(Request(url, check(timeout=0.5, repeats=9)), "spark-1", world)
    assert world.results["answered"].count("nothing usable") <= 1
