"""Counting: Ansible's words from events."""

from sparkyard.events import Event, EventType
from sparkyard.recap import Counts, count, shipped
from sparkyard.reporting.lines import lines_of
from tests.unit import happenings

PLANNED: tuple[EventType, ...] = ("step-would-change", "step-start", "step-changed")


def test_every_word_has_its_counter():
    counts = count(happenings.ran())
    assert counts["spark-1"] == Counts(ok=2, changed=1)
    assert counts["spark-2"] == Counts(skipped=1, failed=1, unreachable=1)


def test_a_step_that_was_planned_and_then_changed_counts_once():
    counts = count([Event(type_, node="n", step="file:x@n") for type_ in PLANNED])
    assert counts["n"] == Counts(ok=1, changed=1)


def test_the_same_step_in_two_verbs_counts_twice():
    step = Event("step-ok", node="n", step="preflight:docker@n")
    counts = count([Event("run-start"), step, Event("run-start"), step])
    assert counts["n"] == Counts(ok=2)


def test_nodes_without_events_are_counted_in_the_given_order():
    assert list(count([Event("step-ok", node="c", step="x")], ["a", "b"])) == ["a", "b", "c"]
    assert count([], ["a"])["a"].data() == {
        "ok": 0,
        "changed": 0,
        "skipped": 0,
        "failed": 0,
        "unreachable": 0,
        "would-change": 0,
    }


def test_findings_and_output_are_not_counted():
    assert count([Event("finding", node="n"), Event("step-output", node="n", step="s"), Event("recap")]) == {}


def test_a_node_is_unreachable_once_a_verb():
    gone = [Event("node-unreachable", node="n", step=step) for step in ("", "file:a@n", "file:b@n")]
    assert count(gone)["n"] == Counts(unreachable=1)
    assert count([Event("run-start"), *gone, Event("run-start"), *gone])["n"] == Counts(unreachable=2)


def test_shipped_bytes_are_summed_over_nodes():
    parts = [
        {"moved": 5_000_000, "left_out": 20_000_000_000, "layers": 9, "layers_left_out": 8},
        {"moved": 1, "left_out": 0},
    ]
    events = [Event("step-changed", node=f"n{n}", data={"shipped": part}) for n, part in enumerate(parts)]
    assert shipped([*events, Event("step-changed", node="n0"), Event("step-ok")]) == {
        "moved": 5_000_001,
        "left_out": 20_000_000_000,
    }
    assert shipped([Event("step-changed", node="n0")]) == {}


def test_the_recap_says_what_moved_and_what_did_not():
    data = {"nodes": {}, "status": 0, "shipped": {"moved": 5_000_000, "left_out": 20_000_000_000}}
    texts = ["".join(text for text, _style in line) for line in lines_of(Event("recap", data=data), 80)]
    assert texts == ["recap", "images: 5.0 MB moved, 20.0 GB left out, being there already"]
