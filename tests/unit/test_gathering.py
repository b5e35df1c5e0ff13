"""What is the same on several nodes is told once to people, and stays one event a node for machines."""

import io
import json

import pytest
from rich.console import Console

from sparkyard.events import Event
from sparkyard.report import JsonView
from sparkyard.reporting.console import RichPaper
from sparkyard.reporting.human import PATIENCE, HumanView
from sparkyard.tables import finding

FOUR = ["spark-1", "spark-2", "spark-3", "spark-4"]


def found(kind, node, title="preflight: ports are free", reason="port 8000 is free", **data):
    noun = title.replace(" ", "-")
    return Event(kind, reason, node, f"{noun}@{node}", {"title": title, "reason": reason, **data})


def begin(nodes=FOUR):
    return Event("run-start", data={"verb": "start", "lane": "B", "nodes": nodes})


def told(*events, verbose=0, clock=lambda: 0.0):
    stream = io.StringIO()
    view = HumanView(RichPaper(Console(file=stream, width=80)), verbose=verbose, live=False, clock=clock)
    for event in events:
        view.handle(event)
    view.close()
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("kind", ["step-ok", "step-skipped"])
def test_the_same_of_all_nodes_is_one_line(kind):
    lines = told(begin(), *(found(kind, node) for node in reversed(FOUR)))
    word = kind.removeprefix("step-")
    assert lines[1:] == [f"{word:<13}all 4 nodes  preflight: ports are free · port 8000 is free"]


def test_nodes_that_found_something_else_say_what():
    free = "port 8000 is free"
    lines = told(begin(), *(found("step-ok", n, reason=f"GID {3 if n in FOUR[:2] else 5}") for n in FOUR))
    assert lines[1:] == [
        "ok           all 4 nodes  preflight: ports are free · spark-1, spark-2: GID 3;",
        "             spark-3, spark-4: GID 5",
    ]
    lines = told(begin(), found("step-ok", "spark-2"), found("step-ok", "spark-1"))
    assert lines[1:] == [f"ok           spark-1, spark-2  preflight: ports are free · {free}"]


def test_a_fault_of_several_nodes_names_each_and_says_the_next_step_once():
    lines = told(begin(), *(found("step-failed", n, reason="no group docker", next="newgrp") for n in FOUR))
    assert lines[1:] == [
        "failed       spark-1, spark-2, spark-3, spark-4  preflight: ports are free · no",
        "             group docker",
        "             next: newgrp",
    ]


def test_what_is_to_be_pasted_on_one_node_stays_with_that_node():
    lines = told(begin(), *(found("step-would-change", n, actions=[f"docker run {n}"]) for n in FOUR[:2]))
    assert lines[1:] == [
        "would change spark-1  preflight: ports are free · port 8000 is free",
        "             docker run spark-1",
        "would change spark-2  preflight: ports are free · port 8000 is free",
        "             docker run spark-2",
    ]


def test_ranks_are_counted_up():
    lines = told(
        begin(), *(found("step-ok", f"spark-{n + 1}", f"follower rank {n}: start", "runs") for n in (1, 2, 3))
    )
    assert lines[1:] == ["ok           spark-2, spark-3, spark-4  follower ranks 1, 2, 3: start · runs"]


def test_what_status_found_of_several_ranks_is_one_line():
    notes = [
        Event("finding", f"rank {n}: {text}", f"spark-{n + 1}", data={"rank": n, "drift": text})
        for n in range(2)
        for text in ("other settings", "no image")
    ]
    assert told(*notes) == [
        "note         spark-1, spark-2  ranks 0, 1: other settings",
        "note         spark-1, spark-2  ranks 0, 1: no image",
    ]


def test_rows_of_a_table_that_differ_in_their_node_alone_are_one():
    rows = [{"lane": "B", "node": node, "memory": memory} for node, memory in zip(FOUR, "1121", strict=True)]
    assert told(*(finding("lanes-nodes", row) for row in rows)) == [
        "lane  node                       memory",
        "B     spark-1, spark-2, spark-4  1",
        "B     spark-3                    2",
    ]


def test_what_acted_is_told_when_it_ends_and_not_gathered():
    events = [found(kind, node) for node in FOUR[:2] for kind in ("step-start", "step-ok")]
    assert [line.split()[:2] for line in told(begin(), *events)[1:]] == [
        ["running", "spark-1"],
        ["ok", "spark-1"],
        ["running", "spark-2"],
        ["ok", "spark-2"],
    ]


def test_one_node_that_says_a_thing_twice_has_two_lines():
    assert len(told(begin(), *(found("step-ok", node) for node in ("spark-1", "spark-2", "spark-1")))) == 3


def test_nothing_waits_for_long():
    times = iter([0.0, PATIENCE + 1, PATIENCE + 1])
    lines = told(
        begin(), *(found("step-ok", node) for node in FOUR[:2]), clock=lambda: next(times, PATIENCE + 1)
    )
    assert len(lines) == 3


def test_machines_are_told_of_every_node():
    stream = io.StringIO()
    view = JsonView(stream)
    for event in [begin(), *(found("step-ok", node) for node in FOUR)]:
        view.handle(event)
    assert [json.loads(line)["node"] for line in stream.getvalue().splitlines()[1:]] == FOUR
