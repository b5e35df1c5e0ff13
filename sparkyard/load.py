"""YAML to model: inventories, recipes and lanes, with every fault at once and the origin of every value.

The public face of ``sparkyard.loading``. Reads files, and nothing else: no network, no environment but the one it is given.
Every function raises ConfigError with all faults it found, or UsageError for what cannot be found.
"""

# ruff: noqa: PLC0415  (pydantic and yaml are imported only when something is loaded)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkyard.errors import Fault
    from sparkyard.loading.explain import Row
    from sparkyard.loading.init import Ask
    from sparkyard.model import Inventory, Lane
    from sparkyard.recipe import Recipe


def find_inventory(name_or_path: str | None, project: Path, environ: Mapping[str, str]) -> Path:
    """The inventory's folder: a path, or a name below ``inventory/``; SPARKYARD_INVENTORY; else ``inventory/my``.

    Raises UsageError, which names what there is and says ``invoke init``.
    """
    from sparkyard.loading.finding import inventory_folder

    return inventory_folder(name_or_path, project, environ)


def load_inventory(folder: Path, *, environ: Mapping[str, str], sets: Sequence[str]) -> Inventory:
    """The inventory of a folder. Raises ConfigError with every fault in it."""
    from sparkyard.loading.inventory import draft_inventory
    from sparkyard.loading.marked import Faults

    faults = Faults()
    inventory = draft_inventory(folder, environ, sets, faults)
    faults.stop()
    return inventory


def find_recipes(
    project: Path, extra: Sequence[Path], environ: Mapping[str, str] | None = None
) -> Mapping[str, Path]:
    """Lane to the folder of its recipe: the project's recipes, SPARKYARD_RECIPES, and ``extra`` (``--recipes``).

    Raises ConfigError when two recipes have one lane, or a folder is not there.
    """
    from sparkyard.loading.finding import recipe_folders
    from sparkyard.loading.marked import Faults
    from sparkyard.loading.recipe_file import find_lanes

    faults = Faults()
    lanes = find_lanes(recipe_folders(project, extra, environ or {}), faults)
    faults.stop()
    return lanes


def load_recipe(folder: Path) -> Recipe:
    """The recipe of a folder. Raises ConfigError with every fault in it."""
    from sparkyard.loading.marked import Faults
    from sparkyard.loading.recipe_file import SoundRecipe, read_recipe

    faults = Faults()
    file = read_recipe(folder, faults)
    faults.stop()
    assert isinstance(file, SoundRecipe)
    return file.recipe


def recipe_lines(folder: Path) -> Mapping[str, int]:
    """The line of every dotted key (``services.engine.words.3``) of a sound recipe file."""
    from sparkyard.loading.recipe_file import lines_of

    return lines_of(folder)


def resolve_lane(
    inventory: Inventory,
    recipes: Mapping[str, Path],
    lane: str | None,
    *,
    environ: Mapping[str, str],
    sets: Sequence[str],
) -> Lane:
    """A lane of a sound inventory: as named, else SPARKYARD_LANE or INVOKE_LANE, else the inventory's default.

    Raises ConfigError with every fault of the recipe and the settings.
    """
    from sparkyard.loading.everything import lane_of_inventory
    from sparkyard.loading.marked import Faults

    faults = Faults()
    found = lane_of_inventory(inventory, recipes, lane, environ, sets, faults)
    faults.stop()
    assert found is not None
    return found


def load_all(
    folder: Path,
    recipes: Mapping[str, Path],
    lane: str | None,
    *,
    environ: Mapping[str, str],
    sets: Sequence[str],
) -> Lane:
    """Inventory, recipe and settings in one go. Raises one ConfigError with the faults of all three."""
    from sparkyard.errors import ConfigError

    found, faults = draft_all(folder, recipes, lane, environ=environ, sets=sets)
    if faults:
        raise ConfigError(faults)
    assert found is not None
    return found


def draft_all(
    folder: Path,
    recipes: Mapping[str, Path],
    lane: str | None,
    *,
    environ: Mapping[str, str],
    sets: Sequence[str],
) -> tuple[Lane | None, tuple[Fault, ...]]:
    """The lane with every fault of inventory, recipe and settings; None where the inventory or the recipe cannot be used at all."""
    from sparkyard.loading.everything import lane_of_inventory
    from sparkyard.loading.inventory import draft_inventory
    from sparkyard.loading.marked import Faults

    faults = Faults()
    inventory = draft_inventory(folder, environ, sets, faults)
    sound = not faults.found
    found = lane_of_inventory(inventory, recipes, lane, environ, sets, faults)
    return found if sound else None, tuple(faults.found)


def explain(what: Lane | Inventory) -> tuple[Row, ...]:
    """Every value with the place that set it, secrets masked: rows with owner, key, value and origin."""
    from sparkyard.loading.explain import explain as rows

    return rows(what)


def explain_json(what: Lane | Inventory) -> list[dict[str, Any]]:
    """The same as JSON objects."""
    from sparkyard.loading.explain import explain_json as objects

    return objects(what)


def init_inventory(folder: Path, given: Mapping[str, str], ask: Ask | None, *, replace: bool = False) -> Path:
    """Write a new ``hosts.yml`` into the folder from given answers, asked ones (``ask`` None: nobody to ask) and defaults.

    Names of answers: nodes (2 or 4), lane, ``spark-2.host``, ``.user``, ``.address``, ``.interface``, ``.hcas``.
    Raises UsageError for a wrong answer, or when an inventory is there and ``replace`` is False; nothing is written then.
    """
    from sparkyard.loading.init import gather
    from sparkyard.loading.init_file import refuse_present, write_inventory

    if not replace:
        refuse_present(folder)
    return write_inventory(folder, gather(given, ask), replace=replace)
