"""Where the inventory and the recipes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkyard.errors import UsageError
from sparkyard.loading.folder import HOSTS
from sparkyard.loading.phrases import did_you_mean, quoted

OWN = "my"
LAB = "/var/lib/sparkyard-lab"
"""Where a lab is unless SPARKYARD_LAB says otherwise; ``lab.up`` writes an inventory into it, ``lab.down`` removes it."""


def inventory_folder(given: str | None, project: Path, environ: Mapping[str, str]) -> Path:
    """The inventory's folder: a name below ``inventory/``, a path, ``inventory/my``, or that of the lab that is up.

    Raises UsageError.
    """
    asked = given or environ.get("SPARKYARD_INVENTORY") or ""
    if not asked:
        return _own(project, Path(environ.get("SPARKYARD_LAB") or LAB))
    place = "--inventory" if given else "SPARKYARD_INVENTORY"
    for folder in (project / "inventory" / asked, Path(asked).expanduser()):
        if folder.is_dir():
            return folder
        if folder.is_file() and folder.name in HOSTS:
            return folder.parent
    names = inventory_names(project)
    raise UsageError(
        f"{place}: there is no inventory {quoted(asked)}{did_you_mean(asked, names)}",
        details=[f"in inventory/: {', '.join(names) or 'none'}"],
        next_step="name one of these, or write your own: invoke init",
    )


def _own(project: Path, lab: Path) -> Path:
    """The person's own inventory; who has none yet and has a lab up means the lab."""
    for own in (project / "inventory" / OWN, lab / "inventory"):
        if own.is_dir():
            return own
    examples = ", ".join(name for name in inventory_names(project) if name != OWN)
    raise UsageError(
        f"no inventory: inventory/{OWN} is not there and --inventory was not given",
        details=[f"examples: {examples}"] if examples else [],
        next_step="invoke init, or to try it without a Spark: invoke lab.up",
    )


def inventory_names(project: Path) -> list[str]:
    """The inventories below the project."""
    return sorted({path.parent.name for name in HOSTS for path in (project / "inventory").glob(f"*/{name}")})


def recipe_folders(project: Path, extra: Sequence[Path], environ: Mapping[str, str]) -> list[Path]:
    """The folders of recipes: the project's, those of SPARKYARD_RECIPES (separated by colons), and ``extra``."""
    more = [Path(part).expanduser() for part in environ.get("SPARKYARD_RECIPES", "").split(":") if part]
    return [project / "recipes", *more, *extra]
