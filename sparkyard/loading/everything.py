"""Inventory, recipes and overrides together: every fault of all three before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkyard.loading.lane import check_lane_names, check_settings, choose_lane, resolve
from sparkyard.loading.marked import Faults
from sparkyard.loading.overrides import Overrides, read_overrides, refuse_unknown, variable_of
from sparkyard.loading.profiles import PROFILE
from sparkyard.loading.recipe_file import RecipeFile, SoundRecipe, read_recipe
from sparkyard.loading.variables import OVERRIDABLE
from sparkyard.model import Inventory, Lane
from sparkyard.stand_in import stand_in


def lane_of_inventory(
    inventory: Inventory,
    recipes: Mapping[str, Path],
    lane: str | None,
    environ: Mapping[str, str],
    sets: Sequence[str],
    faults: Faults,
) -> Lane | None:
    """The lane, or None when the recipe cannot be used; every fault is collected."""
    sound = not faults.found
    known = sorted(recipes)
    overrides = read_overrides(environ, sets, faults)
    check_lane_names(inventory.values, known, faults)
    name = choose_lane(inventory, known, lane, environ, faults)
    file = _read_chosen(recipes, name, faults)
    files = _read_others(inventory, recipes, name, file)
    for other, found in files.items():
        check_settings(inventory.values, other, found, faults)
    if name is None or file is None:
        return None
    _check_overrides(overrides, file, files, recipes, faults)
    if not isinstance(file, SoundRecipe):
        return None
    lane_found = resolve(inventory, name, file, overrides, faults, sound=sound)
    return stand_in(lane_found) if inventory.stand_in and not faults.found else lane_found


def _read_chosen(recipes: Mapping[str, Path], name: str | None, faults: Faults) -> RecipeFile | None:
    return read_recipe(recipes[name], faults) if name else None


def _read_others(
    inventory: Inventory, recipes: Mapping[str, Path], name: str | None, file: RecipeFile | None
) -> dict[str, RecipeFile]:
    """The recipes of all lanes that the inventory speaks of; the faults of others than the chosen one are theirs."""
    files = {name: file} if name and file else {}
    keys = (key for of_host in inventory.values.values() for key in of_host)
    named = {key.split(".")[1] for key in keys if key.startswith("lanes.")}
    for other in sorted(named & recipes.keys() - {name}):
        if found := read_recipe(recipes[other], Faults()):
            files[other] = found
    return files


def _check_overrides(
    overrides: Overrides,
    file: RecipeFile,
    files: Mapping[str, RecipeFile],
    recipes: Mapping[str, Path],
    faults: Faults,
) -> None:
    """Refuse overrides that nothing reads. Recipes are read for the settings of other lanes only when a name is strange."""
    own = [*file.names, *OVERRIDABLE, *([PROFILE] if file.profiles else [])]
    everywhere = {setting for found in files.values() for setting in found.names} | {*own, PROFILE}
    if any(name not in map(variable_of, everywhere) for name in overrides.environ):
        rest = (read_recipe(recipes[lane], Faults()) for lane in sorted(recipes.keys() - files.keys()))
        everywhere |= {setting for found in rest if found for setting in found.names}
    refuse_unknown(overrides, own, sorted(everywhere), faults)
