"""The lock of a lane: every pin resolved, to commits, digests and lists of files. Read and written here, resolved elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sparkyard import lock_shape
from sparkyard.errors import ConfigError, Fault
from sparkyard.manifest import COMMIT, SHA256, file_fault
from sparkyard.model import Manifest, RemoteFile

VERSION = 3
READABLE = (1, 2, 3)
"""Version 1 knew checkpoints alone, version 2 no ``config`` of a checkpoint."""
Entry = TypeVar("Entry")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Locked:
    """One checkpoint of a lock: the revision and patterns that were asked for, and what they are."""

    revision: str
    manifest: Manifest
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedGit:
    """A git repository: its URL as the recipe names it, the commit that was asked for, and all 40 hex digits of it."""

    url: str
    asked: str
    commit: str


@dataclass(frozen=True, slots=True)
class LockedImage:
    """An image: its reference as the recipe names it, and the digest (``sha256:`` and 64 hex digits) that it had."""

    reference: str
    digest: str


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A text that is fetched and edited: the sha256 of both states."""

    pristine: str
    patched: str


@dataclass(frozen=True, slots=True)
class Lock:
    """Everything that is locked for a lane.

    ``checkpoints`` and ``files`` (patches) go by name, ``git`` and ``images`` by the dotted key of the recipe
    (``image.build.git.tensorfold``, ``image.build.base``).
    """

    checkpoints: Mapping[str, Locked] = field(default_factory=dict)
    git: Mapping[str, LockedGit] = field(default_factory=dict)
    images: Mapping[str, LockedImage] = field(default_factory=dict)
    files: Mapping[str, LockedFile] = field(default_factory=dict)

    @property
    def manifests(self) -> dict[str, Manifest]:
        """The files of each checkpoint, by its name."""
        return {name: locked.manifest for name, locked in self.checkpoints.items()}

    def over(self, under: Lock) -> Lock:
        """This lock, with what it lacks from another one."""
        return Lock(
            {**under.checkpoints, **self.checkpoints},
            {**under.git, **self.git},
            {**under.images, **self.images},
            {**under.files, **self.files},
        )


def format_lock(lock: Lock) -> str:
    """The text of a lock file; the same lock always gives the same text."""
    body: dict[str, Any] = {"version": VERSION}
    body["checkpoints"] = {name: _entry(lock.checkpoints[name]) for name in sorted(lock.checkpoints)}
    for part in ("git", "images", "files"):
        entries = getattr(lock, part)
        if entries:
            body[part] = {key: asdict(entries[key]) for key in sorted(entries)}
    return json.dumps(body, indent=1, ensure_ascii=True) + "\n"


def _entry(locked: Locked) -> dict[str, Any]:
    manifest = locked.manifest
    return {
        "repo": manifest.repo,
        "revision": locked.revision,
        "commit": manifest.commit,
        **({"patterns": list(locked.patterns)} if locked.patterns else {}),
        "files": [_file_entry(file) for file in manifest.files],
        **({"config": manifest.config} if manifest.config is not None else {}),
    }


def _file_entry(file: RemoteFile) -> dict[str, Any]:
    kind = {"sha256": file.sha256} if file.sha256 else {"blob": file.blob}
    return {"path": file.path, "size": file.size, **kind}


def parse_lock(text: str, place: str) -> Lock:
    """The lock in ``text``; ``place`` names its file in faults. Raises ConfigError with every fault."""
    next_step = f"restore {place} from its last commit, or delete it to resolve the pins anew"
    body = _body(text, place, next_step)
    if body["version"] not in READABLE:
        words = f"is {body['version']!r}, this sparkyard reads {' and '.join(map(str, READABLE))}"
        raise ConfigError([Fault(place, 0, "version", words)])
    lock = _parse(body)
    faults = [Fault(place, 0, key, why) for key, why in _faults(lock)]
    if faults:
        raise ConfigError(faults, next_step=next_step)
    return lock


def _body(text: str, place: str, next_step: str) -> Mapping[str, Any]:
    """The content of a lock file, with the shape of one. Raises ConfigError with every fault."""
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        line, why = lock_shape.not_json(text, error)
        raise ConfigError([Fault(place, line, "", why)], next_step=next_step) from error
    except RecursionError as error:
        raise ConfigError(
            [Fault(place, 0, "", "is nested too deep for a lock")], next_step=next_step
        ) from error
    found = [Fault(place, 0, key, why) for key, why in lock_shape.faults(body)]
    if found:
        raise ConfigError(found, next_step=next_step)
    shaped: Mapping[str, Any] = body
    return shaped


def _parse(body: Mapping[str, Any]) -> Lock:
    def part(name: str, kind: Callable[..., Entry], *keys: str) -> dict[str, Entry]:
        entries = body.get(name, {}).items()
        return {str(key): kind(*(str(entry[field]) for field in keys)) for key, entry in entries}

    return Lock(
        {name: _parse_entry(entry) for name, entry in body["checkpoints"].items()},
        part("git", LockedGit, "url", "asked", "commit"),
        part("images", LockedImage, "reference", "digest"),
        part("files", LockedFile, "pristine", "patched"),
    )


def _parse_entry(entry: Mapping[str, Any]) -> Locked:
    files = tuple(
        RemoteFile(str(f["path"]), int(f["size"]), str(f.get("sha256", "")), str(f.get("blob", "")))
        for f in entry["files"]
    )
    config = dict(entry["config"]) if "config" in entry else None
    manifest = Manifest(str(entry["repo"]), str(entry["commit"]), files, config)
    return Locked(str(entry["revision"]), manifest, tuple(map(str, entry.get("patterns", ()))))


def _faults(lock: Lock) -> Iterator[tuple[str, str]]:
    """(key, what is wrong with it) of everything that must not be used."""
    for name, locked in lock.checkpoints.items():
        yield from _checkpoint_faults(name, locked.manifest)
    for key, git in lock.git.items():
        if not (COMMIT.fullmatch(git.commit) and git.commit.startswith(git.asked)):
            yield f"git.{key}.commit", f"is not a 40-hex commit that begins with {git.asked!r}"
    for key, image in lock.images.items():
        if not DIGEST.fullmatch(image.digest):
            yield f"images.{key}.digest", "is not sha256: and 64 hex digits"
    for name, text in lock.files.items():
        if not (SHA256.fullmatch(text.pristine) and SHA256.fullmatch(text.patched)):
            yield f"files.{name}", "is not two sha256 of 64 hex digits"


def _checkpoint_faults(name: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    if not COMMIT.fullmatch(manifest.commit):
        yield f"checkpoints.{name}.commit", "is not a 40-hex commit"
    for file in manifest.files:
        if fault := file_fault(file):
            yield f"checkpoints.{name}.files", f"{file.path!r} {fault}"


def read_lock(path: Path) -> Lock | None:
    """The lock in a file, None when there is no file. Raises ConfigError for a damaged one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        words = f"is no text: byte {error.start} is not UTF-8"
        raise ConfigError(
            [Fault(str(path), 0, "", words)],
            next_step=f"restore {path} from its last commit, or delete it to resolve the pins anew",
        ) from error
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
