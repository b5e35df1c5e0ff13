"""Writing the lab's small files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def keep(path: Path, text: str, mode: int = 0o644) -> None:
    """Let a file say this; one that does is not touched.

    It is written in place, since a file that is bound into a node must keep its inode.
    """
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    part.write_text(text)
    part.rename(path)


@contextlib.contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A scratch folder beside a file that is being made. Its lock tells `sweep` that its maker lives."""
    scratch = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.rmtree(scratch, ignore_errors=True)
    held = _claimed(scratch)
    try:
        yield scratch
    finally:
        os.close(held)
        shutil.rmtree(scratch, ignore_errors=True)


def _claimed(scratch: Path) -> int:
    """Make a folder and hold its lock; the descriptor. Another process that sweeps may take the folder before it is locked."""
    while True:
        scratch.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            held = os.open(scratch, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            if same_file(scratch, held):
                return held
            os.close(held)


def same_file(path: Path, held: int) -> bool:
    """Whether a path still leads to what is open: it may have been deleted while we waited for its lock."""
    try:
        return os.path.samestat(path.stat(), os.fstat(held))
    except FileNotFoundError:
        return False


def sweep(folder: Path) -> None:
    """Delete the scratch folders of processes that were killed (a pid would not tell: it may be a zombie's, or another's)."""
    for scratch in _scratches(folder):
        try:
            held = os.open(scratch, os.O_RDONLY)
        except FileNotFoundError:  # its maker has finished since
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(
                scratch, ignore_errors=True
            )  # an orphan of theirs may still write: the next sweep has the rest
        except BlockingIOError:
            continue
        finally:
            os.close(held)


def _scratches(folder: Path) -> Iterator[Path]:
    """Scratch folders; what lies in one is its maker's, and comes and goes."""
    for place, names, _files in os.walk(folder):
        yield from (Path(place, name) for name in names if name.endswith(".part"))
        names[:] = [name for name in names if not name.endswith(".part")]
