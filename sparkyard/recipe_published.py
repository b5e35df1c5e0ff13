"""The shape of what others published of a lane: named sets of settings, and command lines that ours are compared with, word by word."""

from __future__ import annotations

from typing import Literal

from sparkyard.recipe_base import Name, Part, Source, Template


class ProfileSpec(Part):
    """A named set of settings: before the recipe's defaults, behind everything that a person sets. Chosen with ``profile``."""

    about: str
    source: Source
    settings: dict[Name, str | int | float | bool | None]


class DifferenceSpec(Part):
    """One difference between a published line and ours: ``what`` names the word (its flag, variable or target).

    ``theirs`` and ``ours`` are the values; null where one side has none.
    """

    what: str
    why: str
    theirs: Template | None = None
    ours: Template | None = None


class PublishedSpec(Part):
    """A published command line of one rank, and every way in which ours differs from it.

    Attributes:
        of: the container, ``services.NAME`` or ``jobs.NAME``; ``rank`` which one.
        part: the words behind the image, the options before it (mounts and environment too), the environment alone, or all.
        text: the line as published, split as a POSIX shell would; what names a machine is written as a template.
        profile: the settings with which ours is rendered; empty for the defaults.
    """

    name: str
    source: Source
    of: str
    text: Template
    part: Literal["words", "options", "env", "all"] = "words"
    rank: int = 0
    profile: str = "published"
    differences: list[DifferenceSpec] = []
