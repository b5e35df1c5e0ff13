"""The engine image of a lane rendered: pulled by digest, made by scripts, or built from a base, a context and git sources. Reads the context; runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sparkyard import docker_words, git_words
from sparkyard.build_context import build_hash
from sparkyard.lock import Lock
from sparkyard.mirrors import mirrored
from sparkyard.model import Lane
from sparkyard.pins import BASE, has_registry, known_commit, pinned_image
from sparkyard.recipe import BuildSpec, PullSpec
from sparkyard.render_made import made_image
from sparkyard.rendered import RenderedImage, RenderedTree
from sparkyard.scopes import rank_scope
from sparkyard.templating import Scope, Templates

KEY = "image.build"
Visible = Callable[[str, tuple[str, ...], Scope], None]
"""Makes a fault of a word that holds a secret."""


def base_reference(lane: Lane) -> str:
    """The base image of a build as the recipe names it for these settings; empty for lanes that build none."""
    build = lane.recipe.image.build
    if build is None:
        return ""
    templates = Templates(str(lane.recipe_folder), (), lambda _key: 0)
    return templates.text(BASE, build.base, rank_scope(lane, lane.head, {}, ""))


class ImageRendering:
    """Renders the image of one lane; ``templates`` collects the faults."""

    def __init__(self, lane: Lane, lock: Lock, scope: Scope, templates: Templates, visible: Visible) -> None:
        self.lane, self.lock, self.scope, self.templates, self.visible = lane, lock, scope, templates, visible
        self.mirrors = lane.inventory.mirrors

    def image(self) -> RenderedImage:
        spec = self.lane.recipe.image
        if spec.made is not None:
            return made_image(self.lane, spec.name, spec.made, self.lock, self.scope, self.templates)
        if spec.build is None:
            assert spec.pull is not None
            return self.pulled(spec.name, spec.pull)
        return self.built(spec.name, spec.build)

    def pulled(self, name: str, pull: PullSpec) -> RenderedImage:
        repository = self.templates.text("image.pull.repository", pull.repository, self.scope)
        pulled = mirrored(f"{repository}@{pull.digest}", self.mirrors)
        tag = f"sparkyard/{name}:{pull.digest.removeprefix('sha256:')[:12]}"
        return RenderedImage(name, tag, ("docker", "pull", pulled), pulled=pulled)

    def built(self, name: str, build: BuildSpec) -> RenderedImage:
        asked = self.templates.text(BASE, build.base, self.scope)
        arguments = {n: self.templates.text(f"{KEY}.args.{n}", v, self.scope) for n, v in build.args.items()}
        for key, value in (("base", asked), *arguments.items()):
            self.visible(f"{KEY}.{key}", (value,), self.scope)
        base = pinned_image(asked, self.lock.images.get(BASE))
        source = (self.lane.build_folder / build.context).resolve()
        dockerfile = (self.lane.build_folder / build.dockerfile).resolve()
        commits = {n: known_commit(f"{KEY}.git.{n}", self.lane.recipe, self.lock.git) for n in build.git}
        mark = self.mark(source, dockerfile, base, arguments, commits)
        reference = f"sparkyard/{name}:{mark[:12]}"
        context = f"{self.lane.head.root}/contexts/{name}-{mark[:12]}" if build.git else str(source)
        words = docker_words.build(
            reference=reference,
            mark=mark,
            base=mirrored(base, self.mirrors),
            arguments=arguments,
            dockerfile=str(dockerfile),
            context=context,
        )
        return RenderedImage(
            name, reference, words, mark, context,
            memory=build.memory,
            guard=self.lane.recipe.limits.guard,
            source=str(source),
            trees=self.trees(build, commits, context),
            local_base="" if has_registry(base) or "@" in base else base,
        )  # fmt: skip

    def trees(self, build: BuildSpec, commits: Mapping[str, str], context: str) -> tuple[RenderedTree, ...]:
        """The git sources of a build, each with where it comes from and where it goes."""
        root = self.lane.head.root
        return tuple(
            RenderedTree(
                name, spec.url, commits[name],
                place=mirrored(spec.url, self.mirrors),
                clone=git_words.bare_folder(root, spec.url),
                folder=f"{context}/{name}",
            )
            for name, spec in build.git.items()
        )  # fmt: skip

    def mark(
        self,
        source: Path,
        dockerfile: Path,
        base: str,
        arguments: Mapping[str, str],
        commits: Mapping[str, str],
    ) -> str:
        """The hash of everything that goes into the build. A mirror is not part of it: commits and digests are."""
        if not source.is_relative_to(self.lane.build_folder.resolve()):
            self.templates.fault(f"{KEY}.context", "points outside of the recipe's folder")
        elif not dockerfile.is_file():
            self.templates.fault(f"{KEY}.dockerfile", f"there is no {dockerfile.name} in {dockerfile.parent}")
        else:
            try:
                return build_hash(source, dockerfile, base, arguments, commits)
            except (ValueError, OSError) as error:
                self.templates.fault(f"{KEY}.context", str(error))
        return "0" * 64
