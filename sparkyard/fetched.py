"""The texts that a lane edits: fetched from git once, kept below sparkyard's state folder on the head, never in a repository of ours."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sparkyard import git_words
from sparkyard.actions_image import GitFetch
from sparkyard.errors import CouldNotCheck
from sparkyard.line import Line
from sparkyard.lock import Lock, LockedFile
from sparkyard.mirrors import mirrored
from sparkyard.model import Lane
from sparkyard.patching import Patched, digest, patched
from sparkyard.pins import git_commit
from sparkyard.recipe import PatchSpec
from sparkyard.render_patches import known_hashes
from sparkyard.resolve import known_lock
from sparkyard.state import make_folder
from sparkyard.world import must


def texts(line: Line, lane: Lane) -> dict[str, Patched]:
    """Every edited text of the lane, fetched where it is not here yet; hashes that nobody knew are locked.

    Under ``--check`` nothing is fetched and nothing locked. Raises PatchRefused for a text that is not the locked one or on which an edit does not fit, StepFailed when git cannot give it.
    """
    lock = line.locked(lane)
    if line.options.check:
        return texts_here(line, lane)
    found: dict[str, Patched] = {}
    new: dict[str, LockedFile] = {}
    for name, spec in lane.recipe.patches.items():
        known = known_hashes(name, spec, lock)
        content = kept(line, lane, lock, name) or fetch(line, lane, lock, name)
        found[name] = patched(name, content, spec.edits, known, spec.md5)
        if known != found[name].known:
            new[name] = LockedFile(found[name].known.pristine, found[name].known.patched)
    if new:
        _lock(line, lane, new)
    return found


def texts_here(line: Line, lane: Lane) -> dict[str, Patched]:
    """The edited texts that were fetched before, without any network. Raises PatchRefused as ``texts`` does."""
    lock = known_lock(lane)
    found: dict[str, Patched] = {}
    for name, spec in lane.recipe.patches.items():
        pinned = git_commit(spec.git, lock.git.get(f"patches.{name}.git"))
        content = kept(line, lane, lock, name) if pinned else None
        if content is not None:
            found[name] = patched(name, content, spec.edits, known_hashes(name, spec, lock), spec.md5)
    return found


def place(line: Line, commit: str, spec: PatchSpec) -> Path:
    """Where a fetched text is kept: one folder a commit, named so that no path of a repository leads out of it."""
    return line.folders.state / "fetched" / commit / spec.file.replace("/", "--")


def kept(line: Line, lane: Lane, lock: Lock, name: str) -> bytes | None:
    """The fetched text, None when it was not fetched yet; one that is not the locked one is fetched again."""
    spec = lane.recipe.patches[name]
    path = place(line, _commit(lock, name, spec), spec)
    known = known_hashes(name, spec, lock)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return content if known.pristine in ("", digest(content)) else None


def fetch(line: Line, lane: Lane, lock: Lock, name: str) -> bytes:
    """The text at its pin, from the bare clone on the head. Raises StepFailed."""
    from sparkyard.executors import git  # noqa: PLC0415
    from sparkyard.resolving import Resolver  # noqa: PLC0415

    spec = lane.recipe.patches[name]
    commit = _commit(lock, name, spec)
    url, mirror = spec.git.url, mirrored(spec.git.url, lane.inventory.mirrors)
    folder = git_words.bare_folder(Resolver(lane, line.around, line.say).root, url)
    shell = line.around.shell(lane.head.name)
    git.bring(GitFetch(url, commit, folder, mirror), shell)
    done = must(shell, git_words.show(folder, commit, spec.file), f"reading {spec.file} of {url}@{commit}")
    _keep(place(line, commit, spec), done.out)
    return done.out


def _commit(lock: Lock, name: str, spec: PatchSpec) -> str:
    commit = git_commit(spec.git, lock.git.get(f"patches.{name}.git"))
    if not commit:
        raise CouldNotCheck(f"patch {name}: commit {spec.git.commit} is not locked", next_step="invoke lock")
    return commit


def _keep(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    Path(name).replace(path)


def _lock(line: Line, lane: Lane, new: dict[str, LockedFile]) -> None:
    from sparkyard.locking import keep  # noqa: PLC0415

    keep(lane, Lock(files=new))
    line.learnt(lane)
    for name, file in new.items():
        edited = f"pristine {file.pristine}, patched {file.patched}"
        line.say(f"patch {name}: locked, {file.pristine if file.pristine == file.patched else edited}")
