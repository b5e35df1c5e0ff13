"""The shape of an engine image in a recipe: built, pulled by digest, or made by a project's own scripts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sparkyard.recipe_base import Bytes, GitSpec, Name, Part, Source, Template


class BuildSpec(Part):
    """An image built on the head. ``dockerfile`` and ``context`` are relative to the recipe's folder. ``base`` becomes the build argument BASE; ``memory`` is what the build needs free.
    Each entry of ``git`` is checked out at its commit into a folder of that name in the context."""

    base: Template
    dockerfile: str = "Dockerfile"
    context: str = "."
    args: dict[str, Template] = {}
    memory: Bytes = 0
    git: dict[Name, GitSpec] = {}


class PullSpec(Part):
    """An image pulled by digest."""

    repository: Template
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class MadeSpec(Part):
    """An image that a project's own scripts make, on the head, in a clone of ``git`` at its commit: ``steps`` are run there in order.

    ``reference`` is the tag that they leave; ``labels`` is what the image must then say of itself, on every node.
    """

    git: GitSpec
    steps: list[list[Template]]
    reference: Template
    labels: dict[str, str] = {}
    memory: Bytes = 0


class ImageSpec(Part):
    """The engine image: built, pulled or made by scripts on the head, then shipped to the workers when their layers differ."""

    name: str
    source: Source
    build: BuildSpec | None = None
    pull: PullSpec | None = None
    made: MadeSpec | None = None
    bytes: Bytes | None = None

    @model_validator(mode="after")
    def _one_way(self) -> ImageSpec:
        if sum(way is not None for way in (self.build, self.pull, self.made)) != 1:
            raise ValueError("exactly one of `build`, `pull` and `made` is needed")
        return self
