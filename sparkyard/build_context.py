"""What goes into an image that is built: every file of its context, its base and its arguments, as one hash.

Reads files; never writes. A link is hashed as a link, and one that points outside the context is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def entries(context: Path) -> Iterator[tuple[str, str, str]]:
    """(POSIX path, kind, sha256 or target) of everything in the context, in one order on every machine.

    The kind is ``x`` for executable files, ``f`` for others, ``d`` for folders, ``l`` for links.
    Raises ValueError for a link that points outside, OSError for what cannot be read.
    """
    for path in sorted(context.rglob("*"), key=lambda p: p.relative_to(context).as_posix()):
        name = path.relative_to(context).as_posix()
        if (
            "__pycache__" in path.parts
        ):  # left by whoever imported a program of the context, and rebuilt at will
            continue
        if path.is_symlink():
            if not path.resolve().is_relative_to(context.resolve()):
                raise ValueError(f"{name} is a link that points outside of the build context")
            yield name, "l", os.readlink(path)  # noqa: PTH115  the text itself, not a path made from it
        elif path.is_dir():
            yield name, "d", ""
        elif path.is_file():
            kind = "x" if os.access(path, os.X_OK) else "f"
            with path.open("rb") as stream:
                yield name, kind, hashlib.file_digest(stream, "sha256").hexdigest()


def build_hash(
    context: Path,
    dockerfile: Path,
    base: str,
    arguments: Mapping[str, str],
    commits: Mapping[str, str] | None = None,
) -> str:
    """The hash of everything that goes into the build: 64 hex digits. Raises as ``entries`` does.

    ``commits``: the git sources, by the name of their folder in the context.
    """
    text = hashlib.sha256(dockerfile.read_bytes()).hexdigest()
    parts: list[Any] = [text, base, sorted(arguments.items()), [list(entry) for entry in entries(context)]]
    if commits:
        parts.append(sorted(commits.items()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
