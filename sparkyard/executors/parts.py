"""Files on their way onto this machine's disk: written once, hashed as they arrive, given their names when proven."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sparkyard.errors import StepFailed
from sparkyard.manifest import INCOMING, digest
from sparkyard.model import RemoteFile
from sparkyard.ranges import PartMap, Range, count, gaps, joined
from sparkyard.reporting.amounts import size as in_words

PIECE = 1 << 20
LEAST_FLUSH, MOST_FLUSH = 64 * 1024, 16 * 1024 * 1024
"""Bytes between two savings of a map: a 512th of the file within these limits, so that a kill loses less than 1 %."""


def hasher(file: RemoteFile) -> Any:
    """A new hash for the content of a file: sha256, or git's blob hash."""
    if file.sha256:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)


class Folder:
    """A checkpoint's folder on this machine, where files are put; ``fs`` is its filesystem id for the ledger."""

    def __init__(self, folder: str, ledger: str, fs: str) -> None:
        self.path = Path(folder)
        self.incoming = self.path / INCOMING
        self._ledger = Path(ledger)
        self._fs = fs
        self._recording = threading.Lock()

    def settle(self, file: RemoteFile, origin: Path) -> None:
        """Give a proven file its name, lastingly, and note the proof. Raises OSError."""
        final = self.path / file.path
        final.parent.mkdir(parents=True, exist_ok=True)
        origin.replace(final)
        sync(final.parent)
        seen = final.lstat()
        key = (self._fs, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, digest(file))
        with self._recording:
            self._ledger.parent.mkdir(parents=True, exist_ok=True)
            with self._ledger.open("a", encoding="utf-8") as ledger:
                ledger.write("\t".join(map(str, key)) + "\n")

    def sweep(self, keep: Iterable[str]) -> int:
        """Remove what lies in ``.incoming`` and cannot be used again; how many files that were."""
        kept = {self.incoming / name for name in keep}
        removed = 0
        for path in sorted(self.incoming.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.rmdir()
            elif path not in kept:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def full(self, still: int) -> StepFailed:
        """The error for a disk that filled up on the way."""
        free = shutil.disk_usage(self.path).free
        return StepFailed(
            f"the disk of {self.path} is full: {in_words(free)} free, {in_words(still)} still to come",
            details=["what has arrived is kept and used by the next run"],
            next_step="free the space, then type the same line again",
        )


def sync(path: Path) -> None:
    """Bring a file or folder onto the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk (or the quota) is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def hash_file(path: Path, state: Any, start: int = 0, look: Callable[[], None] = lambda: None) -> str:
    """Add a file's bytes from ``start`` on to a hash; the hex digest. ``look`` may raise to end it."""
    piece = bytearray(PIECE)
    view = memoryview(piece)
    with path.open("rb", buffering=0) as stream:
        stream.seek(start)
        while amount := stream.readinto(piece):
            state.update(view[:amount])
            look()
    return str(state.hexdigest())


class Part:
    """``.incoming/<path>.part`` and its map ``….part.json``: a file that arrives in pieces, over any number of runs.

    Thread-safe. The map is saved after the bytes it tells of are written, so it is right after a kill; after a power cut it may not
    be, which the hash of the whole file then shows.
    """

    def __init__(self, folder: Folder, file: RemoteFile) -> None:
        self.file = file
        self.tries = 1
        self._folder = folder
        self.path = folder.incoming / f"{file.path}.part"
        self._map_path = self.path.with_name(f"{self.path.name}.json")
        self._flush_after = min(MOST_FLUSH, max(LEAST_FLUSH, file.size // 512))
        self._busy = threading.Lock()
        self._done: tuple[Range, ...] = ()
        self._handle = -1
        self._begin(self._saved())

    def _saved(self) -> tuple[Range, ...]:
        try:
            text = self._map_path.read_text(encoding="utf-8")
            there = self.path.stat().st_size
        except (OSError, UnicodeDecodeError):
            return ()
        done = PartMap.parse(text, self.file.size, digest(self.file)).done
        return done if not done or done[-1][1] <= there else ()

    def _begin(self, done: tuple[Range, ...]) -> None:
        self._done = done
        self._unsaved = 0
        self._front = 0
        self._hash = hasher(self.file)

    @property
    def there(self) -> int:
        """Bytes that need not be fetched."""
        return count(self._done)

    def missing(self) -> tuple[Range, ...]:
        return gaps(self._done, self.file.size)

    def write(self, at: int, data: bytes) -> None:
        """Write bytes to their place. Raises OSError."""
        with self._busy:
            if self._handle < 0:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            view = memoryview(data)
            written = 0
            while written < len(view):
                written += os.pwrite(self._handle, view[written:], at + written)
            self._note(at, data)

    def _note(self, at: int, data: bytes) -> None:
        if at == self._front:
            self._hash.update(data)
            self._front += len(data)
        self._done = joined((*self._done, (at, at + len(data))))
        self._unsaved += len(data)
        if self._unsaved >= self._flush_after:
            self._save()

    def _save(self) -> None:
        temporary = self._map_path.with_name(f"{self._map_path.name}.new")
        temporary.write_text(PartMap(self.file.size, digest(self.file), self._done).text(), encoding="utf-8")
        temporary.replace(self._map_path)
        self._unsaved = 0

    def close(self) -> None:
        """Save the map and close; the part stays for another run."""
        with self._busy:
            if self._handle < 0:
                return
            with contextlib.suppress(OSError):  # a full disk: the map saved before is still true
                self._save()
            os.close(self._handle)
            self._handle = -1

    def finish(self, look: Callable[[], None]) -> str:
        """Read what was not hashed on arrival; when right, settle the file. The digest that was seen."""
        if self.file.size == 0:
            self.write(0, b"")
        seen = hash_file(self.path, self._hash, self._front, look)
        if seen != (self.file.sha256 or self.file.blob):
            self.discard()
            return seen
        with self._busy:
            os.ftruncate(self._handle if self._handle >= 0 else self._reopen(), self.file.size)
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1
        self._folder.settle(self.file, self.path)
        self._map_path.unlink(missing_ok=True)
        return seen

    def _reopen(self) -> int:
        self._handle = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
        return self._handle

    def discard(self) -> None:
        """Throw away everything that has arrived."""
        with self._busy:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
            self._map_path.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
            self._begin(())
