"""Types sparkyard lines as a person would, and reads what they say."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import jsonschema

PROJECT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((PROJECT / "sparkyard/schemas/events.schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
LIMIT = 900.0
"""Seconds after which a line that hangs is a failure of the test."""


@dataclass(frozen=True)
class Said:
    """What a line with ``--json`` said."""

    status: int
    events: list[dict[str, Any]]
    err: str

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type_]

    @property
    def nodes(self) -> dict[str, dict[str, int]]:
        """The counters of the recap."""
        (recap,) = self.of("recap")
        found: dict[str, dict[str, int]] = recap["data"]["nodes"]
        return found

    def changed(self) -> dict[str, int]:
        return {node: counts["changed"] for node, counts in self.nodes.items()}

    def failures(self) -> str:
        """Every failure's words, details and next steps."""
        bad = [e for e in self.events if e["type"] in ("step-failed", "node-unreachable", "finding")]
        lines = [
            line
            for e in bad
            for line in (e["message"], *e["data"].get("details", ()), e["data"].get("next", ""))
        ]
        return "\n".join(lines) + self.err


def heard(status: int, out: str, err: str) -> Said:
    """What a line said; every event is as the schema has it."""
    events = [json.loads(text) for text in out.splitlines()]
    for event in events:
        VALID.validate(event)
    return Said(status, events, err)


@dataclass(frozen=True)
class Typist:
    """Types lines against one inventory."""

    inventory: Path

    def words(self, *line: str) -> list[str]:
        return [sys.executable, "-m", "invoke", *line, f"--inventory={self.inventory}"]

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("INVOKE_", "SPARKYARD_"))}
        return kept | {k: v for k, v in os.environ.items() if k in ("SPARKYARD_LAB", "SPARKYARD_LAB_CACHE")}

    def start(self, *line: str, **kwargs: Any) -> subprocess.Popen[str]:
        """One line that goes on while the test does; ``end_lines`` ends it after the test, if nobody did."""
        process = subprocess.Popen(
            self.words(*line),
            cwd=PROJECT,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **kwargs,
        )
        STARTED.append(process)
        return process

    def going(self, *line: str) -> Going:
        """One line with ``--json`` that goes on, and whose events can be waited for."""
        return Going(self.start(*line, "--json"))

    def type(self, *line: str) -> subprocess.CompletedProcess[str]:
        """One line, to its end."""
        return subprocess.run(
            self.words(*line),
            cwd=PROJECT,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def json(self, *line: str) -> Said:
        """One line with ``--json``: every line of its output must be JSON, and every event as the schema has it."""
        done = self.type(*line, "--json")
        return heard(done.returncode, done.stdout, done.stderr)

    def ok(self, *line: str) -> Said:
        said = self.json(*line)
        assert said.status == 0, said.failures()
        return said


STARTED: list[subprocess.Popen[str]] = []
"""Lines that were started and may still go on."""


class Going:
    """A line that goes on, with everything that it has said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.complained: list[str] = []
        pairs = ((process.stdout, self.said), (process.stderr, self.complained))
        self._readers = [threading.Thread(target=_read, args=pair, daemon=True) for pair in pairs]
        for reader in self._readers:
            reader.start()

    def says(self, *words: str) -> None:
        """Wait until one of its events has all these words."""

        def seen() -> bool:
            return any(all(word in line for word in words) for line in list(self.said))

        until(lambda: seen() or self.process.poll() is not None)
        if not seen():
            self.end()
            assert seen(), (words, self.said, self.complained)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end: status, output and errors."""
        status = self.process.wait(LIMIT)
        for reader in self._readers:
            reader.join(LIMIT)
        return status, "".join(self.said), "".join(self.complained)

    def said_all(self) -> Said:
        """Wait for its end: everything that it said."""
        return heard(*self.end())


def _read(pipe: IO[str], into: list[str]) -> None:
    with pipe, contextlib.suppress(ValueError):  # closed by ``end_lines``
        for line in pipe:
            into.append(line)  # noqa: PERF402 (each is seen as it comes)


def end_lines() -> None:
    """Kill what a test that failed has left going: the next one must not meet it."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def until(true: Callable[[], Any], seconds: float = 180.0) -> None:
    """Wait until something is true."""
    never = threading.Event()
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not true after {seconds} s"
        never.wait(0.05)
