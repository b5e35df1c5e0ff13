"""What a lock file must look like before anything of it is read: in the words of people, for files that were cut, merged or edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sparkyard.loading.phrases import describe

Found = tuple[str, str]
"""A key, dotted, and what is wrong with it; no key for the whole file."""

ENTRIES: Mapping[str, tuple[str, ...]] = {
    "checkpoints": ("repo", "revision", "commit"),
    "git": ("url", "asked", "commit"),
    "images": ("reference", "digest"),
    "files": ("pristine", "patched"),
}
"""The parts of a lock, and the texts that each of their entries has."""


def not_json(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """The line (0: none), and what is wrong there, of a text that is no JSON."""
    if not text.strip():
        return 0, "is empty"
    if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in text.splitlines()):
        return error.lineno, "has the marks of a merge in it"
    if error.pos >= len(text.rstrip()):
        return error.lineno, "ends too early: the rest of it is missing"
    return error.lineno, f"is no JSON from column {error.colno} on"


def faults(body: Any) -> Iterator[Found]:
    """Everything that has not the shape of a lock. Values themselves are not judged here."""
    if not isinstance(body, dict):
        yield "", f"a mapping is expected, found {describe(body)}"
        return
    for key in ("version", "checkpoints"):
        if key not in body:
            yield key, "is missing"
    for part, texts in ENTRIES.items():
        yield from _part(part, body.get(part, {}), texts)


def _part(part: str, entries: Any, texts: tuple[str, ...]) -> Iterator[Found]:
    if not isinstance(entries, dict):
        yield part, f"a mapping is expected, found {describe(entries)}"
        return
    for name, entry in entries.items():
        key = f"{part}.{name}"
        if not isinstance(entry, dict):
            yield key, f"a mapping is expected, found {describe(entry)}"
            continue
        yield from _texts(key, entry, texts)
        if part == "checkpoints":
            yield from _files(f"{key}.files", entry.get("files"))
            yield from _more(key, entry)


def _more(key: str, entry: Mapping[str, Any]) -> Iterator[Found]:
    """What only some checkpoints have."""
    if "config" in entry and not isinstance(entry["config"], dict):
        yield f"{key}.config", f"a mapping is expected, found {describe(entry['config'])}"
    if not isinstance(entry.get("patterns", []), list):
        yield f"{key}.patterns", f"a list is expected, found {describe(entry['patterns'])}"


def _texts(key: str, entry: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Found]:
    for name in names:
        if name not in entry:
            yield f"{key}.{name}", "is missing"
        elif not isinstance(entry[name], str):
            yield f"{key}.{name}", f"text is expected, found {describe(entry[name])}"


def _files(key: str, files: Any) -> Iterator[Found]:
    if not isinstance(files, list):
        yield key, "is missing" if files is None else f"a list is expected, found {describe(files)}"
        return
    for number, file in enumerate(files):
        if not isinstance(file, dict):
            yield f"{key}.{number}", f"a mapping is expected, found {describe(file)}"
            continue
        yield from _texts(f"{key}.{number}", file, ("path",))
        if not isinstance(file.get("size"), int) or isinstance(file.get("size"), bool):
            found = describe(file["size"]) if "size" in file else "nothing"
            yield f"{key}.{number}.size", f"a whole number of bytes is expected, found {found}"
