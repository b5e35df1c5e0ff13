"""The record of an image that a project's own scripts made: a small file on the head, written before the image gets our name. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class MadeRecord:
    """What was made: ``mark`` is the hash of all that went in, ``layers`` and ``labels`` are the image's own."""

    mark: str
    reference: str
    layers: tuple[str, ...]
    labels: dict[str, str]

    def text(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def made_of(content: bytes | None) -> MadeRecord | None:
    """The record in a file; None where there is none, also for a damaged one."""
    try:
        told = json.loads(content or b"")
        return MadeRecord(
            str(told["mark"]), str(told["reference"]), tuple(told["layers"]), dict(told["labels"])
        )
    except (ValueError, KeyError, TypeError):
        return None
