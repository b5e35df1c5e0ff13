"""The pins of a lane beside its checkpoints: which there are, and which a lock answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkyard.lock import Lock, LockedGit, LockedImage
from sparkyard.manifest import COMMIT
from sparkyard.model import Lane
from sparkyard.recipe import GitSpec, Recipe

MADE = "image.made.git"
"""The key of the repository whose scripts make the image."""
BASE = "image.build.base"
"""The key of a build's base image in a lock."""
REGISTRY = re.compile(r"localhost|[^/]*[.:][^/]*")


def git_specs(recipe: Recipe) -> dict[str, GitSpec]:
    """Dotted key of the recipe → the git repository that is pinned there."""
    found: dict[str, GitSpec] = {}
    if recipe.image.build is not None:
        found |= {f"image.build.git.{name}": spec for name, spec in recipe.image.build.git.items()}
    if recipe.image.made is not None:
        found[MADE] = recipe.image.made.git
    if recipe.scripts is not None:
        found["scripts.git"] = recipe.scripts.git
    return found | {f"patches.{name}.git": patch.git for name, patch in recipe.patches.items()}


def git_commit(spec: GitSpec, locked: LockedGit | None) -> str:
    """The 40 hex digits: of the recipe, or of the lock if that was made for this pin; empty when nobody knows them yet."""
    if COMMIT.fullmatch(spec.commit):
        return spec.commit
    if locked is not None and (locked.url, locked.asked) == (spec.url, spec.commit):
        return locked.commit
    return ""


def known_commit(key: str, recipe: Recipe, git: Mapping[str, LockedGit]) -> str:
    """The commit of the repository at a dotted key, or a mark that says that it is not known yet."""
    spec = git_specs(recipe)[key]
    return git_commit(spec, git.get(key)) or f"<unlocked: {spec.commit}>"


def unlocked_pins(lane: Lane, lock: Lock) -> tuple[str, ...]:
    """Dotted keys of the git repositories whose commit is not known yet."""
    specs = git_specs(lane.recipe).items()
    return tuple(key for key, spec in specs if not git_commit(spec, lock.git.get(key)))


def has_registry(reference: str) -> bool:
    """Whether an image reference names its registry; one that does not is an image of this machine."""
    first, slash, _ = reference.partition("/")
    return bool(slash) and REGISTRY.fullmatch(first) is not None


def needs_digest(reference: str) -> bool:
    """Whether a lock must say what a reference is: it comes from a registry, by a tag, which can move."""
    return has_registry(reference) and "@" not in reference


def without_tag(reference: str) -> str:
    """``nvcr.io/nvidia/pytorch`` of ``nvcr.io/nvidia/pytorch:26.07-py3``."""
    path, slash, last = reference.rpartition("/")
    return path + slash + last.partition(":")[0]


def pinned_image(reference: str, locked: LockedImage | None) -> str:
    """``name@sha256:…`` where the lock knows the reference, else the reference as it is."""
    if not needs_digest(reference) or locked is None or locked.reference != reference:
        return reference
    return f"{without_tag(reference)}@{locked.digest}"
