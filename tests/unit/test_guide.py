"""README and guides: every command is known to the lab, every snippet is what the tool prints, figures agree with the recipe."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from sparkyard import showing
from sparkyard.events import Event
from sparkyard.load import find_recipes, load_all, load_recipe
from sparkyard.lock import Lock
from sparkyard.model import Lane
from sparkyard.render import render_lane
from sparkyard.rendered_tree import texts
from sparkyard.reporting.console import RichPaper
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
    view = HumanView(RichPaper(Console(file=stream, width=80)), live=False)
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


GUIDES = pytest.mark.parametrize("of", [guide.TWO_SPARKS, guide.FOUR_SPARKS], ids=lambda of: of.page.name)


@GUIDES
def test_every_command_of_a_guide_is_in_the_lab_s_table_and_none_else(of):
    typed = of.commands()
    chats = {line for line in typed if line.startswith("curl ") and of.run_of(line) is guide.CHAT}
    assert [line for line in typed if line not in of.table and line not in chats] == []
    assert [line for line in of.table if line not in typed] == []


@GUIDES
def test_what_is_not_run_in_the_lab_says_why(of):
    assert all(bool(run.why) == (run.how == "not here") for run in of.table.values())


@pytest.mark.parametrize(("lane", "file"), guide.ELSEWHERE.items())
def test_a_lane_that_the_walk_leaves_out_has_its_life_typed_elsewhere(lane, file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf'"download", "build", "start", "verify", "--lane={lane}"', text)


def four(lane: str) -> Lane:
    """The lane on the four Sparks of the example, with cables in the same port of each."""
    folder = ROOT / "inventory/four-spark"
    return load_all(folder, find_recipes(ROOT, []), lane, environ={}, sets=[])


def row(lane: str) -> list[str]:
    """The lane's row of what each node must have."""
    lines = (guide.DOCS / "four-sparks.md").read_text(encoding="utf-8").splitlines()
    (found,) = [line for line in lines if line.startswith(f"| `{lane}` | ") and " GB | " in line]
    return [cell.strip() for cell in found.strip("|").split("|")]


def gigabytes(size: int) -> str:
    return f"{round(size / 10**9)} GB"


@pytest.mark.parametrize("lane", ["B", "C", "D", "A4", "boot10"])
def test_what_the_guide_says_of_a_lane_is_the_recipe_s(lane):
    of = load_recipe(find_recipes(ROOT, [])[lane])
    _, _, _, kept, memory, api = row(lane)
    assert memory == gigabytes(of.limits.memory)
    assert kept.startswith(gigabytes(of.limits.disk))
    assert api == f"{of.settings['port'].default}, `{of.settings['model_name'].default}`"


@pytest.mark.parametrize("lane", ["B", "C", "D"])
def test_what_a_recipe_quotes_of_the_post_is_what_the_guide_s_table_has(lane):
    lines = (guide.DOCS / "four-sparks.md").read_text(encoding="utf-8").splitlines()
    first = lines.index("| | A, on four | B | C | D |")
    last = lines.index("", first)
    column = " ".join(line.split("|")["BCD".index(lane) + 3] for line in lines[first + 2 : last])
    told = {
        figure.what: figure.value
        for figure in four(lane).recipe.expect
        if figure.source.startswith("the four-engine post") and "tokens/s" in figure.value
    }
    numbers = {what: re.findall(r"\d[\d,]*", value) for what, value in told.items()}
    assert len(numbers) >= 2
    assert [
        (what, n) for what, ns in numbers.items() for n in ns if n not in re.findall(r"\d[\d,]*", column)
    ] == []


def test_figures_of_the_guide_are_the_recipe_s():
    lane, page = lane_a(), guide.TWO_SPARKS.page.read_text()
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
