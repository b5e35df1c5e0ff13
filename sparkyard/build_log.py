"""Reads the output of ``docker build``: the classic builder's and BuildKit's plain one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

CLASSIC = re.compile(r"^Step \d+/\d+ : (?P<what>.+)$")
KIT_FAILED = re.compile(r"^ ?> \[[^\]]*\d+/\d+\] (?P<what>.+?):?$")
KIT_STARTED = re.compile(r"^#\d+ \[[^\]]*\d+/\d+\] (?P<what>.+)$")


def failing_instruction(lines: Iterable[str]) -> str:
    """The instruction of the Dockerfile that a failed build ended at; empty when the output names none."""
    found = ""
    for line in lines:
        if match := KIT_FAILED.match(line):
            return match["what"]
        if match := CLASSIC.match(line) or KIT_STARTED.match(line):
            found = match["what"]
    return found
