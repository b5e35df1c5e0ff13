"""The one live area of the terminal: a row for each running step and each thing in progress, gone when they end."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from sparkyard.events import Event
from sparkyard.reporting.lines import clean
from sparkyard.reporting.meter import Meter

WORDS = 41
"""Columns that words keep on any terminal: ``12.8 MB of 151 MB, 12.2 MB/s, 11.3 s left``."""
TITLE = 48
"""Columns of a title at most."""
BAR = 5


class HowFar(TimeElapsedColumn):
    """How far a thing is, in words; the time that has passed where nothing is known of that."""

    def render(self, task: Task) -> Text:
        words = str(task.fields["words"])
        return Text(words, no_wrap=True) if words else super().render(task)


class LiveArea:
    """Rows by step and label. Drawn only while there are rows, so that questions find a quiet terminal."""

    def __init__(self, console: Console) -> None:
        self._rows: dict[tuple[str, str], TaskID] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=BAR),
            HowFar(),
            console=console,
            transient=True,
        )

    def follow(self, event: Event) -> None:
        """Begin the row of a step that starts; remove all rows of one that ends."""
        if event.type == "step-start":
            title = clean(event.data.get("title") or event.step)
            self._row((event.step, ""), f"{event.node} {title}")
        elif event.type not in ("step-output", "finding") and event.step:
            self._remove([key for key in self._rows if key[0] == event.step])
        elif event.type == "recap":
            self.close()

    def progress(self, event: Event, meter: Meter) -> None:
        """Draw how far one thing is; it loses its row at its end."""
        key = (event.step, meter.label)
        if meter.complete and meter.label:
            self._remove([key] if key in self._rows else [])
            return
        new = key not in self._rows
        task = self._row(key, f"{event.node} {meter.label}")
        total = meter.total or None
        self._progress.update(task, completed=meter.done, total=total, words=self._words(meter), refresh=new)

    @property
    def _title(self) -> int:
        """Columns of a title: what the spinner, the bar, the words and the blanks between them leave."""
        return max(12, min(TITLE, self._progress.console.width - WORDS - BAR - 4))

    def _words(self, meter: Meter) -> str:
        """No row is wider than the terminal: that would cost every column some of its letters."""
        return fitting(meter.words(), self._progress.console.width - self._title - BAR - 4)

    def close(self) -> None:
        self._remove(list(self._rows))

    def _row(self, key: tuple[str, str], title: str) -> TaskID:
        if not self._rows:
            self._progress.start()
        if key not in self._rows:
            short = cut(title, self._title)  # the whole title is printed when the step ends
            self._rows[key] = self._progress.add_task(short, total=None, words="")
        return self._rows[key]

    def _remove(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            self._progress.remove_task(self._rows.pop(key))
        if not self._rows:
            self._progress.stop()


def fitting(words: str, room: int) -> str:
    """The words in so many columns: without the rate where they are longer, so that the time left stays."""
    parts = words.split(", ")
    shorter = f"{parts[0]}, {parts[-1]}" if len(parts) > 2 else words
    return words if len(words) <= room else cut(shorter, room)


def cut(text: str, room: int) -> str:
    """The text in so many columns, its end replaced by a sign where it is longer."""
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"
