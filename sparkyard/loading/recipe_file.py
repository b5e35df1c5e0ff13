"""``recipes/<name>/recipe.yml`` to a Recipe, with the line of every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sparkyard.loading.marked import Faults, Marked
from sparkyard.loading.phrases import describe
from sparkyard.loading.recipe_checks import check_recipe
from sparkyard.loading.shape_faults import collect
from sparkyard.loading.yaml_file import read_yaml, shown
from sparkyard.recipe import Recipe

RECIPE = "recipe.yml"


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """A recipe with its places: ``root`` holds every value's line."""

    recipe: Recipe
    root: Marked
    folder: Path


def read_recipe(folder: Path, faults: Faults) -> RecipeFile | None:
    """The recipe of a folder; None when it has faults, which are collected."""
    path = folder / RECIPE
    before = len(faults.found)
    root = read_yaml(path, faults)
    if root is None:
        if len(faults.found) == before:
            faults.add(shown(path), 0, "", "empty; a recipe starts with lane:")
        return None
    if not isinstance(root.value, dict):
        faults.at(root, "", f"a mapping that starts with lane: is expected, found {describe(root.value)}")
        return None
    recipe = _validated(root, faults)
    if recipe is not None:
        check_recipe(recipe, root, folder, faults)
    return RecipeFile(recipe, root, folder) if recipe and len(faults.found) == before else None


def _validated(root: Marked, faults: Faults) -> Recipe | None:
    try:
        return Recipe.model_validate(root.plain())
    except ValidationError as error:
        collect([dict(part) for part in error.errors()], root, Recipe, faults)
        return None


def find_lanes(folders: Sequence[Path], faults: Faults) -> dict[str, Path]:
    """Lane to recipe folder, over folders of recipes. Two recipes of one lane are a fault, and so is a folder that is not there."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            faults.add(shown(folder), 0, "", "there is no such folder of recipes")
            continue
        for path in sorted(folder.glob(f"*/{RECIPE}")):
            _add_lane(path, found, faults)
    return found


def _add_lane(path: Path, found: dict[str, Path], faults: Faults) -> None:
    lane = lane_of(path)
    if lane is None:
        faults.add(shown(path), 0, "lane", "missing")
    elif lane in found:
        if found[lane].resolve() != path.parent.resolve():
            first = shown(found[lane] / RECIPE)
            faults.add(shown(path), 0, "lane", f"{lane} is the lane of {first} too; rename one of them")
    else:
        found[lane] = path.parent


def lane_of(path: Path) -> str | None:
    """The lane that a recipe file names. A file that cannot be read goes by its folder's name, so that choosing it tells why."""
    quiet = Faults()
    root = read_yaml(path, quiet)
    lane = root.fields.get("lane") if root else None
    if lane is not None and isinstance(lane.value, str):
        return lane.value
    return path.parent.name if quiet.found else None


def lines_of(folder: Path) -> Mapping[str, int]:
    """The line of every dotted key of a recipe file that is sound."""
    root = read_yaml(folder / RECIPE, Faults())
    found: dict[str, int] = {}
    waiting = [("", root)] if root else []
    while waiting:
        key, marked = waiting.pop()
        assert marked is not None
        found[key] = marked.line
        below = [*marked.fields.items(), *((str(i), item) for i, item in enumerate(marked.items))]
        waiting.extend((f"{key}.{name}" if key else name, item) for name, item in below)
    return found
