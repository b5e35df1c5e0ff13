"""The last comparison of a lane's chat template with the checkpoint's encoder: kept on the head, read by ``show``."""

from __future__ import annotations

import json
from pathlib import Path


def record_path(state: Path, lane: str) -> Path:
    """Where the last result of a lane is kept on the head."""
    return state / "parity" / f"{lane}.json"


def standing(state: Path, lane: str, patched: str) -> str:
    """What is known, in words for ``show``: proven only for the template whose sha256 is ``patched``."""
    try:
        told = json.loads(record_path(state, lane).read_text(encoding="utf-8"))
        proven, cases, of = bool(told["proven"]), int(told["equal"]), str(told["template"])
    except (OSError, ValueError, KeyError, TypeError):
        return "parity unproven"
    if not patched or of != patched:
        return "parity unproven: the last run was of another template"
    if not proven:
        return f"parity refuted on {told.get('when', '')}: {', '.join(told.get('differ', ()))}"
    return f"parity proven on {told.get('when', '')}: {cases} conversations equal to the encoder's"
