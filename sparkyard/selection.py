"""``--limit`` and ``--only``: which nodes and which parts of a plan. Pure."""

from __future__ import annotations

import difflib
import fnmatch

from sparkyard.errors import UsageError
from sparkyard.model import Inventory

NOUNS = ("preflight", "checkpoint", "image", "file", "patch", "job", "service", "verify")


def chosen_nodes(inventory: Inventory, limit: str | None, flag: str = "--limit") -> tuple[str, ...]:
    """The nodes meant by ``--limit``: names, globs, groups and ``!`` of these, separated by commas; all without it.

    ``flag`` is what was typed, for errors.

    Raises UsageError for a word that means no node, and when nothing is left.
    """
    names = tuple(node.name for node in inventory.nodes)
    if not limit:
        return names
    words = [word.strip() for word in limit.split(",") if word.strip()]
    plus = [word for word in words if not word.startswith("!")]
    minus = [word[1:] for word in words if word.startswith("!")]
    kept = {name for word in plus for name in _meant(inventory, word, flag)} if plus else set(names)
    kept -= {name for word in minus for name in _meant(inventory, word, flag)}
    if not kept:
        raise UsageError(f"{flag}={limit} leaves no node", next_step=f"nodes are: {', '.join(names)}")
    return tuple(name for name in names if name in kept)


def _meant(inventory: Inventory, word: str, flag: str) -> tuple[str, ...]:
    names = tuple(node.name for node in inventory.nodes)
    if word in inventory.groups:
        return inventory.groups[word]
    found = tuple(name for name in names if fnmatch.fnmatchcase(name, word))
    if not found:
        known = (*names, *inventory.groups)
        near = difflib.get_close_matches(word, known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(
            f"{flag}: {word!r} is no node and no group{hint}", next_step=f"known: {', '.join(known)}"
        )
    return found


def chosen_nouns(only: str | None) -> tuple[str, ...]:
    """The nouns of ``--only``; empty for all. Raises UsageError for an unknown one."""
    words = tuple(word.strip() for word in (only or "").split(",") if word.strip())
    for word in words:
        if word not in NOUNS:
            near = difflib.get_close_matches(word, NOUNS, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(
                f"--only: {word!r} is not a part of a plan{hint}", next_step=f"parts are: {', '.join(NOUNS)}"
            )
    return words
