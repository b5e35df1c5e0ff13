"""Answers in parts: lines between ``@@ NAME`` and ``@@ = STATUS``. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sparkyard.errors import CouldNotCheck


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an answer: its exit status and its lines."""

    status: int
    lines: tuple[str, ...]


def sections(text: str, node: str = "") -> dict[str, Section]:
    """The sections of an answer. Raises CouldNotCheck when one of them has no end."""
    found: dict[str, Section] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        if name and line.startswith("@@ = ") and line[5:].isdecimal():
            found[name] = Section(int(line[5:]), tuple(line for line in lines if line))
            name = ""
        elif line.startswith("@@ "):
            if name:
                break
            name, lines = line[3:], []
        else:
            lines.append(line)
    if name:
        raise CouldNotCheck(f"the answer was cut short in its part {name!r}", node=node)
    return found
