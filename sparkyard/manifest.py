"""Pure words about a checkpoint's files: which paths are safe, which files are wanted, where they lie on a node."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.errors import CouldNotCheck, StepFailed
from sparkyard.model import Manifest, Node, RemoteFile

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
INCOMING = ".incoming"
"""Folder inside a checkpoint's folder for files that are not yet proven. The only files there that are ours to delete."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one checkpoint lies on one node; paths may start with ``<discovered: home>``."""

    folder: str
    ledger: str
    seal: str

    @property
    def incoming(self) -> str:
        return f"{self.folder}/{INCOMING}"


def place(node: Node, manifest: Manifest) -> Place:
    """The folder, ledger and seal of a checkpoint on a node."""
    name = manifest.repo.replace("/", "--")
    return Place(
        folder=f"{node.models}/{name}/{manifest.commit}",
        ledger=f"{node.root}/ledger/{name}--{manifest.commit}.tsv",
        seal=f"{node.models}/{name}/{manifest.commit}.seal.json",
    )


def digest(file: RemoteFile) -> str:
    """What the content must hash to: ``sha256:HEX``, or ``blob:HEX`` (git blob id) for a small file without a sha256."""
    return f"sha256:{file.sha256}" if file.sha256 else f"blob:{file.blob}"


def is_content(file: RemoteFile, content: bytes) -> bool:
    """Whether these bytes are the file's."""
    if file.sha256:
        return hashlib.sha256(content).hexdigest() == file.sha256
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return blob.hexdigest() == file.blob


def path_fault(path: str) -> str:
    """Why a path from a listing must not be used, or nothing. Listings may come from strangers."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\\" in path:
        return "is not a relative POSIX path"
    if _CONTROL.search(path):
        return "has control characters in it"
    if any(part in {"", ".", ".."} for part in parts):
        return "has empty, `.` or `..` parts"
    if parts[0] == INCOMING:
        return f"starts with {INCOMING}, which is sparkyard's own"
    return ""


def file_fault(file: RemoteFile) -> str:
    """Why an entry of a listing or lock must not be used, or nothing."""
    if fault := path_fault(file.path):
        return fault
    if file.size < 0:
        return "has a negative size"
    known = SHA256.fullmatch(file.sha256) if file.sha256 else COMMIT.fullmatch(file.blob)
    return "" if known else "has neither a sha256 nor a git blob id"


def refuse_unsafe(files: Iterable[RemoteFile], of: str) -> None:
    """Raises StepFailed naming every entry that must not be used."""
    files = tuple(files)
    faults = [f"{file.path!r} {fault}" for file in files if (fault := file_fault(file))]
    paths = {file.path for file in files}
    faults += [
        f"{p!r} is a file and a folder" for p in sorted(paths) if any(q.startswith(f"{p}/") for q in paths)
    ]
    if len(paths) < len(files):
        faults.append("a path is listed twice")
    if faults:
        raise StepFailed(
            f"the listing of {of} has entries that must not be used; nothing was fetched",
            details=faults[:10],
            next_step="look at the repository's files on its page; pin another revision",
        )


def wanted(files: Iterable[RemoteFile], patterns: Sequence[str], of: str) -> tuple[RemoteFile, ...]:
    """The files that match any of the glob patterns, sorted by path.

    ``*`` also matches ``/``; a pattern that ends in ``/`` means all below it. Raises StepFailed for a pattern that no file matches.
    """
    files = tuple(files)
    globs = [f"{pattern}*" if pattern.endswith("/") else pattern for pattern in patterns]
    idle = [
        p
        for p, g in zip(patterns, globs, strict=True)
        if not any(fnmatch.fnmatchcase(f.path, g) for f in files)
    ]
    if idle or not globs:
        raise StepFailed(
            f"no file of {of} matches {', '.join(map(repr, idle)) or 'an empty list of patterns'}",
            details=[f"it has: {', '.join(sorted(f.path for f in files)[:8]) or 'no files at all'}"],
            next_step="correct `files` or `revision` of this checkpoint in the recipe",
        )
    chosen = [f for f in files if any(fnmatch.fnmatchcase(f.path, g) for g in globs)]
    return tuple(sorted(chosen, key=lambda file: file.path))


def seal_entries(text: str, manifest: Manifest) -> dict[str, str]:
    """Path → digest of what a seal says was verified; empty for no seal, a damaged one, or that of another commit."""
    try:
        seal = json.loads(text)
        entries = {str(path): str(value) for path, value in seal["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    same = (seal.get("version"), seal.get("repo"), seal.get("commit")) == (1, manifest.repo, manifest.commit)
    return entries if same else {}


def seal_text(manifest: Manifest, before: dict[str, str]) -> str:
    """The seal to write: what an earlier seal of the same commit said of files outside this manifest, and all of ours.

    Two lanes that want different files of one commit thus share one seal.
    """
    entries = {**before, **{file.path: digest(file) for file in manifest.files}}
    body: dict[str, Any] = {"version": 1, "repo": manifest.repo, "commit": manifest.commit}
    lines = "\n".join(f"{path}\t{entries[path]}" for path in sorted(entries))
    body["manifest"] = hashlib.sha256(lines.encode()).hexdigest()
    body["files"] = dict(sorted(entries.items()))
    return json.dumps(body, indent=1, ensure_ascii=True) + "\n"


def unanswered(node: str, what: str, why: str) -> CouldNotCheck:
    """The error for an answer that cannot be used."""
    return CouldNotCheck(
        f"could not check {what}: {why}",
        node=node,
        next_step="type the same line again with -vv; the node's answer was cut short or could not be given",
    )
