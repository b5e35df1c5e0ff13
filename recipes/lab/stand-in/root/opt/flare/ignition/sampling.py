"""Sampling as it is built into a package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SamplingRange:
    """What a request may ask for."""

    low: float
    high: float


@dataclass(frozen=True)
class SamplingDefaults:
    """Values that hold unless there is a range and a request asks for something within it."""

    temperature: float
    top_p: float
    top_k: int
    ranges: Mapping[str, SamplingRange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, span in self.ranges.items():
            if not 0 < span.low <= getattr(self, name) <= span.high:
                raise ValueError(f"{name}: the default {getattr(self, name)} is not within {span}")

    def built_in(self) -> dict[str, Any]:
        """The form that stands in a package."""
        spans = {name: [span.low, span.high] for name, span in self.ranges.items()}
        return {"temperature": self.temperature, "top_p": self.top_p, "top_k": self.top_k, "ranges": spans}
