"""How values and suggestions are worded in fault messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

_LONGEST = 48
_LONGEST_LIST = 60

_PLACEHOLDERS = re.compile(
    r"change[-_ ]?me|<[^>]*>|todo|fixme|your[-_][\w.-]+|(?=.*x)(?:x+|\d{1,3})(?:\.(?:x+|\d{1,3})){3}",
    re.IGNORECASE,
)


def describe(value: Any) -> str:
    """What a value is, for ``found …``."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return quoted(value)
    kind = "list" if isinstance(value, list) else "mapping"
    return f"a {kind}" if value else f"an empty {kind}"


def quoted(text: str) -> str:
    """The text in double quotes, on one line, cut when it is long."""
    line = text.encode("unicode_escape").decode() if not text.isprintable() else text
    shown = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return f'"{shown}"'


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that was probably meant, or nothing. Among equals the one with the same first letter."""
    names = {name.lower(): name for name in known}
    typed = word.lower()
    close = difflib.get_close_matches(typed, sorted(names), n=5, cutoff=cutoff)
    best = max(close, key=lambda name: _likeness(typed, name), default="")
    return names.get(best, "")


def _likeness(word: str, name: str) -> float:
    return difflib.SequenceMatcher(None, word, name).ratio() + (0.05 if word[:1] == name[:1] else 0)


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`` (did you mean X?)`` or nothing."""
    name = nearest(word, known, cutoff)
    return f" (did you mean {name}?)" if name else ""


def unknown(what: str, word: str, known: Sequence[str]) -> str:
    """``not a known key (did you mean port?)``, or with all that is known when nothing is near and the list is short."""
    hint = did_you_mean(word, known)
    names = ", ".join(known)
    if hint or not known or len(names) > _LONGEST_LIST:
        return f"not a known {what}{hint}"
    return f"not a known {what}; known: {names}"


def unknown_setting(word: str, known: Sequence[str]) -> str:
    """The same of a setting, of which a lane has too many to list; and of a profile where the recipe has none."""
    if word == "profile":
        return "not a known setting: this lane has no profiles"
    words = unknown("setting", word, known)
    return words if "(" in words or "known: " in words else f"{words} (invoke config lists those of the lane)"


def one_of(words: Iterable[Any]) -> str:
    """``a, b or c``."""
    names = [str(word) for word in words]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def expected(wanted: Sequence[Any], value: Any) -> str:
    """``a, b or c is expected, found d``; with more than two words and a near one, only that one."""
    hint = did_you_mean(value, [str(word) for word in wanted]) if isinstance(value, str) else ""
    if hint and len(wanted) > 2:
        return f"{describe(value)} is not known here{hint}"
    return f"{one_of(wanted)} is expected, found {describe(value)}{hint}"


def placeholder(value: Any) -> bool:
    """Whether a value was left as a template wrote it: CHANGEME, <your name>, x.x.x.x, TODO."""
    return isinstance(value, str) and _PLACEHOLDERS.fullmatch(value.strip()) is not None
