"""The lock of a lane: every pin of its checkpoints resolved to a commit and a list of files. Read and written here, resolved elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkyard.errors import ConfigError, Fault
from sparkyard.manifest import COMMIT, file_fault
from sparkyard.model import Manifest, RemoteFile

VERSION = 1


@dataclass(frozen=True, slots=True)
class Locked:
    """One checkpoint of a lock: the revision and patterns that were asked for, and what they are."""

    revision: str
    manifest: Manifest
    patterns: tuple[str, ...] = ()


Lock = Mapping[str, Locked]
"""Checkpoint name → what it was resolved to."""


def format_lock(lock: Lock) -> str:
    """The text of a lock file; the same lock always gives the same text."""
    body = {"version": VERSION, "checkpoints": {name: _entry(lock[name]) for name in sorted(lock)}}
    return json.dumps(body, indent=1, ensure_ascii=True) + "\n"


def _entry(locked: Locked) -> dict[str, Any]:
    manifest = locked.manifest
    return {
        "repo": manifest.repo,
        "revision": locked.revision,
        "commit": manifest.commit,
        **({"patterns": list(locked.patterns)} if locked.patterns else {}),
        "files": [_file_entry(file) for file in manifest.files],
    }


def _file_entry(file: RemoteFile) -> dict[str, Any]:
    kind = {"sha256": file.sha256} if file.sha256 else {"blob": file.blob}
    return {"path": file.path, "size": file.size, **kind}


def parse_lock(text: str, place: str) -> dict[str, Locked]:
    """The lock in ``text``; ``place`` names its file in faults. Raises ConfigError with every fault."""
    next_step = f"restore {place} from its last commit, or delete it to resolve the pins anew"
    try:
        body = json.loads(text)
        if body["version"] != VERSION:
            raise ConfigError(
                [Fault(place, 0, "version", f"is {body['version']!r}, this sparkyard reads {VERSION}")]
            )
        lock = {name: _parse_entry(entry) for name, entry in body["checkpoints"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            [Fault(place, 0, "", f"is not a lock file: {error!r}")], next_step=next_step
        ) from error
    faults = [
        Fault(place, 0, key, why) for name, locked in lock.items() for key, why in _faults(name, locked)
    ]
    if faults:
        raise ConfigError(faults, next_step=next_step)
    return lock


def _parse_entry(entry: Mapping[str, Any]) -> Locked:
    files = tuple(
        RemoteFile(str(f["path"]), int(f["size"]), str(f.get("sha256", "")), str(f.get("blob", "")))
        for f in entry["files"]
    )
    manifest = Manifest(str(entry["repo"]), str(entry["commit"]), files)
    return Locked(str(entry["revision"]), manifest, tuple(map(str, entry.get("patterns", ()))))


def _faults(name: str, locked: Locked) -> list[tuple[str, str]]:
    key = f"checkpoints.{name}"
    faults = [] if COMMIT.fullmatch(locked.manifest.commit) else [(f"{key}.commit", "is not a 40-hex commit")]
    wrong = [(file.path, file_fault(file)) for file in locked.manifest.files]
    return faults + [(f"{key}.files", f"{path!r} {fault}") for path, fault in wrong if fault]


def read_lock(path: Path) -> dict[str, Locked] | None:
    """The lock in a file, None when there is no file. Raises ConfigError for a damaged one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError([Fault(str(path), 0, "", f"is not a lock file: {error}")]) from error
    return parse_lock(text, str(path))


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock so that a reader sees the old file or the new one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(format_lock(lock))
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
