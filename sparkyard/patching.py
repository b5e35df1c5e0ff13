"""Edits of a text that belongs to somebody else: it is pristine, patched, or neither. Pure.

The text is never kept with sparkyard: it is fetched at a pin, and known by the sha256 of both states.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Known",
    "PatchRefused",
    "Patched",
    "Standing",
    "difference",
    "digest",
    "edited",
    "patched",
    "standing",
]

from sparkyard import python_edit
from sparkyard.errors import PatchRefused
from sparkyard.recipe import EditSpec

Standing = Literal["pristine", "patched", "neither"]
DIFF_LINES = 60
"""Lines of a difference that are shown; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Known:
    """The sha256 of both states, as far as recipe or lock know them; empty where they do not."""

    pristine: str = ""
    patched: str = ""


@dataclass(frozen=True, slots=True)
class Patched:
    """A text in both states, and what they hash to."""

    name: str
    pristine: bytes = field(repr=False)
    patched: bytes = field(repr=False)
    known: Known


def digest(content: bytes) -> str:
    """The sha256 as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def standing(sha256: str, known: Known) -> Standing:
    """Which state a text of this hash is in."""
    if sha256 and sha256 == known.patched:
        return "patched"
    return "pristine" if sha256 and sha256 == known.pristine else "neither"


def edited(text: str, edits: Sequence[EditSpec], name: str) -> str:
    """The text with all edits made, in order. Raises PatchRefused for the first one that does not fit."""
    for number, edit in enumerate(edits, 1):
        try:
            text = python_edit.added(text, edit.python) if edit.python else _replaced(text, edit)
        except PatchRefused as refused:
            raise PatchRefused(
                f"patch {name}: edit {number} of {len(edits)} does not fit: {refused.message}",
                details=[f"the edit is for: {edit.why}", *refused.details],
                next_step="the text is not the one that the recipe was made for: compare the recipe's git pin",
            ) from refused
    return text


def _replaced(text: str, edit: EditSpec) -> str:
    seen = text.count(edit.find)
    if seen != edit.count:
        raise PatchRefused(
            f"its text stands there {_times(seen)}, expected {_times(edit.count)}",
            details=[f"find: {line}" for line in edit.find.splitlines()],
        )
    return text.replace(edit.find, edit.replace)


def _times(count: int) -> str:
    return "once" if count == 1 else "not at all" if count == 0 else f"{count} times"


def patched(name: str, fetched: bytes, edits: Sequence[EditSpec], known: Known, md5: str = "") -> Patched:
    """Both states of a fetched text, which must be what is known of them; without edits both are the same, whatever bytes they are.

    ``md5``: what somebody published of the pristine text, the whole md5 or its first digits. Raises PatchRefused when the text
    hashes to something else, when an edit does not fit, or when the edits make another text than the known one.
    """
    _as_published(name, fetched, md5)
    got = digest(fetched)
    if known.pristine and got != known.pristine:
        raise PatchRefused(
            f"patch {name}: the fetched text is not the locked one: sha256 {got}, expected {known.pristine}",
            next_step="its commit cannot have changed: look at mirrors: in the inventory, or remove the lock's entry",
        )
    made = edited(_text(name, fetched), edits, name).encode() if edits else fetched
    if known.patched and digest(made) != known.patched:
        raise PatchRefused(
            f"patch {name}: the edits make another text than the locked one: sha256 {digest(made)}, "
            f"expected {known.patched}",
            next_step="if the recipe's edits were changed on purpose: invoke lock --refresh",
        )
    return Patched(name, fetched, made, Known(got, digest(made)))


def _as_published(name: str, fetched: bytes, md5: str) -> None:
    got = hashlib.md5(fetched, usedforsecurity=False).hexdigest()
    if not got.startswith(md5):
        raise PatchRefused(
            f"patch {name}: the fetched text is not the published one: md5 {got[: len(md5)]}, expected {md5}",
            details=[f"its md5 in full: {got}", f"its sha256: {digest(fetched)}"],
            next_step="compare the recipe's git pin and file with what was published",
        )


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PatchRefused(f"patch {name}: the fetched text is not UTF-8: {error}") from error


def difference(before: bytes, after: bytes, path: str, lines: int | None = DIFF_LINES) -> tuple[str, ...]:
    """A unified diff of two texts, without line ends, cut to ``lines``; what is not UTF-8 is shown as far as it can be read."""
    old, new = (part.decode(errors="replace").splitlines() for part in (before, after))
    found = list(difflib.unified_diff(old, new, f"{path} (expected)", f"{path} (found)", n=2, lineterm=""))
    if not found and before != after:
        found = ["they differ in line ends or in the end of the last line"]
    left = len(found) - lines if lines else 0
    return (*found[:lines], *((f"… {left} more lines",) if left > 0 else ()))
