"""How an image that lies on a node differs from the wanted one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sparkyard.docker_words import BUILD_LABEL
from sparkyard.facts import ImageFact
from sparkyard.rendered import RenderedImage
from sparkyard.system import System

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Docker's word for a machine's architecture."""


def difference(wanted: RenderedImage, fact: ImageFact | None, facts: System) -> str:
    """How a node's image differs from the wanted one; empty when it does not.

    Ids are not compared: they differ between image stores for the same content. The tag and the label are made of the
    hash of everything that went into the build; layers are compared when an image is shipped. An image that a project's own
    scripts made has their labels, not ours.
    """
    if fact is None:
        return "is missing"
    machine = MACHINES.get(facts.architecture, facts.architecture)
    if fact.architecture != machine:
        return f"is for {fact.architecture}, and this machine is {machine}"
    if wanted.made is not None:
        return "; ".join(label_faults(wanted.made.labels, fact.labels))
    if wanted.mark and fact.labels.get(BUILD_LABEL) != wanted.mark:
        return f"has another {BUILD_LABEL} label than this recipe makes"
    return ""


def label_faults(wanted: Mapping[str, str], found: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each label that is not as wanted: which, what was found, what is expected."""
    return tuple(
        f"label {name} is {found[name]!r}, expected {value!r}"
        if name in found
        else f"label {name} is missing, expected {value!r}"
        for name, value in wanted.items()
        if found.get(name) != value
    )
