"""How long to wait before asking a server again: as it told us, or a little longer each time."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from sparkyard.errors import Interrupted

LOOK = 0.1
"""Seconds between two looks at what an EndSignal also depends on."""

Wait = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of asking again.

    Attributes:
        tries: how often the same request is sent when the server or the network fails, without a new byte in between.
        base: seconds before the second try; doubled each time.
        longest: seconds that a server may make us wait in one go for a rate limit.
    """

    tries: int = 4
    base: float = 1.0
    longest: float = 3600.0

    def pause(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1 or more)."""
        return float(min(self.base * 2 ** (failures - 1), 30.0))


def told_to_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds until the server wants to be asked again, by Retry-After (seconds or a date) or its rate-limit header."""
    lower = {name.lower(): value for name, value in headers.items()}
    after = lower.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", after):
        return float(after)
    if after:
        try:
            return max(0.0, (parsedate_to_datetime(after) - (now or datetime.now(UTC))).total_seconds())
        except (ValueError, TypeError):
            pass
    reset = re.search(r"r=0\s*;\s*t=(\d+)", lower.get("ratelimit", ""))
    return float(reset.group(1)) if reset else None


def waiting(cancelled: threading.Event) -> Wait:
    """A wait that ends with Interrupted as soon as the run is cancelled."""

    def wait(seconds: float) -> None:
        if cancelled.wait(seconds):
            raise Interrupted("interrupted")

    return wait


class EndSignal(threading.Event):
    """A cancel signal that is also set when something else is so: another failure, or no byte for too long."""

    def __init__(self, also: Callable[[], bool]) -> None:
        super().__init__()
        self._also = also

    def is_set(self) -> bool:
        return super().is_set() or self._also()

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = LOOK if until is None else until - time.monotonic()
            if left <= 0:
                return False
            super().wait(min(LOOK, left))
        return True
