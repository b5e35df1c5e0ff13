"""Saved answers of Docker and saved logs in, the right sentence out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkyard.diagnosis import ending, guard_of, in_order, known_tokens, report, run_refused, sentence, stall
from sparkyard.log_tokens import LOG_TOKENS

EARLIER, LATER = "2026-11-29T10:00:00.5Z", "2026-11-29T10:04:00.1Z"


def state(restarts=0, **fields):
    known = {"Status": "exited", "ExitCode": 1, "OOMKilled": False, "Error": "", "FinishedAt": LATER}
    return f"{json.dumps(known | fields)}\n{restarts}\n"


def rank(node: str, lines: tuple[str, ...] = (), **fields: Any) -> Any:
    return ending(node, f"lane-{node}", state(**fields), lines)


def test_a_running_rank_has_not_ended():
    assert rank("spark-1", Status="running") is None


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"ExitCode": 0}, "ended by itself (exit code 0), though it should serve"),  # T55
        ({"ExitCode": 137}, "ended with exit code 137 (SIGKILL)"),
        ({"ExitCode": 137, "OOMKilled": True}, "was killed for memory (exit code 137, OOMKilled true)"),
        ({"ExitCode": 3}, "ended with exit code 3"),
        (  # T58
            {"Status": "running", "restarts": 3},
            "is in a crash loop: Docker restarted it 3 times (a single rank cannot join again)",
        ),
        (  # T59
            {"Status": "created", "Error": "address already in use"},
            "was created and never started: address already in use",
        ),
        ({"Status": "paused"}, "is paused: somebody paused it"),
    ],
)
def test_how_a_rank_ended(fields, what):
    assert rank("spark-2", **fields).what == what


def test_a_rank_that_was_removed():
    gone: Any = ending("spark-2", "x", None)
    assert gone.what == "is gone: somebody removed it"


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_an_answer_cut_short_is_never_taken_for_running(cut):
    whole = state(Status="running")
    with pytest.raises((ValueError, KeyError)):
        ending("spark-1", "x", whole[:cut])


def test_a_memory_guard_is_named():  # T56
    killed = replace(rank("spark-2", ExitCode=137), killer=guard_of("earlyoom.service\n"))
    assert "probably killed by the user-space memory guard earlyoom.service" in sentence(killed)
    assert (
        report([killed], [])[1] == "exempt the engine in earlyoom.service on spark-2, or raise its threshold"
    )


def test_no_guard_is_blamed_for_what_the_kernel_did():
    assert guard_of("earlyoom.service\nkernel-oom\n") == ""
    assert guard_of("") == ""


def test_the_worker_that_died_first_is_named_first():  # T71
    head = rank("spark-1", ("DistStoreError: 1/2 clients joined",), FinishedAt=LATER)
    worker = rank("spark-2", ("CUDA error", "bye"), FinishedAt=EARLIER)
    text, _, details = report([head, worker], [])
    assert text == "the rank on spark-2 (container lane-spark-2) ended with exit code 1"
    assert details[:3] == ("last lines of spark-2 (lane-spark-2):", "  CUDA error", "  bye")
    assert any("DistStoreError" in line and "ORD-01" in line for line in details)


def test_a_head_that_blames_others_comes_last_even_with_an_earlier_clock():
    head = rank("spark-1", ("torch DistStoreError",), FinishedAt=EARLIER)
    worker = rank("spark-2", FinishedAt=LATER)
    assert [end.node for end in in_order([head, worker])] == ["spark-2", "spark-1"]


def test_other_ranks_follow_with_their_last_lines():
    lines = tuple(f"line {n}" for n in range(40))
    _, _, details = report([rank("spark-2", lines)], [("spark-1", "lane-1", ("waiting",))])
    assert "  line 20" in details
    assert "  line 19" not in details
    assert details[-2:] == ("last lines of spark-1 (lane-1), still running:", "  waiting")


def test_own_causes_come_before_those_that_blame_others():
    found = known_tokens(["EngineDeadError", "RuntimeError: NET/IB : No device found"])
    assert [token.token for token in found] == ["NET/IB : No device found", "EngineDeadError"]


def test_an_idle_notice_is_no_cause():  # T73
    assert known_tokens(["No available shared memory broadcast block found in 60 seconds"] * 3) == ()


def test_every_token_is_found_once_and_says_what_to_do():
    assert len({token.token for token in LOG_TOKENS}) == len(LOG_TOKENS)
    for token in LOG_TOKENS:
        assert token in known_tokens([f"x {token.token} y"])
        assert token.meaning
        assert token.next_step
        assert token.rows


def test_silence_says_so():
    text, _, details = stall(30, [("spark-1", "lane-0", ())])
    assert text.startswith("no rank wrote a log line for 30 s, and the API is not ready")
    assert details == ("last lines of spark-1 (lane-0): it wrote none",)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            'docker: Error response from daemon: Conflict. The container name "/lane-0" is already in use by container "f00".',
            "the name lane-0 is taken by another container",
        ),
        (
            "docker: Error response from daemon: driver failed: listen tcp4 0.0.0.0:8000: bind: address already in use.",
            "a port of lane-0 is already in use",
        ),
        (
            "docker: Error response from daemon: Bind for 127.0.0.1:8000 failed: port is already allocated.",
            "a port of lane-0 is already in use",
        ),
        (
            "Unable to find image 'gone:1' locally\ndocker: Error response from daemon: pull access denied for gone",
            "the image of lane-0 is not on this node",
        ),
        (
            "docker: Error response from daemon: No such image: gone:1.",
            "the image of lane-0 is not on this node",
        ),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "Docker on this node has no NVIDIA runtime for --gpus",
        ),
        (
            'docker: Error response from daemon: OCI runtime create failed: exec: "serv": executable file not found in $PATH',
            "the image of lane-0 has no such program",
        ),
        (
            'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /x.',
            "a bind mount of lane-0 has no source on this node",
        ),
        ("docker: something new", "docker run refused to start lane-0"),
    ],
)
def test_what_docker_run_refused(said, message):
    assert run_refused("lane-0", said)[0] == message
