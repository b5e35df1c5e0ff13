"""What of the things that a job is made of is not as its seal says, for a person who is asked whether to make it again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkyard.command import MASK
from sparkyard.rendered_job import RenderedJob


def what_changed(job: RenderedJob, seal: Mapping[str, Any]) -> tuple[str, ...]:
    """In words, as far as the seal tells; empty for what it does not keep, as the texts of rendered files.

    With another image the words are not compared: its name is among them. Texts that were masked in the seal count as the same.
    """
    return tuple(_changes(job, seal))


def _changes(job: RenderedJob, seal: Mapping[str, Any]) -> Iterator[str]:
    made = seal.get("made_of")
    if not isinstance(made, Mapping):
        return
    image = made.get("image") != job.made_of.get("image")
    if image:
        yield "its image"
    if made.get("patches") != job.made_of.get("patches"):
        yield "an edited text that it mounts"
    if not _alike(seal.get("bound_to"), job.bound_to):
        yield "what it is bound to"
    if not image and not _same_words(job, seal.get("ranks")):
        yield "its words, variables, mounts or ranks"


def _same_words(job: RenderedJob, ranks: Any) -> bool:
    try:
        was = {str(each["node"]): _unlabelled(each["argv"]) for each in ranks}
    except (TypeError, KeyError):
        return False
    now = {each.node: _unlabelled(each.words) for each in job.containers}
    return was.keys() == now.keys() and all(_alike(was[node], now[node]) for node in now)


def _unlabelled(words: Sequence[str]) -> list[str]:
    """The words without labels, among which is the hash of them all."""
    found: list[str] = []
    label = False
    for word in words:
        if not label and word != "--label":
            found.append(word)
        label = word == "--label" and not label
    return found


def _alike(was: Any, now: Sequence[str]) -> bool:
    return (
        isinstance(was, list)
        and len(was) == len(now)
        and all(MASK in str(a) or a == b for a, b in zip(was, now, strict=True))
    )
