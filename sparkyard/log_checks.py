"""Judges what the log of a rank says against a recipe's checks: found, what it found, and what that must be. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.conditions import said, true
from sparkyard.rendered import RenderedLog
from sparkyard.templating import Scope
from sparkyard.world import Result

WHOLE = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)")
BROKEN = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)\.\d*([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+")


@dataclass(frozen=True, slots=True)
class LogResult:
    """The result of one check, what its named groups found, and one line for people when it does not hold."""

    what: str
    result: Result
    found: dict[str, Any]
    fault: str = ""


class LogReader:
    """Looks for the first line of each check while a log streams by; keeps nothing else of it."""

    def __init__(self, checks: Sequence[RenderedLog]) -> None:
        self._waiting = {number: re.compile(check.pattern) for number, check in enumerate(checks)}
        self._found: dict[int, re.Match[str]] = {}
        self._checks = checks

    def line(self, text: str) -> None:
        for number, pattern in list(self._waiting.items()):
            if match := pattern.search(text):
                self._found[number] = match
                del self._waiting[number]

    def results(self) -> tuple[LogResult, ...]:
        return tuple(_judged(check, self._found.get(number)) for number, check in enumerate(self._checks))


def worst(results: Sequence[LogResult]) -> Result:
    """One result for several: a failure before what could not be checked."""
    seen = {each.result for each in results}
    order: tuple[Result, ...] = ("fail", "could not check")
    return next((result for result in order if result in seen), "pass")


def number_of(text: str | None) -> Any:
    """A number where the text looks like one, without its commas; else the text. None for a group that took no part."""
    if text is None:
        return None
    if WHOLE.fullmatch(text):
        return int(text.replace(",", ""))
    return float(text.replace(",", "")) if BROKEN.fullmatch(text) else text


def _judged(check: RenderedLog, match: re.Match[str] | None) -> LogResult:
    if match is None:
        fault = f"{check.what}: the log has no line that fits /{check.pattern}/ ({check.source})"
        return LogResult(check.what, "fail", {}, fault)
    found = {name: number_of(text) for name, text in match.groupdict().items()}
    names = {**check.scope, "found": Scope("found", found)}
    try:
        if not check.must or true(check.must, names):
            return LogResult(check.what, "pass", found)
        words = said(check.message, names) or f"{check.must} does not hold"
        return LogResult(check.what, "fail", found, f"{check.what}: {words} ({check.source})")
    except ValueError as error:
        return LogResult(check.what, "could not check", found, f"{check.what}: {error} in: {check.must}")
