"""What a rendered container's ``docker run`` says, taken apart for tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparkyard.model import Container


def behind(container: Container) -> list[str]:
    """The words behind the image."""
    words = list(container.words)
    return words[words.index(container.image) + 1 :]


def env(container: Container) -> dict[str, str]:
    """The variables among the options."""
    before = container.words[: container.words.index(container.image)]
    return dict(value.split("=", 1) for word, value in pairwise(before) if word == "--env")


def mounts(container: Container) -> dict[str, str]:
    """The whole text of each mount, by its target."""
    found = [value for word, value in pairwise(container.words) if word == "--mount"]
    return {mount.partition("target=")[2].partition(",")[0]: mount for mount in found}


def flag(words: Sequence[str], name: str) -> str | None:
    """The word behind a flag; None where the flag is not there."""
    return words[words.index(name) + 1] if name in words else None
