"""``recipes/<name>/recipe.yml`` to a Recipe, with the line of every key."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sparkyard.loading.marked import Faults, Marked
from sparkyard.loading.phrases import describe
from sparkyard.loading.recipe_checks import check_recipe
from sparkyard.loading.shape_faults import collect
from sparkyard.loading.yaml_file import is_odd, read_yaml, shown
from sparkyard.recipe import Recipe, Setting

RECIPE = "recipe.yml"


_LANE = re.compile(r"""^lane:[ \t]+(["']?)([A-Za-z][\w-]*)\1[ \t]*(?:\#.*)?$""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """A recipe file as far as it can be used.

    Attributes:
        root: every value with its line.
        settings: those that are sound; ``names`` are all.
    """

    root: Marked
    folder: Path
    settings: Mapping[str, Setting]

    @property
    def names(self) -> tuple[str, ...]:
        settings = self.root.fields.get("settings")
        return tuple(settings.fields) if settings else ()

    @property
    def profiles(self) -> tuple[str, ...]:
        """The names of its profiles."""
        profiles = self.root.fields.get("profiles")
        return tuple(profiles.fields) if profiles else ()


@dataclass(frozen=True, slots=True)
class SoundRecipe(RecipeFile):
    """A recipe file without faults."""

    recipe: Recipe


def read_recipe(folder: Path, faults: Faults) -> RecipeFile | None:
    """The recipe of a folder: a SoundRecipe, or what is left of it when it has faults, which are collected."""
    before = len(faults.found)
    root = _read_root(folder / RECIPE, faults)
    if root is None:
        return None
    recipe = _validated(root, faults)
    if recipe is not None:
        check_recipe(recipe, root, folder, faults)
    if recipe is None or len(faults.found) > before:
        return RecipeFile(root, folder, _sound_settings(root))
    return SoundRecipe(root, folder, recipe.settings, recipe)


def _read_root(path: Path, faults: Faults) -> Marked | None:
    before = len(faults.found)
    root = read_yaml(path, faults)
    if root is None and len(faults.found) == before:
        faults.add(shown(path), 0, "", "empty; a recipe starts with lane:")
    if root is not None and not isinstance(root.value, dict):
        faults.at(root, "", f"a mapping that starts with lane: is expected, found {describe(root.value)}")
        return None
    return root


def _validated(root: Marked, faults: Faults) -> Recipe | None:
    try:
        return Recipe.model_validate(root.plain())
    except ValidationError as error:
        collect([dict(part) for part in error.errors()], root, Recipe, faults)
        return None


def _sound_settings(root: Marked) -> dict[str, Setting]:
    """The settings of a recipe with faults elsewhere, so that the inventory can be checked against them all the same."""
    found: dict[str, Setting] = {}
    settings = root.fields.get("settings")
    for name, marked in settings.fields.items() if settings else ():
        with contextlib.suppress(ValidationError):
            found[name] = Setting.model_validate(marked.plain())
    return found


def find_lanes(folders: Sequence[Path], faults: Faults) -> dict[str, Path]:
    """Lane to recipe folder, over folders of recipes. Two recipes of one lane are a fault, and so is a folder that is not there."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            faults.add(shown(folder), 0, "", "there is no such folder of recipes")
            continue
        paths = sorted(folder.glob(f"*/{RECIPE}"))
        for path in paths:
            _add_lane(path, found, faults)
        if not paths:
            faults.add(
                shown(folder), 0, "", f"holds no recipe: */{RECIPE} is looked for in it{_above(folder)}"
            )
    return found


def _above(folder: Path) -> str:
    """What was probably meant, where the folder is a recipe itself."""
    return f"; did you mean --recipes={shown(folder.parent)}?" if (folder / RECIPE).is_file() else ""


def _add_lane(path: Path, found: dict[str, Path], faults: Faults) -> None:
    lane = lane_of(path)
    if lane is None:
        _add_nameless(path, faults)
    elif lane in found:
        if found[lane].resolve() != path.parent.resolve():
            first = shown(found[lane] / RECIPE)
            faults.add(shown(path), 0, "lane", f"{lane} is the lane of {first} too; rename one of them")
    else:
        found[lane] = path.parent


def _add_nameless(path: Path, faults: Faults) -> None:
    root = read_yaml(path, Faults())
    lane = root.fields.get("lane") if root else None
    if lane is None:
        faults.add(shown(path), 0, "lane", "missing")
    else:
        wanted = "letters, digits, _ and -, with a letter first"
        faults.at(lane, "lane", f"{wanted} is expected, found {describe(lane.value)}")


def lane_of(path: Path) -> str | None:
    """The lane that a recipe file names. A file that cannot be read goes by its folder's name, so that choosing it tells why."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if is_odd(path):
            return path.parent.name
        if found := _LANE.search(path.read_text(encoding="utf-8")):
            return found[2]
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
