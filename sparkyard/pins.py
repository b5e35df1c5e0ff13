"""Resolves what a lane pins: from the person's lock, else the recipe's, else the hub, which is asked once and written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sparkyard.errors import StepFailed
from sparkyard.lock import Lock, Locked, read_lock, write_lock
from sparkyard.model import Lane, Manifest
from sparkyard.recipe import CheckpointSpec

RECIPE_LOCK = "recipe.lock.json"


def person_lock(lane: Lane) -> Path:
    """The lock beside the inventory; it wins over the recipe's."""
    return lane.inventory.folder / "locks" / f"{lane.name}.json"


def known_lock(lane: Lane) -> dict[str, Locked]:
    """What is locked of the lane's checkpoints and still is what the recipe asks for. Raises ConfigError for a damaged file."""
    recipe = read_lock(lane.recipe_folder / RECIPE_LOCK) or {}
    known = recipe | (read_lock(person_lock(lane)) or {})
    specs = lane.recipe.checkpoints
    return {name: locked for name, locked in known.items() if name in specs and is_of(locked, specs[name])}


def is_of(locked: Locked, spec: CheckpointSpec) -> bool:
    """Whether an entry was made for this repository, revision and these patterns."""
    same = (locked.manifest.repo, locked.revision) == (spec.repo, spec.revision)
    return same and locked.patterns == tuple(spec.files)


def known_manifests(lane: Lane) -> Mapping[str, Manifest]:
    """The manifests that are known without asking anybody."""
    return {name: locked.manifest for name, locked in known_lock(lane).items()}


def manifests(lane: Lane, *, write: bool, say: Callable[[str], None]) -> Mapping[str, Manifest]:
    """The manifest of every checkpoint, asking the hub for those that are not locked.

    ``write`` records what was found in the person's lock. Raises StepFailed with the hub's reason.
    """
    known = known_lock(lane)
    missing = {name: spec for name, spec in lane.recipe.checkpoints.items() if name not in known}
    if missing:
        found = _ask(lane, missing)
        for name, locked in found.items():
            manifest = locked.manifest
            say(f"{name}: {manifest.repo}@{locked.revision} is commit {manifest.commit}, {len(manifest.files)} files")
        known |= found
        if write:
            _write(lane, known)
    return {name: known[name].manifest for name in lane.recipe.checkpoints}


def _ask(lane: Lane, specs: Mapping[str, CheckpointSpec]) -> Lock:
    from sparkyard.hub import Hub  # noqa: PLC0415 - half a second

    hub = Hub(lane.inventory.hub_endpoint)
    return {
        name: Locked(spec.revision, hub.manifest(spec.repo, spec.revision, spec.files), tuple(spec.files))
        for name, spec in specs.items()
    }


def _write(lane: Lane, lock: Lock) -> None:
    path = person_lock(lane)
    try:
        write_lock(path, lock)
    except OSError as error:
        raise StepFailed(
            f"the lock {path} could not be written: {error.strerror}; nothing was downloaded",
            next_step=f"make {path.parent} writable for you",
        ) from error
