"""The rich console that the human view writes to."""

from __future__ import annotations

import io
from typing import TextIO

from rich.console import Console

from sparkyard.reporting.broken_pipe import let_go


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
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a C locale must not turn a middle dot into a traceback
    console = PlainConsole(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < 1:  # COLUMNS=0: not known; rich would print nothing at all
        console.width = 80
    return console
