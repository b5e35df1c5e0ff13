"""Where the edited texts of a lane lie on its nodes, and what they hash to as far as that is known. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sparkyard import docker_words
from sparkyard.lock import Lock
from sparkyard.model import Lane
from sparkyard.patching import Known
from sparkyard.recipe import PatchSpec
from sparkyard.rendered import RenderedPatch
from sparkyard.templating import Scope, Templates
from sparkyard.unlocked import Unlocked

if TYPE_CHECKING:
    from sparkyard.render_rank import Rank


def known_hashes(name: str, spec: PatchSpec, lock: Lock) -> Known:
    """The sha256 of both states: what the recipe says, else what the lock says; empty where neither knows."""
    locked = lock.files.get(name)
    return Known(
        spec.pristine or (locked.pristine if locked else ""),
        spec.patched or (locked.patched if locked else ""),
    )


def patch_scope(lane: Lane, lock: Lock, rank: Rank, templates: Templates) -> Scope:
    """What templates may name of the edited texts of a rank; hashes that nobody knows yet are marks."""
    found: dict[str, Scope] = {}
    for name, spec in lane.recipe.patches.items():
        if rank.node in lane.choose(spec.nodes):
            known, key = known_hashes(name, spec, lock), f"patches.{name}"
            names = {
                "path": templates.text(f"{key}.path", spec.path, rank.scope),
                "pristine": known.pristine or Unlocked.of("pristine"),
                "patched": known.patched or Unlocked.of("patched"),
            }
            found[name] = Scope(key, names)
    return Scope("patches", found)


def patches(lane: Lane, lock: Lock, ranks: Sequence[Rank], templates: Templates) -> Iterator[RenderedPatch]:
    """One for each edited text and each node that has it; faults of their paths are collected."""
    for name, spec in lane.recipe.patches.items():
        known = known_hashes(name, spec, lock)
        for rank in ranks:
            if rank.node not in lane.choose(spec.nodes):
                continue
            key, node = f"patches.{name}.path", rank.node.name
            path = templates.text(key, spec.path, rank.scope)
            for message in docker_words.path_faults(path, "path") if path else ():
                templates.fault(key, message, node)
            for file in rank.files.values():
                if file.path == path:
                    templates.fault(key, f"is the path of files.{file.name} too: {path}", node)
            yield RenderedPatch(node, name, path, known.pristine, known.patched)
