"""What ``invoke status`` says of each rank, as text at 80 columns and as JSON."""

from __future__ import annotations

import io

from rich.console import Console

from sparkyard.drift import RankState
from sparkyard.reporting.console import RichPaper
from sparkyard.reporting.human import HumanView
from sparkyard.standing import below, row

WHY = "could not check: containers: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
IMAGE = "sparkyard/c-vllm-sparknet:25df8e32b920"
SERVES = RankState("spark-1", 0, "rank", "c", "running", "2026-11-30T02:07:02.1Z", IMAGE)
DEAF = RankState("spark-2", 1, "rank", "c", "unknown", trouble=(WHY,))
GONE = RankState("spark-3", 2, "rank", "c", "absent", trouble=("no container",))
OTHER = RankState(
    "spark-4", 3, "rank", "c", "running", SERVES.since, IMAGE, drift=("/a/file is missing", "other image")
)


def test_what_differs_is_readable_at_80_columns():
    stream = io.StringIO()
    view = HumanView(RichPaper(Console(file=stream, width=80)), live=False)
    ranks = (SERVES, DEAF, GONE, OTHER)
    for event in (*map(row, ranks), *(each for rank in ranks for each in below(rank))):
        view.handle(event)
    view.close()
    text = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert max(map(len, text)) <= 80
    assert [line.split() for line in text[:8]] == [
        ["node", "rank", "state", "since", "(UTC)", "image", "drift"],
        ["spark-1", "0", "running", "2026-11-30T02:07:02", "sparkyard/c-vllm-", "none"],
        ["sparknet:25df8e32b920"],
        ["spark-2", "1", "unknown", "below"],
        ["spark-3", "2", "absent", "no"],
        ["container"],
        ["spark-4", "3", "running", "2026-11-30T02:07:02", "sparkyard/c-vllm-", "2,", "below"],
        ["sparknet:25df8e32b920"],
    ]
    assert text[8:] == [
        "note         spark-2  rank 1: could not check: containers: Cannot connect to the",
        "             Docker daemon at unix:///var/run/docker.sock. Is the docker daemon",
        "             running?",
        "note         spark-4  rank 3: /a/file is missing",
        "note         spark-4  rank 3: other image",
    ]


def test_a_machine_finds_all_of_it_in_the_row():
    assert row(OTHER).data["drift"] == ["/a/file is missing", "other image"]
    assert row(OTHER).message.endswith(" /a/file is missing, other image")
    assert (row(SERVES).data["drift"], row(SERVES).data["as_wanted"]) == ("none", True)


def test_two_services_of_one_rank_are_told_apart():
    agent = RankState("spark-1", 0, "agent", "a", "running", SERVES.since, IMAGE)
    orbit = RankState(
        "spark-1", 0, "orbit", "o", "exited", trouble=("ended with exit code 3", "its log was lost")
    )
    assert [row(rank, named=True).data["of"] for rank in (agent, orbit)] == ["agent", "orbit"]
    assert row(agent).data["of"] == ""
    assert [event.message for event in below(orbit, named=True)] == [
        "rank 0, orbit: ended with exit code 3",
        "rank 0, orbit: its log was lost",
    ]
