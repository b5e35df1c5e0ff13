"""The view for people: writes the lines of events, with one live area on a terminal. What it writes on is given to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sparkyard.events import Event
from sparkyard.reporting.gathering import gathered, gathers, rows_gathered
from sparkyard.reporting.lines import Line, below, clean, fold, lines_of, shows_actions
from sparkyard.reporting.meter import Meter
from sparkyard.tables import Row, folded, known

if TYPE_CHECKING:
    from sparkyard.reporting.live import LiveArea

NARROWEST = 20
"""Columns below which nothing is folded any narrower."""
PATIENCE = 2.0
"""Seconds after which what waits for its like from other nodes is shown, when the next event comes."""


class Paper(Protocol):
    """What lines are written on. ``width`` is in columns; ``live`` says whether there is a terminal that bars may be drawn on."""

    @property
    def width(self) -> int: ...

    @property
    def live(self) -> bool: ...

    def write(self, line: Line = ()) -> None: ...

    def area(self) -> LiveArea: ...


class HumanView:
    """Shows events in words and colours.

    Args:
        paper: where to; its width is what lines are folded to.
        verbose: 1 shows the commands of steps that act, 2 their output too.
        live: whether progress bars may be drawn; asked of the paper when None.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        paper: Paper,
        verbose: int = 0,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paper = paper
        self._verbose = verbose
        self._clock = clock
        self._area = paper.area() if (paper.live if live is None else live) else None
        self._meters: dict[tuple[str, str], Meter] = {}
        self._table = ""
        self._rows: list[Row] = []
        self._started = False
        self._everyone: list[str] = []
        self._begun: set[str] = set()
        self._waiting: list[Event] = []
        self._since = 0.0

    @property
    def _width(self) -> int:
        return max(self._paper.width, NARROWEST)

    def handle(self, event: Event) -> None:
        if gathers(event) and (not event.step or event.step not in self._begun):
            self._wait(event)
            return
        self._print_waiting()
        if event.type == "run-start":
            self._everyone, self._begun = list(event.data.get("nodes", ())), set()
        elif event.type == "step-start":
            self._begun.add(event.step)
        table = str(event.data.get("table", "")) if event.type == "finding" else ""
        if self._rows and table != self._table:
            self._print_table()
        if known(table):
            self._table = table
            self._rows.append(event.data)
        elif "progress" in event.data:
            self._progress(event)
        else:
            self._show(event)

    def close(self) -> None:
        self._print_waiting()
        self._print_table()
        if self._area:
            self._area.close()

    def _wait(self, event: Event) -> None:
        """Keep what was found of one node until it is known of which others the same was found."""
        now = self._clock()
        if self._waiting and now - self._since > PATIENCE:
            self._print_waiting()
        self._since = self._since if self._waiting else now
        self._waiting.append(event)

    def _print_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._print_table()
        for event in gathered(waiting, self._everyone, self._below):
            self._show(event)

    def _below(self, event: Event) -> tuple[Line, ...]:
        return tuple(below(event, self._width, actions=shows_actions(event, self._verbose)))

    def _show(self, event: Event) -> None:
        if (event.type in ("run-start", "recap") or "heading" in event.data) and self._started:
            self._paper.write()
        self._started = True
        running = event.type in ("step-start", "step-output")
        if self._area:
            self._area.follow(event)
        if event.step and not running:
            self._meters = {key: meter for key, meter in self._meters.items() if key[0] != event.step}
        if self._area and event.type == "step-start" and not self._verbose:
            return  # its row in the live area says so
        for line in lines_of(event, self._width, self._verbose):
            self._paper.write(line)

    def _progress(self, event: Event) -> None:
        """A bar on a terminal; off it a line every ten seconds and at each end."""
        progress, now = event.data["progress"], self._clock()
        label = clean(progress.get("label", ""))
        key = (event.step, label)
        ended_before = key in self._meters and self._meters[key].complete
        meter = self._meters.setdefault(key, Meter(label, now))
        meter.update(progress, now)
        if self._area:
            self._area.progress(event, meter)
        elif meter.due(now) and not (ended_before and meter.complete):
            prose = f"{label}: {meter.words()}" if label else meter.words()
            for text in fold(prose, self._width, f"{'':<13}{event.node}  "):
                self._paper.write(((text, "dim"),))

    def _print_table(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            for number, text in enumerate(folded(self._table, rows_gathered(self._table, rows), self._width)):
                self._paper.write(((text, "bold" if number == 0 else ""),))
