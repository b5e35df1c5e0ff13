"""Repositories of the local hub: folders, told as a git host would tell them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LFS_FROM = 10_000_000
LFS_ENDINGS = (".safetensors", ".gguf")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a repository. ``oid`` is git's blob id: of the content, or of the LFS pointer."""

    path: str
    file: Path
    size: int
    oid: str
    sha256: str
    lfs: bool

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def as_tree(self) -> dict[str, Any]:
        """As the tree listing tells it."""
        row: dict[str, Any] = {"type": "file", "path": self.path, "size": self.size, "oid": self.oid}
        if self.lfs:
            row["lfs"] = {
                "oid": self.sha256,
                "size": self.size,
                "pointerSize": len(pointer(self.sha256, self.size)),
            }
        return row


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository as its folder is now."""

    name: str
    commit: str
    entries: dict[str, Entry]

    def tree(self, below: str, *, recursive: bool) -> list[dict[str, Any]]:
        """Files (and folders) below a path."""
        prefix = f"{below}/" if below else ""
        inside = [entry for path, entry in self.entries.items() if path.startswith(prefix)]
        files = [entry for entry in inside if recursive or "/" not in entry.path[len(prefix) :]]
        parents = {
            str(parent) for entry in inside for parent in Path(entry.path).parents if str(parent) != "."
        }
        folders = [
            name
            for name in parents
            if name.startswith(prefix) and (recursive or "/" not in name[len(prefix) :])
        ]
        rows = [
            {"type": "directory", "path": name, "size": 0, "oid": sha1(name.encode())}
            for name in sorted(folders)
        ]
        return rows + [entry.as_tree() for entry in files]


def sha1(data: bytes) -> str:
    """Git's hash."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def blob_id(data: bytes) -> str:
    """Git's id of a file's content."""
    return sha1(b"blob %d\0" % len(data) + data)


def pointer(sha256: str, size: int) -> bytes:
    """The small file that git holds in place of a large one."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def commit_id(name: str, rows: Iterable[tuple[str, int, str]]) -> str:
    """The commit of a repository: a hash of its name and of the path, size and git id of every file, in the order of their paths."""
    lines = [f"{path}\0{size}\0{oid}" for path, size, oid in rows]
    return sha1("\n".join([name, *lines]).encode())


class Repositories:
    """All repositories below some folders, ``<folder>/<org>/<name>/…``; a changed folder is a new commit."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)
        self._lock = threading.Lock()
        self._hashes: dict[tuple[str, int, int, int], tuple[str, str]] = {}

    def snapshot(self, name: str) -> Snapshot | None:
        """The repository of that name, if there is one."""
        if name.count("/") != 1 or ".." in name:
            return None
        root = next((folder / name for folder in self.folders if (folder / name).is_dir()), None)
        if root is None:
            return None
        entries = {entry.path: entry for entry in self._entries(root)}
        rows = ((entry.path, entry.size, entry.oid) for entry in entries.values())
        return Snapshot(name, commit_id(name, rows), entries)

    def by_sha256(self, sha256: str) -> Entry | None:
        """Any large file with that content."""
        return next((entry for entry in self._all() if entry.lfs and entry.sha256 == sha256), None)

    def _all(self) -> Iterator[Entry]:
        for folder in self.folders:
            for root in folder.glob("*/*"):
                yield from self._entries(root)

    def _entries(self, root: Path) -> Iterator[Entry]:
        for file in sorted(root.rglob("*")):
            if file.is_file():
                yield self._entry(root, file)

    def _entry(self, root: Path, file: Path) -> Entry:
        seen = file.stat()
        lfs = seen.st_size >= LFS_FROM or file.name.endswith(LFS_ENDINGS)
        sha256, oid = self._hash(file, (str(file), seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns), lfs)
        return Entry(file.relative_to(root).as_posix(), file, seen.st_size, oid, sha256, lfs)

    def _hash(self, file: Path, key: tuple[str, int, int, int], lfs: bool) -> tuple[str, str]:
        """Each content is read once, by one thread."""
        with self._lock:
            if key not in self._hashes:
                if lfs:
                    with file.open("rb") as content:
                        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
                    self._hashes[key] = sha256, blob_id(pointer(sha256, key[1]))
                else:
                    data = file.read_bytes()
                    self._hashes[key] = hashlib.sha256(data).hexdigest(), blob_id(data)
            return self._hashes[key]


def as_info(snapshot: Snapshot) -> dict[str, Any]:
    """The answer to a question for a model."""
    return {
        "_id": snapshot.commit[:24],
        "id": snapshot.name,
        "modelId": snapshot.name,
        "author": snapshot.name.split("/", maxsplit=1)[0],
        "sha": snapshot.commit,
        "private": False,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "lastModified": "2026-11-01T00:00:00.000Z",
        "createdAt": "2026-11-01T00:00:00.000Z",
        "siblings": [{"rfilename": path} for path in snapshot.entries],
    }


def as_refs(snapshot: Snapshot) -> dict[str, Any]:
    """Its one branch."""
    main = {"name": "main", "ref": "refs/heads/main", "targetCommit": snapshot.commit}
    return {"branches": [main], "converts": [], "tags": []}


def as_commits(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Its one commit."""
    return [
        {
            "id": snapshot.commit,
            "title": "The lab's files",
            "message": "",
            "date": "2026-11-01T00:00:00.000Z",
            "authors": [],
        }
    ]


def to_json(value: Any) -> bytes:
    """An answer's body."""
    return json.dumps(value).encode()
