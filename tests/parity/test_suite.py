"""The suite of conversations: what our own encoder makes of them, and what edited templates make of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from sparkyard import chat_rendering, parity, patching
from sparkyard.recipe import EditSpec
from tests.parity.encoder import Refused, encode

ROOT = Path(__file__).resolve().parents[2]
CASES = parity.suite()
OWN = ROOT / "sparkyard" / "lab" / "kit" / "files" / "chat_template.jinja"
FETCHED = os.environ.get("SPARKYARD_CHAT_TEMPLATE", "")
"""A fetched copy of the kit's template (below ``<state>/fetched/`` after `invoke build`); it is never kept here."""


def edits() -> list[EditSpec]:
    recipe = yaml.safe_load((ROOT / "recipes" / "a-tensorfold" / "recipe.yml").read_text())
    return [EditSpec.model_validate(edit) for edit in recipe["patches"]["template"]["edits"]]


def templates() -> list[object]:
    absent = pytest.mark.skipif(not FETCHED, reason="SPARKYARD_CHAT_TEMPLATE names no fetched template")
    return [pytest.param(OWN, id="own"), pytest.param(Path(FETCHED), id="fetched", marks=absent)]


def patched(path: Path) -> str:
    return patching.edited(path.read_text(encoding="utf-8"), edits(), "template")


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own():
    assert len(CASES) >= 25
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_expected_bytes_are_what_the_rules_say(case):
    if case.refused_here:
        assert case.expected is None
        return
    try:
        made = encode(case.request)
    except Refused:
        made = None
    assert made == case.expected


@pytest.mark.parametrize("door", parity.DOORS)
@pytest.mark.parametrize("path", templates())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_edited_template_writes_the_expected_bytes(case, path, door):
    made = parity.rendered(patched(path), case, door)
    if door in case.gap:
        assert made != case.expected, "this gap is closed: take it out of the suite"
    else:
        assert made == case.expected


def test_every_edit_is_needed():
    """Without any single edit some conversation is written otherwise, or a level that TensorFold has is refused."""
    text = OWN.read_text(encoding="utf-8")
    for left_out in range(len(edits())):
        kept = [edit for n, edit in enumerate(edits()) if n != left_out]
        try:
            made = patching.edited(text, kept, "template")
        except patching.PatchRefused:
            continue
        wrong = [
            c.name
            for c in CASES
            for d in parity.DOORS
            if d not in c.gap and parity.rendered(made, c, d) != c.expected
        ]
        assert wrong or "xhigh" not in made, f"edit {left_out + 1} changes nothing that a case shows"


@pytest.mark.parametrize("path", templates())
def test_the_highest_level_of_tensorfold_is_the_format_s(path):
    hello = [{"role": "user", "content": "Hi"}]
    made = [
        chat_rendering.render(patched(path), hello, enable_thinking=True, reasoning_effort=level)
        for level in ("max", "xhigh")
    ]
    assert made[0] == made[1]
    assert "Reasoning Effort: 100 " in made[0]


@pytest.mark.parametrize("path", templates())
def test_a_template_of_tensorfold_keeps_later_system_messages(path):
    """Its server probes for that with bare messages; a template that fails the probe has them rewritten."""
    probe = [{"role": role, "content": role} for role in ("system", "user", "assistant", "system", "user")]
    probe[3]["content"] = "the later one"
    assert "the later one" in chat_rendering.environment().from_string(patched(path)).render(messages=probe)


def test_comparing_names_what_differs_and_what_cannot_be_equal():
    template = patched(OWN)
    prompts = [None if case.refused_here else case.expected for case in CASES]
    results = {o.case.name: o.result for o in parity.compare(template, CASES, prompts)}
    assert {name for name, result in results.items() if result == "differs"} == set()
    assert results["arguments as JSON text twice over"] == "gap"
    assert sum(result == "equal" for result in results.values()) >= 55
    wrong = [*prompts[:-9], "other", *prompts[-8:]]
    (differs,) = [o for o in parity.compare(template, CASES, wrong) if o.result == "differs"]
    assert differs.case.name == CASES[-9].name
