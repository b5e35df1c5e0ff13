"""A scripts-driven lane rendered: its clone, the words run there, and the containers that they start. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from sparkyard.docker_words import MARK
from sparkyard.mirrors import mirrored
from sparkyard.model import Container, Lane
from sparkyard.recipe import ScriptsSpec
from sparkyard.render_rank import Rank
from sparkyard.rendered import RenderedImage, RenderedScripts
from sparkyard.scopes import lane_root
from sparkyard.templating import Templates

CLONE = "clone"
"""The clone's folder below the lane's own."""


class ScriptsRendering:
    """Renders the scripts of a lane; ``templates`` collects the faults. ``ranks`` are rendered but for their containers."""

    def __init__(self, lane: Lane, spec: ScriptsSpec, templates: Templates, ranks: Sequence[Rank]) -> None:
        self.lane, self.spec, self.templates, self.ranks = lane, spec, templates, ranks

    def run(self) -> RenderedScripts:
        """The clone and its words. A fault when the settings file is not rendered into the clone."""
        spec, head = self.spec, self.lane.head
        folder = f"{lane_root(self.lane, head)}/{CLONE}"
        wanted = f"{folder}/{spec.env_path}"
        file = self.ranks[0].files.get(spec.env_file)
        if file is None or file.path != wanted:
            where = file.path if file else "nowhere on the head"
            self.templates.fault(
                f"files.{spec.env_file}.path",
                f"the scripts read it as {wanted}, and it is rendered to {where}",
            )
        return RenderedScripts(
            source=spec.git.url,
            url=mirrored(spec.git.url, self.lane.inventory.mirrors),
            commit=spec.git.commit,
            folder=folder,
            env_file=spec.env_file,
            start=self._words("start", spec.start),
            stop=self._words("stop", spec.stop),
            workers=tuple(
                f"{node.user}@{node.link.address}" if node.user else node.link.address
                for node in self.lane.workers
            ),
            exceptions=tuple(spec.exceptions),
        )

    def _words(self, name: str, words: list[str]) -> tuple[str, ...]:
        scope = self.ranks[0].scope
        return tuple(self.templates.text(f"scripts.{name}.{n}", word, scope) for n, word in enumerate(words))

    def containers(self, scripts: RenderedScripts, image: RenderedImage) -> tuple[Container, ...]:
        """The containers that the scripts start, in rank order."""
        wanted = self._hash(scripts, image)
        return tuple(
            Container(rank.node.name, rank.number, one.name, one.name, image.reference, (), wanted)
            for rank in self.ranks
            for one in self.spec.containers
            if rank.node in self.lane.choose(one.nodes)
        )

    def _hash(self, scripts: RenderedScripts, image: RenderedImage) -> str:
        """Everything that a change of must start the kit anew for. Marks are not filled: discovered values do not count."""
        files = {file.path: file.content for rank in self.ranks for file in rank.files.values()}
        parts = [scripts.commit, scripts.start, image.mark or image.pulled, sorted(files.items())]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def used(texts: Sequence[str]) -> tuple[str, ...]:
    """The discovered values that the texts of a lane's files depend on, homes apart."""
    names = {name for text in texts for name in MARK.findall(text)}
    return tuple(sorted(name for name in names if name.partition("@")[0] != "home"))
