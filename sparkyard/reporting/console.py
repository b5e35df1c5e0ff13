"""Paper of a terminal: the rich console that the human view writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from sparkyard.reporting.broken_pipe import let_go

if TYPE_CHECKING:
    from sparkyard.reporting.lines import Line
    from sparkyard.reporting.live import LiveArea


class PlainConsole(Console):
    """A console that leaves a reader who has gone to ``MultiView``, where rich would end the program."""

    def on_broken_pipe(self) -> None:
        let_go(self.file)
        raise BrokenPipeError

    def _write_buffer(self) -> None:
        try:
            super()._write_buffer()
        except OSError:  # a full disk: what is in the stream's buffer must not be tried again at the end
            let_go(self.file)
            raise


def make_console(stream: TextIO) -> Console:
    """A console on the stream. rich itself respects NO_COLOR, FORCE_COLOR, TERM and COLUMNS."""
    console = PlainConsole(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < 1:  # COLUMNS=0: not known; rich would print nothing at all
        console.width = 80
    return console


class RichPaper:
    """Writes in colours, and draws bars where the console is a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @property
    def width(self) -> int:
        return self._console.width

    @property
    def live(self) -> bool:
        return self._console.is_interactive and self._console.file.isatty()

    def write(self, line: Line = ()) -> None:
        text = Text.assemble(*line)
        text.rstrip()
        self._console.print(text, soft_wrap=True)

    def area(self) -> LiveArea:
        from sparkyard.reporting.live import LiveArea  # noqa: PLC0415 - only a terminal has one

        return LiveArea(self._console)
