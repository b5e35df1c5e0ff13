"""An image that a project's own scripts make, rendered: where its clone lies, what is run there, what must come out. Pure."""

from __future__ import annotations

import hashlib
import json

from sparkyard import git_words
from sparkyard.lock import Lock
from sparkyard.mirrors import mirrored
from sparkyard.model import Lane
from sparkyard.pins import MADE, known_commit
from sparkyard.recipe import MadeSpec
from sparkyard.rendered import RenderedImage, RenderedMade, RenderedTree
from sparkyard.templating import Scope, Templates

KEY = "image.made"


def made_image(
    lane: Lane, name: str, spec: MadeSpec, lock: Lock, scope: Scope, templates: Templates
) -> RenderedImage:
    """The image; its tag is made of everything that goes into it, so that another commit or other steps make another image."""
    commit = known_commit(MADE, lane.recipe, lock.git)
    steps = tuple(
        tuple(templates.text(f"{KEY}.steps.{n}", word, scope) for word in words)
        for n, words in enumerate(spec.steps)
    )
    for number in (n for n, words in enumerate(steps) if not words):
        templates.fault(f"{KEY}.steps.{number}", "has no words")
    mark = _mark(commit, steps, spec.labels)
    root, own = lane.head.root, f"{name}-{mark[:12]}"
    folder = f"{root}/made/{own}"
    made = RenderedMade(
        reference=templates.text(f"{KEY}.reference", spec.reference, scope),
        steps=steps,
        labels=dict(spec.labels),
        folder=folder,
        record=f"{root}/made/{own}.json",
    )
    url = spec.git.url
    tree = RenderedTree(
        "made", url, commit,
        place=mirrored(url, lane.inventory.mirrors),
        clone=git_words.bare_folder(root, url),
        folder=folder,
    )  # fmt: skip
    return RenderedImage(
        name, f"sparkyard/{name}:{mark[:12]}", (), mark,
        memory=spec.memory,
        trees=(tree,),
        made=made,
        guard=lane.recipe.limits.guard,
    )  # fmt: skip


def _mark(commit: str, steps: tuple[tuple[str, ...], ...], labels: dict[str, str]) -> str:
    parts = [commit, [list(words) for words in steps], sorted(labels.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
