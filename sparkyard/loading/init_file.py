"""Writes a new inventory: loaded once before it gets its name, and never over another one unasked."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sparkyard.errors import UsageError
from sparkyard.loading.folder import HOSTS
from sparkyard.loading.init import hosts_text
from sparkyard.loading.inventory import draft_inventory
from sparkyard.loading.marked import Faults
from sparkyard.loading.yaml_file import shown


def write_inventory(folder: Path, answers: Mapping[str, str], *, replace: bool = False) -> Path:
    """Write ``hosts.yml`` into the folder and give its path.

    Raises UsageError when one is there and ``replace`` is False (nothing is changed then), ConfigError when the answers do not
    make a sound inventory.
    """
    target = folder / HOSTS[0]
    if not replace:
        refuse_present(folder)
    there = _present(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".init-", dir=folder) as trial:
        written = Path(trial) / HOSTS[0]
        written.write_text(hosts_text(answers), encoding="utf-8")
        _refuse_unsound(Path(trial), target)
        if there is not None:
            shutil.copy2(there, folder / f"{there.name}~")
            there.unlink()
        written.replace(target)
    return target


def _present(folder: Path) -> Path | None:
    return next((folder / name for name in HOSTS if (folder / name).exists()), None)


def refuse_present(folder: Path) -> None:
    """Raises UsageError when the folder has an inventory."""
    if there := _present(folder):
        raise UsageError(
            f"{shown(there)} is there already; nothing was written",
            next_step="edit it, or invoke init --force",
        )


def _refuse_unsound(trial: Path, target: Path) -> None:
    faults = Faults()
    draft_inventory(trial, {}, [], faults)
    named = Faults()
    for fault in faults.found:
        named.add(shown(target), fault.line, fault.key, fault.message)
    named.stop("answer again: invoke init")
