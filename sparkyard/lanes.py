"""A lane of the line's inventory, with the secrets that are made once in place of those that nobody set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sparkyard import load
from sparkyard.errors import ConfigError, Fault
from sparkyard.generated import with_secrets
from sparkyard.line import Line
from sparkyard.model import Lane
from sparkyard.options import STAY
from sparkyard.refusals import besides

STARTS = ("build", "start", "restart", "switch", "revert")
"""Verbs that may make a lane's generated secrets."""


def drafted(line: Line, name: str | None, sets: Sequence[str]) -> tuple[Lane | None, tuple[Fault, ...]]:
    """The lane with every fault of inventory, recipe and settings; None where there is nothing to make it of."""
    extra = [Path(folder) for folder in line.options.recipes]
    recipes = load.find_recipes(line.project, extra, os.environ)
    return load.draft_all(line.folder, recipes, name, environ=os.environ, sets=sets)


def lane_named(line: Line, name: str | None, sets: Sequence[str]) -> Lane:
    """The lane. Raises ConfigError with every fault of inventory, recipe and settings, and with what it would be refused for besides."""
    lane, faults = drafted(line, name, sets)
    if faults or lane is None:
        raise ConfigError([*faults, *(besides(lane, faults) if lane is not None else ())])
    read = any(verb not in STAY for verb in line.verbs)
    starts = any(verb in STARTS for verb in line.verbs)
    return with_secrets(lane, read=read, make=starts and not line.options.check, judge=starts)
