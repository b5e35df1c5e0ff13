"""Manifests of a lane's checkpoints: from its lock, else asked from the hub once and locked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sparkyard.errors import SparkyardError
from sparkyard.lock import Locked, read_lock, write_lock
from sparkyard.manifest import COMMIT, wanted
from sparkyard.model import Lane, Manifest
from sparkyard.patience import Wait
from sparkyard.recipe import CheckpointSpec

if TYPE_CHECKING:
    from sparkyard.hub import Hub

RECIPE_LOCK = "recipe.lock.json"


def own_lock_path(lane: Lane) -> Path:
    """The person's own lock of a lane; it wins over the recipe's."""
    return lane.inventory.folder / "locks" / f"{lane.name}.json"


def manifests_for(
    lane: Lane,
    *,
    write: bool = True,
    say: Callable[[str], None] = lambda line: None,
    wait: Wait | None = None,
) -> dict[str, Manifest]:
    """The files of every checkpoint of the lane, by name.

    A lock of the same repository, revision and patterns is used without any network. What it lacks is asked from the hub, and the
    answer is kept in ``<inventory>/locks/<lane>.json`` when ``write`` (not under ``--check``); each such answer is said.

    Raises ConfigError for a damaged lock, StepFailed (each cause in its own words) when the hub must be asked and cannot be.
    """
    own_path = own_lock_path(lane)
    own = read_lock(own_path) or {}
    result = known_manifests(lane)
    resolved: dict[str, Locked] = {}
    for name, spec in lane.checkpoints.items():
        if name not in result:
            found = _ask(lane, name, spec, own.get(name), say, wait)
            resolved[name] = Locked(spec.revision, found, tuple(spec.files))
            result[name] = found
    if resolved and write:
        write_lock(own_path, {**own, **resolved})
    return {name: result[name] for name in lane.checkpoints}


def known_manifests(lane: Lane) -> dict[str, Manifest]:
    """The files of the checkpoints that are locked, without any network. Raises ConfigError for a damaged lock."""
    own = read_lock(own_lock_path(lane)) or {}
    shipped = read_lock(lane.recipe_folder / RECIPE_LOCK) or {}
    specs = lane.checkpoints.items()
    found = {
        name: from_lock(own.get(name), spec) or from_lock(shipped.get(name), spec) for name, spec in specs
    }
    return {name: manifest for name, manifest in found.items() if manifest is not None}


def from_lock(locked: Locked | None, spec: CheckpointSpec) -> Manifest | None:
    """The wanted files that a lock has for a checkpoint; None when it has none or was made for another pin. Pure."""
    if locked is None or (locked.manifest.repo, locked.revision) != (spec.repo, spec.revision):
        return None
    if locked.patterns and locked.patterns != tuple(spec.files):
        return None
    if COMMIT.fullmatch(spec.revision) and locked.manifest.commit != spec.revision:
        return None
    named = f"{spec.repo}@{locked.manifest.commit[:12]}"
    files = locked.manifest.files if locked.patterns else wanted(locked.manifest.files, spec.files, named)
    return Manifest(spec.repo, locked.manifest.commit, files)


def _ask(
    lane: Lane,
    name: str,
    spec: CheckpointSpec,
    stale: Locked | None,
    say: Callable[[str], None],
    wait: Wait | None,
) -> Manifest:
    if stale is not None:
        say(
            f"checkpoint {name}: the lock is for {stale.manifest.repo}@{stale.revision}, the recipe says {spec.revision}"
        )
    try:
        manifest = _hub(lane, say, wait).manifest(spec.repo, spec.revision, spec.files)
    except SparkyardError as error:
        error.details = (
            *error.details,
            f"asked for checkpoint {name} of lane {lane.name}; it has no lock yet",
        )
        raise
    if not COMMIT.fullmatch(spec.revision):
        say(f"checkpoint {name}: {spec.repo}@{spec.revision} is commit {manifest.commit}")
    return manifest


def _hub(lane: Lane, say: Callable[[str], None], wait: Wait | None) -> Hub:
    from sparkyard.hub import Hub  # noqa: PLC0415 - 0.4 s that a locked lane does not pay

    return Hub(lane.inventory.hub_endpoint, say=say, wait=wait)
