"""Faults of the local hub, on demand, and the record of what it was asked."""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(slots=True)
class Request:
    """One request as it is answered; ``sent`` counts the bytes of the body that leave, and grows while they do."""

    method: str
    path: str
    range: str
    status: int
    sent: int
    token: bool


@dataclass(slots=True)
class FaultSettings:
    """What goes wrong. Numbers of times count down; -1 means every time."""

    rate: int = 0
    """Bytes a second of each body, 0 for no limit."""
    drop_after: int = 0
    """Close the connection after so many bytes of a body that is longer …"""
    drops: int = 0
    """… so many times."""
    busy: int = 0
    """Answer 429 so many times …"""
    retry_after: float = 1
    """… with these seconds in Retry-After."""
    errors: int = 0
    """Answer 500 so many times."""
    offline: bool = False
    """Close every connection without an answer."""
    denied: bool = False
    """Answer 401 to everyone."""
    token: str = ""
    """Answer 401 to who does not bring this bearer token."""
    gated: tuple[str, ...] = ()
    """Repositories that answer 403, to be asked for on their page."""
    wrong: tuple[str, ...] = ()
    """Files (globs) whose bytes are not what the listing says, at the same size."""
    truncated: tuple[str, ...] = ()
    """Files (globs) of which only the first half exists."""
    only: str = "*"
    """The counted faults and the rate hold for request paths that match this glob."""
    prefixes: bool = False
    """Take a commit's first letters as a revision, which the real hub does not."""


class Faults:
    """The settings, shared by all threads of a hub."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = FaultSettings()
        self.requests: list[Request] = []

    @property
    def now(self) -> FaultSettings:
        return self._now

    def set(self, **values: Any) -> None:
        """Change some settings; an unknown one is refused."""
        known = {field.name for field in fields(FaultSettings)}
        if unknown := set(values) - known:
            raise ValueError(
                f"{', '.join(sorted(unknown))}: not a fault; they are {', '.join(sorted(known))}"
            )
        lists = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        with self._lock:
            self._now = FaultSettings(**{**asdict(self._now), **lists})

    def clear(self) -> None:
        """Everything right again; the record stays."""
        with self._lock:
            self._now = FaultSettings()

    def forget(self) -> None:
        """Start a new record."""
        with self._lock:
            self.requests = []

    def record(self, request: Request) -> None:
        """Note a request whose answer begins."""
        with self._lock:
            self.requests.append(request)

    def applies(self, path: str) -> bool:
        """Whether the counted faults hold for this request."""
        return fnmatch.fnmatch(path, self._now.only)

    def take(self, name: str, path: str) -> bool:
        """Whether a counted fault happens now; it then counts down."""
        with self._lock:
            left: int = getattr(self._now, name)
            if not left or not self.applies(path):
                return False
            if left > 0:
                setattr(self._now, name, left - 1)
            return True

    def as_json(self) -> dict[str, Any]:
        """The settings, for the control path."""
        return asdict(self._now)


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a file is one of those."""
    return any(fnmatch.fnmatch(path, glob) for glob in globs)
