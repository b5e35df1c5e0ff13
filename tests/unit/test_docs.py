"""The guides: every key, flag, verb and event is described, and every link leads somewhere."""

import importlib
import re
import sys
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from sparkyard import recipe
from sparkyard.events import EventType
from sparkyard.loading.variables import SCALARS
from sparkyard.options import SHARED
from sparkyard.tables import TABLES
from sparkyard.templating import FILTERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def code(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def named(page: str) -> set[str]:
    """The words that stand in backquotes on a page."""
    return {word for text in re.findall(r"`([^`\n]+)`", code(page)) for word in re.split(r"[\s,=]+", text)}


def recipe_keys() -> list[tuple[str, str]]:
    models = [
        value for value in vars(recipe).values() if isinstance(value, type) and issubclass(value, BaseModel)
    ]
    return [(model.__name__, name) for model in models for name in model.model_fields]


@pytest.mark.parametrize(("model", "key"), recipe_keys())
def test_every_key_of_a_recipe_is_described(model, key):
    assert key in named("docs/recipes.md"), f"{model}.{key}"


def test_every_filter_is_described():
    assert [name for name in FILTERS if name not in code("docs/recipes.md")] == []


def test_every_variable_of_an_inventory_is_described():
    names = set(SCALARS) - {"ansible_python_interpreter"}
    assert sorted(names - named("docs/inventory.md")) == []


def test_every_shared_flag_is_described():
    flags = {f"--{name.replace('_', '-')}" for name in SHARED} - {"--verbose"} | {"-v"}
    assert sorted(flags - named("docs/cli.md")) == []


def test_every_verb_is_described(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    verbs = importlib.import_module("tasks").namespace.task_names
    assert sorted(set(verbs) - named("docs/cli.md")) == []


def test_every_event_type_is_described():
    assert sorted(set(get_args(EventType)) - named("docs/cli.md")) == []


def test_tables_are_named_after_their_verbs():
    assert set(TABLES) - {"lab"} <= named("docs/cli.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []
