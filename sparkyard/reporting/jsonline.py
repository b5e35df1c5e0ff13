"""An event as one JSON object: the contract of ``--json`` (``schemas/events.schema.json``) and of ``events.jsonl``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sparkyard.command import mask
from sparkyard.events import Event
from sparkyard.recap import WORDS

VERSION = 1
RESULTS = {
    "pass": "ok",
    "fail": "failed",
    "could not check": "failed",
    "not supported (published)": "skipped",
}
EXITS = {0: "ok", 4: "unreachable", 6: "would-change"}


def timestamp(when: datetime) -> str:
    """RFC 3339 in UTC, with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any, secrets: Iterable[str] = ()) -> Any:
    """The value with JSON types only and every secret masked, in keys too.

    What JSON has no word for becomes text; NaN and infinity become null.
    """
    secrets = tuple(secrets)
    if isinstance(value, Mapping):
        return {mask(str(key), secrets): plain(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, secrets) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else mask(str(value), secrets)


def status_of(event: Event) -> str | None:
    """Ansible's word for the event; None where nothing has been settled yet."""
    if event.type in WORDS:
        return WORDS[event.type]
    if event.type == "recap":
        return EXITS.get(int(event.data.get("status") or 0), "failed")
    return RESULTS.get(str(event.data.get("result", "")))


def as_object(event: Event, lane: str, when: datetime, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """The event under the keys of the contract."""
    return {
        "v": VERSION,
        "type": event.type,
        "time": timestamp(when),
        "lane": lane,
        "node": event.node,
        "step": event.step,
        "status": status_of(event),
        "message": plain(event.message, secrets),
        "data": plain(event.data, secrets),
    }


def as_line(event: Event, lane: str, when: datetime, secrets: Iterable[str] = ()) -> str:
    """One line of ASCII, without its line end, so that no reader splits it in the middle."""
    return json.dumps(as_object(event, lane, when, secrets), separators=(",", ":"))
