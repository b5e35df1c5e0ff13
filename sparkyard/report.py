"""Views of one stream of events: JSON lines, words for people, the run record. Steps never print.

``MultiView`` is the one that the engine gets: it takes events from several threads and lets the others see one at a time.
rich is imported only by ``human_view``, and only for a terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from sparkyard.command import mask
from sparkyard.errors import ConfigError, SparkyardError
from sparkyard.events import Event
from sparkyard.reporting import jsonline
from sparkyard.reporting.broken_pipe import let_go

if TYPE_CHECKING:
    from sparkyard.reporting.human import HumanView

Now = Callable[[], datetime]


def now_utc() -> datetime:
    return datetime.now(UTC)


class View(Protocol):
    """Shows events, in the order in which they happened."""

    def handle(self, event: Event) -> None: ...

    def close(self) -> None:
        """Show what was kept back, and leave the terminal as it was found. More events may follow, and another close."""
        ...


class JsonLines:
    """Events as JSON lines, with the lane that the last ``run-start`` named."""

    def __init__(self, now: Now = now_utc) -> None:
        self._now = now
        self._lane = ""

    def line(self, event: Event, secrets: Iterable[str] = ()) -> str:
        """The line of one event, with its line end."""
        if event.type == "run-start":
            self._lane = str(event.data.get("lane") or "")
        return jsonline.as_line(event, self._lane, self._now(), secrets) + "\n"


class JsonView:
    """``--json``: one event a line, flushed at once; nothing else may write to this stream.

    Of the progress of one thing a line a second is written, and its end.
    """

    def __init__(
        self, stream: TextIO, now: Now = now_utc, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._lines = JsonLines(now)
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}

    def handle(self, event: Event) -> None:
        if "progress" not in event.data or self._due(event):
            self._write(self._lines.line(event))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError:
            let_go(self._stream)
            raise

    def _due(self, event: Event) -> bool:
        progress, now = event.data["progress"], self._clock()
        key = (event.step, str(progress.get("label", "")))
        due = progress.get("done") == progress.get("total") or now - self._told.get(key, -1.0) >= 1
        if due:
            self._told[key] = now
        return due

    def close(self) -> None:
        """Nothing is ever kept back."""


class RecordView:
    """Writes ``events.jsonl`` and one log for each node into the run's folder, masking secrets once more.

    The files are readable by their owner alone. A record that cannot be written (full disk) must not end a run in its
    middle: ``on_lost`` is called, once, and nothing more is written.
    """

    def __init__(
        self,
        folder: Path,
        secrets: Sequence[str] = (),
        now: Now = now_utc,
        on_lost: Callable[[OSError], None] = lambda _error: None,
    ) -> None:
        self._folder = folder
        self._secrets = tuple(secrets)
        self._now = now
        self._on_lost = on_lost
        self._lost = False
        self._files: dict[str, TextIO] = {}
        self._lines = JsonLines(now)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """More values to mask from now on: some are known only once the lane is loaded."""
        self._secrets = (*self._secrets, *secrets)

    def handle(self, event: Event) -> None:
        if "progress" in event.data or self._lost:  # progress: thousands of lines that say nothing afterwards
            return
        try:
            self._write("events.jsonl", self._lines.line(event, self._secrets))
            if event.node:
                self._write(f"{event.node}.log", *(f"{line}\n" for line in self._log_lines(event)))
        except OSError as error:
            self._lost = True
            self._on_lost(error)

    def close(self) -> None:
        """Close the files; an event after this opens them again."""
        while self._files:
            _name, file = self._files.popitem()
            with contextlib.suppress(OSError):  # what is still in the buffer of a full disk
                file.close()

    def _write(self, name: str, *lines: str) -> None:
        if name not in self._files:
            path = self._folder / name.replace("/", "_")
            path.touch(mode=0o600)
            self._files[name] = path.open("a", encoding="utf-8", errors="replace")
        self._files[name].writelines(lines)
        self._files[name].flush()

    def _log_lines(self, event: Event) -> list[str]:
        data = event.data
        head = f"{jsonline.timestamp(self._now())} {event.type} {event.step}".rstrip()
        first = data.get("line") or event.message or data.get("title") or ""
        more = [data.get("reason"), *data.get("actions", ()), *data.get("details", ()), data.get("next")]
        lines = [f"{head}: {first}", *(f"    {item}" for item in more if item and item != first)]
        return [mask(line, self._secrets) for line in lines]


class MultiView:
    """Lets every view see every event, one at a time, whichever thread it comes from.

    A view whose reader has gone (``| head``), or whose stream takes no more (a full disk), is dropped; ``on_gone`` is called
    then with the error, once for each; of a reader who goes when all is being closed nothing is said.
    """

    def __init__(
        self, views: Iterable[View], on_gone: Callable[[OSError], None] = lambda _error: None
    ) -> None:
        self._views = list(views)
        self._on_gone = on_gone
        self._secrets: tuple[str, ...] = ()
        self._one_at_a_time = threading.RLock()

    def add(self, view: View) -> None:
        with self._one_at_a_time:
            self._views.append(view)

    def mask(self, secrets: Iterable[str]) -> None:
        """More values that no view may see: what a container logs, what a person typed, is shown as it comes."""
        self._secrets = tuple(dict.fromkeys((*self._secrets, *filter(None, secrets))))

    def handle(self, event: Event) -> None:
        if self._secrets:
            data = jsonline.plain(event.data, self._secrets)
            event = replace(event, message=mask(event.message, self._secrets), data=data)
        for error in self._each(lambda view: view.handle(event)):
            self._on_gone(error)

    def close(self) -> None:
        for error in self._each(lambda view: view.close()):
            if not isinstance(error, BrokenPipeError):  # a reader who leaves at the end has seen enough
                self._on_gone(error)

    def _each(self, act: Callable[[View], None]) -> list[OSError]:
        """Let every view act; returns the errors of those that are gone."""
        gone = []
        with self._one_at_a_time:
            for view in tuple(self._views):
                try:
                    act(view)
                except OSError as error:
                    self._views.remove(view)
                    gone.append(error)
        return gone


def human_view(stream: TextIO, *, verbose: int = 0) -> HumanView:
    """The view for people, on a terminal or off it."""
    from sparkyard.reporting.human import HumanView  # noqa: PLC0415
    from sparkyard.reporting.plain import PlainPaper, is_plain  # noqa: PLC0415

    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a C locale must not turn a middle dot into a traceback
    if is_plain(stream, os.environ):
        return HumanView(PlainPaper(stream), verbose=verbose)
    from sparkyard.reporting.console import RichPaper, make_console  # noqa: PLC0415  rich takes its time

    return HumanView(RichPaper(make_console(stream)), verbose=verbose)


def error_events(error: SparkyardError) -> tuple[Event, ...]:
    """An error that ended the line, for ``--json``: a finding (one for each fault of the configuration) and a recap."""
    if isinstance(error, ConfigError):
        after = {"next": error.next_step} if error.next_step else {}
        faults = [
            {"file": f.file, "lineno": f.line, "key": f.key, "message": f.message, **after}
            for f in error.faults
        ]
        findings = [
            Event("finding", str(fault), data=row) for fault, row in zip(error.faults, faults, strict=True)
        ]
    else:
        data = {"details": list(error.details), "next": error.next_step}
        findings = [Event("finding", error.message, node=error.node, data=data)]
    return (*findings, Event("recap", error.message, data={"status": error.status, "nodes": {}}))
