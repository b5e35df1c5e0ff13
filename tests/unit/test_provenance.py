"""Every value of a recipe has exactly one source; taking any one away is a fault of the loader, with file, line and key."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkyard import provenance
from sparkyard.errors import ConfigError
from sparkyard.load import load_recipe
from sparkyard.recipe import Recipe
from tests.unit import sample

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted(path.parent for path in ROOT.glob("recipes/*/recipe.yml"))
CHOSEN = {"kind": "chosen", "why": "test"}


def tiny(**changes: Any) -> Recipe:
    return Recipe.model_validate(sample.recipe_data() | changes)


def sources(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The place of every source in a recipe's data: keys named ``source``, and the entries of ``sources``."""
    found: list[tuple[str | int, ...]] = []
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, item in entries:
        if path == ("sources",) or (key == "source" and "mounts" not in path):
            found.append((*path, key))
        else:
            found += sources(item, (*path, key))
    return found


def refused(data: Any) -> bool:
    """Whether the shape or the lint says that a source is missing."""
    try:
        return bool(provenance.lacks(Recipe.model_validate(data)))
    except ValueError as error:
        return "source" in str(error)


def every_source() -> list[Any]:
    return [
        pytest.param(folder, path, id=f"{folder.name}:{'.'.join(map(str, path))}")
        for folder in RECIPES
        for path in sources(yaml.safe_load((folder / "recipe.yml").read_text()))
    ]


@pytest.mark.parametrize(("folder", "path"), every_source())
def test_a_recipe_without_one_of_its_sources_is_refused(folder, path):
    data = copy.deepcopy(yaml.safe_load((folder / "recipe.yml").read_text()))
    where = data
    for key in path[:-1]:
        where = where[key]
    del where[path[-1]]
    assert refused(data)


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_every_value_has_one_source_and_no_pattern_is_for_everything(folder):
    recipe = load_recipe(folder)
    values = provenance.pinned(recipe)
    assert [value.key for value in values if value.source is None] == []
    assert len({value.key for value in values}) == len(values)
    assert "*" not in recipe.sources


def test_a_lack_is_a_fault_with_file_line_and_key(tmp_path):
    text = (ROOT / "recipes/lab/recipe.yml").read_text()
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each.startswith("order:"))
    folder = tmp_path / "recipes" / "lab"
    (folder / "engine").mkdir(parents=True)
    (folder / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    cut = "".join(each for each in text.splitlines(keepends=True) if not each.startswith("  order: {"))
    (folder / "recipe.yml").write_text(cut)
    with pytest.raises(ConfigError) as caught:
        load_recipe(folder)
    (fault,) = caught.value.faults
    assert (fault.line, fault.key) == (line, "order")
    assert fault.message == "no source: say in `sources` where it comes from"


def test_two_entries_for_one_value_and_entries_for_none_are_refused():
    recipe = tiny(sources={"*": CHOSEN, "order": CHOSEN, "services.gone.*": CHOSEN})
    assert [(lack.key, lack.message) for lack in provenance.lacks(recipe)] == [
        ("order", "two entries of sources fit: * and order"),
        ("sources.services.gone.*", "fits no value that needs a source"),
    ]


def test_an_entry_does_not_speak_for_values_that_have_their_own_source():
    keys = [lack.key for lack in provenance.lacks(tiny(sources={"*": CHOSEN, "settings.*": CHOSEN}))]
    assert keys == ["sources.settings.*"]


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("order", ["order"], ["orders", "an.order"]),
        ("services.*.words.*", ["services.a.words.--b", "services.a.b.words.0"], ["services.a.word.0"]),
        ("a.{b,c}", ["a.b", "a.c"], ["a.d", "a.b,c"]),
        ("a.{--b, c.d}.*", ["a.--b.x", "a.c.d.x"], ["a.cxd.x"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_patterns(pattern, fits, misses):
    match = provenance.matcher(pattern)
    assert all(match.fullmatch(text) for text in fits)
    assert not any(match.fullmatch(text) for text in misses)


def test_words_are_keyed_by_their_flags():
    data = sample.recipe_data()
    engine = data["services"]["engine"]
    engine["options"] = [
        "--init",
        "--ulimit",
        "memlock=-1:-1",
        "--ulimit",
        "stack=1",
        "--device=/dev/x",
        "-d",
    ]
    engine["words"] = [
        "serve",
        "/model",
        "{% if rank == 0 %}--port{% endif %}",
        "{% if rank == 0 %}1{% endif %}",
        "end",
    ]
    found = {
        value.key.removeprefix("services.engine."): (value.value, value.path[-1])
        for value in provenance.pinned(Recipe.model_validate(data))
        if value.key.startswith(("services.engine.options", "services.engine.words"))
    }
    assert found == {
        "options.--init": ("--init", 0),
        "options.--ulimit.memlock": ("--ulimit memlock=-1:-1", 1),
        "options.--ulimit.stack": ("--ulimit stack=1", 3),
        "options.--device": ("--device=/dev/x", 5),
        "options.-d": ("-d", 6),
        "words.0": ("serve", 0),
        "words.1": ("/model", 1),
        "words.--port": ("{% if rank == 0 %}--port{% endif %} {% if rank == 0 %}1{% endif %}", 2),
        "words.4": ("end", 4),
    }


def test_every_part_of_a_recipe_is_asked_for():
    keys = {value.key for value in provenance.pinned(tiny())}
    assert keys >= {
        "nodes",
        "settings.port",
        "checkpoints.model",
        "image",
        "image.build.args.STREAMS",
        "image.build.memory",
        "env.NCCL_IB_HCA",
        "files.engine.values.CONTEXT",
        "files.profile",
        "services.engine.env.RANK",
        "services.engine.mounts./cache",
        "services.engine.gate",
        "order",
        "ports.API",
        "ready.timeout",
        "stop.grace",
        "limits.memory",
        "verify.1",
    }


def test_a_secret_default_is_not_shown():
    values = {value.key: value.value for value in provenance.pinned(tiny())}
    assert values["settings.api_key"] == "secret"
