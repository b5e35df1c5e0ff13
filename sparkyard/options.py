"""The flags that belong to the whole line, whichever task they follow. Imported at every start: standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.errors import UsageError

UNLOCKED = ("status", "logs", "render", "config", "show", "lanes", "diff")
"""Verbs that only look: they take no lock and leave no record."""

STAY = ("config", "render", "show", "diff", "init", "lab_up", "lab_down", "lab_status", "lab_shell")
"""Tasks that are for the machine outside the lab, or need no node."""

HELP = {
    "lane": "=NAME: lane to work on (A, B, ..., lab); default: the inventory's, or what runs now",
    "inventory": "=FOLDER: with hosts.yml, or a name below inventory/; default: my",
    "recipes": "=FOLDER: further recipes; may be repeated",
    "limit": "=WHO: only these nodes: names, globs, groups, !not, with commas",
    "only": "=PARTS: of preflight,checkpoint,image,file,patch,job,service,verify",
    "set": "=KEY=VALUE: a setting for this line, over all files; may be repeated",
    "check": "ask and show what would be done; change nothing",
    "diff": "show what changes in files",
    "deep": "read every byte again instead of trusting the ledger",
    "yes": "answer yes to what would be destroyed or interrupted",
    "lock-wait": "=SECONDS: how long to wait for another sparkyard to end",
    "json": "one JSON object a line instead of words",
    "verbose": "more words; -vv shows output of commands",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Flags of a line, as typed. Lists may be given on several tasks and are joined."""

    lane: str | None = None
    inventory: str | None = None
    recipes: tuple[str, ...] = ()
    limit: str | None = None
    only: str | None = None
    set: tuple[str, ...] = ()
    check: bool = False
    diff: bool = False
    deep: bool = False
    yes: bool = False
    lock_wait: str | None = None
    json: bool = False
    verbose: int = 0


SHARED: Mapping[str, Any] = {
    "lane": None,
    "inventory": None,
    "recipes": (),
    "limit": None,
    "only": None,
    "set": (),
    "check": False,
    "diff": False,
    "deep": False,
    "yes": False,
    "lock_wait": None,
    "json": False,
    "verbose": 0,
}


def settle(given: Sequence[Mapping[str, Any]]) -> Options:
    """One set of options for the line from the flags of each of its tasks. Raises UsageError on a conflict."""
    return Options(**{name: _settle(name, default, given) for name, default in SHARED.items()})


def _settle(name: str, default: Any, given: Sequence[Mapping[str, Any]]) -> Any:
    values = [flags[name] for flags in given if flags.get(name)]
    if (default is None or default == ()) and any(not item.strip(" ,") for items in values for item in items):
        flag = name.replace(
            "_", "-"
        )  # as from --limit=$NODES with nothing in it, which must not mean all nodes
        raise UsageError(
            f"--{flag} was given without a value; nothing was run", next_step="invoke --help VERB"
        )
    if isinstance(default, tuple):
        return tuple(item for value in values for item in value)
    if name == "verbose":
        return max(values, default=0)
    if default is None:  # parsed as lists, so that a second value is seen here and not lost
        values = [item for value in values for item in value]
    different = list(dict.fromkeys(values))
    if len(different) > 1:
        flag = name.replace("_", "-")
        raise UsageError(
            f"--{flag} was given more than once: {' and '.join(map(str, different))}; nothing was run",
            next_step=f"type one line for each, or give --{flag} once",
        )
    return different[0] if different else default


def parse_wait(text: str | None) -> float:
    """``--lock-wait=SECONDS`` as a number; 0 when not given. Raises UsageError."""
    if text is None:
        return 0.0
    try:
        wait = float(text)
    except ValueError:
        wait = -1.0
    if not 0 <= wait <= 86400:
        raise UsageError(f"--lock-wait takes seconds from 0 to 86400, not {text!r}")
    return wait
