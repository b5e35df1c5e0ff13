"""YAML values that know the file and line they stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.errors import ConfigError, Fault


class _Unreadable:
    """In place of a value that was refused already, so that no second fault is made of it."""

    def __repr__(self) -> str:
        return "<unreadable>"


UNREADABLE = _Unreadable()


@dataclass(frozen=True, slots=True)
class Marked:
    """A value with its place: the 1-based line of its key, or of itself in a list.

    ``value`` is a scalar, a ``dict[str, Marked]`` or a ``list[Marked]``.
    """

    value: Any
    file: str
    line: int

    @property
    def fields(self) -> dict[str, Marked]:
        """The entries of a mapping; none for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Marked]:
        """The entries of a list; none for anything else."""
        return self.value if isinstance(self.value, list) else []

    def find(self, path: Sequence[str | int]) -> Marked | None:
        """The value at a path of keys and list indexes, or None."""
        here: Marked | None = self
        for step in path:
            if here is None:
                return None
            here = _child(here, step)
        return here

    def nearest(self, path: Sequence[str | int]) -> Marked:
        """The value at the longest part of the path that exists."""
        here = self
        for step in path:
            found = _child(here, step)
            if found is None:
                break
            here = found
        return here

    def plain(self) -> Any:
        """The value as ordinary Python data."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def measure(self) -> tuple[int, int]:
        """How many values it holds, itself included, and how many levels deep they go."""
        below = [item.measure() for item in (*self.fields.values(), *self.items)]
        return 1 + sum(size for size, _ in below), 1 + max((levels for _, levels in below), default=0)

    def leaves(self, key: str = "") -> Iterator[tuple[str, Marked]]:
        """Every scalar below, with its dotted key; list entries count from 0."""
        if isinstance(self.value, dict):
            for name, item in self.value.items():
                yield from item.leaves(dotted(key, name))
        elif isinstance(self.value, list):
            for index, item in enumerate(self.value):
                yield from item.leaves(dotted(key, index))
        else:
            yield key, self


def _child(marked: Marked, step: str | int) -> Marked | None:
    if isinstance(step, str):
        return marked.fields.get(step)
    return marked.items[step] if step < len(marked.items) else None


def dotted(*steps: str | int) -> str:
    """A key path in words: ``services.engine.mounts.0.target``; empty steps fall away."""
    return ".".join(str(step) for step in steps if step != "")


class Faults:
    """Collects faults, so that all are shown at once."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, file: str, line: int, key: str, message: str) -> None:
        self.found.append(Fault(file, line, key, message))

    def at(self, marked: Marked, key: str, message: str) -> None:
        self.found.append(Fault(marked.file, marked.line, key, message))

    def stop(self, next_step: str = "") -> None:
        """Raises ConfigError when anything was collected."""
        if self.found:
            raise ConfigError(self.found, next_step=next_step)
