"""What is locked for a lane, and what is not: the person's lock, then the recipe's, each only for the pin it was made for."""

from __future__ import annotations

import re
from pathlib import Path

from sparkyard.lock import Lock, Locked, read_lock
from sparkyard.manifest import COMMIT, wanted
from sparkyard.model import Lane, Manifest
from sparkyard.pins import git_commit, git_specs, needs_digest
from sparkyard.recipe import CheckpointSpec
from sparkyard.render_image import base_reference
from sparkyard.scopes import CONFIG

NAMES_CONFIG = re.compile(r"\.config\b|\['config'\]")
RECIPE_LOCK = "recipe.lock.json"


def own_lock_path(lane: Lane) -> Path:
    """The person's own lock of a lane; it wins over the recipe's."""
    return lane.inventory.folder / "locks" / f"{lane.name}.json"


def known_lock(lane: Lane) -> Lock:
    """Everything that is locked for the lane's pins as they are now, without any network.

    An entry that was made for another pin is left out. Raises ConfigError for a damaged lock.
    """
    own, shipped = (
        read_lock(own_lock_path(lane)) or Lock(),
        read_lock(lane.recipe_folder / RECIPE_LOCK) or Lock(),
    )
    return fitting(lane, own).over(fitting(lane, shipped))


def fitting(lane: Lane, lock: Lock) -> Lock:
    """The entries of a lock that were made for the lane's pins as they are now."""
    manifests = {name: from_lock(lock.checkpoints.get(name), spec) for name, spec in lane.checkpoints.items()}
    specs, references = git_specs(lane.recipe), image_references(lane)
    git = {
        key: lock.git[key]
        for key, spec in specs.items()
        if key in lock.git and git_commit(spec, lock.git[key])
    }
    return Lock(
        {name: Locked(lane.checkpoints[name].revision, found, tuple(lane.checkpoints[name].files))
         for name, found in manifests.items() if found is not None},
        {key: entry for key, entry in git.items() if entry.commit == git_commit(specs[key], entry)},
        {key: lock.images[key] for key, name in references.items() if key in lock.images and lock.images[key].reference == name},
        {name: entry for name, entry in lock.files.items() if name in lane.recipe.patches},
    )  # fmt: skip


def known_manifests(lane: Lane) -> dict[str, Manifest]:
    """The files of the checkpoints that are locked, without any network. Raises ConfigError for a damaged lock."""
    return known_lock(lane).manifests


def image_references(lane: Lane) -> dict[str, str]:
    """Dotted key → reference of each image whose tag only a registry can turn into a digest."""
    base = base_reference(lane)
    return {"image.build.base": base} if needs_digest(base) else {}


def gaps(lane: Lane, lock: Lock) -> tuple[str, ...]:
    """Dotted keys of what the lock does not answer and the recipe does not say in full."""
    asked = asks_config(lane)
    found = [
        f"checkpoints.{name}"
        for name in lane.checkpoints
        if name not in lock.checkpoints or (asked and lacks_config(lock.checkpoints[name].manifest))
    ]
    found += [key for key, spec in git_specs(lane.recipe).items() if not git_commit(spec, lock.git.get(key))]
    return (*found, *(key for key in image_references(lane) if key not in lock.images))


def asks_config(lane: Lane) -> bool:
    """Whether a template of the recipe may name the config of a checkpoint; older locks have none."""
    parts = {"services", "jobs", "files", "rules", "kept", "env", "settings", "published"}
    return NAMES_CONFIG.search(lane.recipe.model_dump_json(include=parts)) is not None


def lacks_config(manifest: Manifest) -> bool:
    """Whether a checkpoint has a config that its lock does not hold."""
    return manifest.config is None and any(file.path == CONFIG for file in manifest.files)


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
    return Manifest(spec.repo, locked.manifest.commit, files, locked.manifest.config)
