"""What a lock does not answer yet, as a value of templates: it stays a mark, whatever is made of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn


class NotLocked(Exception):
    """Something was to be decided over a value that is not locked yet; ``str`` of it is the mark."""


class Unlocked(str):
    """``<unlocked: config>``: its parts, its items and its sums are itself, so that a text shows the mark in their place.

    Compared with anything but a text it raises NotLocked: neither answer would be true.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    @classmethod
    def of(cls, what: str) -> Unlocked:
        return cls(f"<unlocked: {what}>")

    def __getitem__(self, _key: Any) -> Unlocked:
        return self

    def __iter__(self) -> Iterator[str]:
        yield self

    def _same(self, _other: Any = None) -> Unlocked:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _same
    __neg__ = __pos__ = _same

    def _undecided(self, _other: Any = None) -> NoReturn:
        raise NotLocked(str(self))

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else self._undecided()

    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = __contains__ = _undecided
