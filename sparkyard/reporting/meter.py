"""How fast something goes, from what was reported in the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from sparkyard.reporting import amounts

WINDOW = 10.0
"""Seconds that a rate looks back, and at least between two plain lines about one thing."""
CALM = 60.0
"""Seconds at most between two plain lines: the longer a thing takes, the less often it is told."""
LINES = 12
"""How many of such intervals have passed when they begin to grow."""
SHORTEST = 0.5
"""Seconds below which a rate would be noise."""


class Meter:
    """Progress of one thing. Times are seconds of a clock that only goes forward."""

    def __init__(self, label: str, now: float) -> None:
        self.label = label
        self.done = 0.0
        self.total = 0.0
        self._unit = "bytes"
        self._given = 0.0
        self._began = self._told = now
        self._at_most = False
        self._samples: deque[tuple[float, float]] = deque()

    def update(self, progress: Mapping[str, Any], now: float) -> None:
        """Take in one report (the ``progress`` data of an event)."""
        self.done, self.total = float(progress.get("done", 0)), float(progress.get("total") or 0)
        self._unit = str(progress.get("unit", "bytes"))
        self._given = float(progress.get("rate") or 0)
        self._at_most = bool(progress.get("at_most"))
        self._samples.append((now, self.done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Units a second: as reported, or over the last seconds; 0 when it cannot be known yet."""
        if self._given:
            return self._given
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last - first >= SHORTEST and after > before else 0.0

    @property
    def complete(self) -> bool:
        return 0 < self.total <= self.done

    def due(self, now: float) -> bool:
        """Whether a plain line is due; asking starts the next interval."""
        interval = min(max(WINDOW, (now - self._began) / LINES), CALM)
        if now - self._told < interval and not self.complete:
            return False
        self._told = now
        return True

    def words(self) -> str:
        return amounts.progress(self.done, self.total, self._unit, self.rate, at_most=self._at_most)
