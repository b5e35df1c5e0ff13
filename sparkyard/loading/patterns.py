"""Regular expressions of a recipe: each must compile."""

from __future__ import annotations

import re
from collections.abc import Callable


def check_pattern(key: str, pattern: str, say: Callable[[str, str], None]) -> None:
    """Say what is wrong with a pattern, and where in it."""
    try:
        re.compile(pattern)
    except re.error as error:
        say(key, f"not a pattern: {error.msg} (at {error.pos})")


def fits(pattern: str, text: str) -> bool:
    """Whether the whole text matches. A pattern that does not compile is told where it stands, and asks nothing of a text."""
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return True
