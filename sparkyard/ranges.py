"""The map of a partly downloaded file: which byte ranges are there. Pure; ranges are half-open [start, end)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

Range = tuple[int, int]


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same bytes as sorted ranges that neither overlap nor touch."""
    result: list[Range] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def gaps(done: Iterable[Range], size: int) -> tuple[Range, ...]:
    """The bytes of ``range(size)`` that are in none of the ranges."""
    result: list[Range] = []
    at = 0
    for start, end in joined(done):
        if start > at:
            result.append((at, min(start, size)))
        at = max(at, end)
    if at < size:
        result.append((at, size))
    return tuple(r for r in result if r[0] < r[1])


def pieces(missing: Iterable[Range], piece: int) -> tuple[Range, ...]:
    """The ranges cut so that none is longer than ``piece`` bytes."""
    return tuple((at, min(at + piece, end)) for start, end in missing for at in range(start, end, piece))


def count(ranges: Iterable[Range]) -> int:
    """How many bytes the ranges hold together."""
    return sum(end - start for start, end in joined(ranges))


@dataclass(frozen=True, slots=True)
class PartMap:
    """What is there of a file of ``size`` bytes that must hash to ``digest``."""

    size: int
    digest: str
    done: tuple[Range, ...] = ()

    def text(self) -> str:
        return json.dumps({"version": 1, "size": self.size, "digest": self.digest, "done": joined(self.done)})

    @classmethod
    def parse(cls, text: str, size: int, digest: str) -> PartMap:
        """The map in ``text``, or an empty one when it is damaged or of another file: then all is fetched again."""
        nothing = cls(size, digest)
        try:
            data = json.loads(text)
            done = joined((int(start), int(end)) for start, end in data["done"])
        except (ValueError, KeyError, TypeError):
            return nothing
        fits = not done or (done[0][0] >= 0 and done[-1][1] <= size)
        same = (data.get("version"), data.get("size"), data.get("digest")) == (1, size, digest)
        return cls(size, digest, done) if fits and same else nothing
