"""README and guides: every command is known to the lab, every snippet is what the tool prints, figures agree with the recipe."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from sparkyard import showing
from sparkyard.events import Event
from sparkyard.load import find_recipes, load_all
from sparkyard.lock import Lock
from sparkyard.model import Lane
from sparkyard.render import render_lane
from sparkyard.rendered_tree import texts
from sparkyard.reporting.human import HumanView
from sparkyard.tables import finding
from tests import guide

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"^<!-- shown: ([^\n]+?) -->\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ELIDED = "…"


def lane_a() -> Lane:
    return load_all(ROOT / "inventory/two-spark", find_recipes(ROOT, []), "A", environ={}, sets=[])


def printed(what: str) -> str:
    """What ``invoke <what> --lane=A --inventory=inventory/two-spark`` prints; of ``render``, one file."""
    lane = lane_a()
    rendered = render_lane(lane, {})
    verb, _, name = what.partition(" ")
    if verb == "render":
        return texts(rendered)[name]
    assert what == "show"
    stream = io.StringIO()
    view = HumanView(Console(file=stream, width=80), live=False)
    for section in showing.sections(lane, rendered, Lock()):
        view.handle(Event("finding", section.title, data={"heading": section.title}))
        for row in section.rows:
            view.handle(finding(section.table, row))
    view.close()
    return stream.getvalue()


def snippets() -> list[object]:
    return [
        pytest.param(what, text, id=f"{page.name}: {what}")
        for page in PAGES
        for what, text in SHOWN.findall(page.read_text())
    ]


@pytest.mark.parametrize(("what", "text"), snippets())
def test_a_snippet_is_what_is_printed(what, text):
    """Parts between … stand in the output in this order, each whole lines; the first is its beginning and the last its end."""
    lines, at = printed(what).splitlines(), 0
    parts = [part.strip("\n").splitlines() for part in re.split(rf"^{ELIDED}\n", text, flags=re.MULTILINE)]
    for part in filter(None, parts):
        found = next((n for n in range(at, len(lines)) if lines[n : n + len(part)] == part), None)
        assert found is not None, f"not printed, or not in this order: {part[0]} …"
        at = found + len(part)
    assert lines[: len(parts[0])] == parts[0]
    assert not parts[-1] or lines[-len(parts[-1]) :] == parts[-1]


def test_both_pages_show_something():
    pages = {page.name for page in PAGES if SHOWN.search(page.read_text())}
    assert {"README.md", "two-sparks.md"} <= pages


def test_every_command_of_the_guide_is_in_the_lab_s_table_and_none_else():
    typed = guide.commands()
    unknown = [line for line in typed if line not in guide.COMMANDS and guide.run_of(line) is not guide.CHAT]
    assert unknown == []
    assert [line for line in guide.COMMANDS if line not in typed] == []


def test_what_is_not_run_in_the_lab_says_why():
    assert all(bool(run.why) == (run.how == "not here") for run in guide.COMMANDS.values())


def test_figures_of_the_guide_are_the_recipe_s():
    lane, page = lane_a(), guide.GUIDE.read_text()
    kept = {folder.name: folder.size for folder in render_lane(lane, {}).kept["spark-1"]}
    disk = 414_000_000_000 + sum(kept.values()) + lane.recipe.limits.disk
    assert f"{-(-disk // 10**9)} GB, or {-(-(disk - kept['spill']) // 10**9)} GB without the spill" in page
    assert f"http://127.0.0.1:{lane.settings['port'].value}/v1" in page
    assert str(lane.settings["model_name"].value) in page
    for setting in re.findall(
        r"`(weights|prefill_chunk|replay|replay_floor|spill_gib|expose|api_key)`", page
    ):
        assert setting in lane.settings
    for lost in lane.recipe.kept["spill"].lost_with:
        assert f"`{lost}`" in page
