"""The pictures of the guides: drawn from the inventories, well-formed, small, and without anything of another host."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from sparkyard.load import load_inventory

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
FILES = sorted(FOLDER.glob("*.svg"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMESPACE = "http://www.w3.org/2000/svg"
CABLES = {
    "two-sparks.svg": "two-spark",
    "four-sparks-switch.svg": "four-spark",
    "four-sparks-ring.svg": "four-spark-ring",
}


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_what_is_drawn_today(draw):
    assert {path.name for path in FILES} == set(draw.PICTURES)
    for path in FILES:
        assert path.read_text(encoding="utf-8") == draw.PICTURES[path.name](), (
            f"python {FOLDER / 'draw.py'} draws {path.name}"
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_picture_is_whole_small_and_alone(path):
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{{{NAMESPACE}}}svg"
    for part in ("title", "desc"):
        element = root.find(f"{{{NAMESPACE}}}{part}")
        assert element is not None
        assert element.text
        assert element.get("id") in str(root.get("aria-labelledby")).split()
    assert len(text.encode()) < 60_000
    assert not re.search(r"//|@import|@font-face|<script|<image|href", text.replace(NAMESPACE, ""))
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_picture_is_shown_on_a_page_with_words_for_those_who_cannot_see_it(path):
    shown = [
        alt for page in PAGES for alt in re.findall(rf"!\[([^\]]*)\]\([^)]*{path.name}\)", page.read_text())
    ]
    assert shown
    assert all(len(alt) > 20 for alt in shown)


@pytest.mark.parametrize(("name", "inventory"), CABLES.items())
def test_the_words_of_cables_are_those_of_the_inventory(name, inventory):
    root = ElementTree.parse(FOLDER / name).getroot()
    said = [element.text.strip() for element in root.iter(f"{{{NAMESPACE}}}text") if element.text]
    for node in load_inventory(ROOT / "inventory" / inventory, environ={}, sets=()).nodes:
        peers = node.vars.get("peer_hcas", {"": list(node.link.hcas)})
        wanted = [
            node.name,
            node.link.interface,
            node.link.address,
            *(", ".join(hcas) for hcas in peers.values()),
        ]
        assert [text for text in wanted if text not in said] == []
    hcas = {word for text in said for word in re.findall(r"roce\w+", text)}
    nodes = load_inventory(ROOT / "inventory" / inventory, environ={}, sets=()).nodes
    assert hcas == {hca for node in nodes for hca in node.link.hcas}


def test_pictures_of_guides_can_be_read_in_the_dark():
    assert all("prefers-color-scheme: dark" in (FOLDER / name).read_text() for name in [*CABLES, "steps.svg"])
