"""Writing the lab's small files."""

from __future__ import annotations

import os
from pathlib import Path


def keep(path: Path, text: str, mode: int = 0o644) -> None:
    """Let a file say this; one that does is not touched.

    It is written in place, since a file that is bound into a node must keep its inode.
    """
    try:
        if path.read_text() == text:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode)
    path.write_text(text)
    path.chmod(mode)


def replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    part.write_text(text)
    part.rename(path)
