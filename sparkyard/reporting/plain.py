"""Paper without colours: what is written where no terminal reads. Needs no rich, which takes longer to import than a short line to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from sparkyard.reporting.broken_pipe import let_go

if TYPE_CHECKING:
    from sparkyard.reporting.lines import Line
    from sparkyard.reporting.live import LiveArea

USUAL = 80
"""Columns where nobody says how many there are."""
COLOURED = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables that make rich take a stream for a terminal that is none."""


def is_plain(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether rich would write neither colours nor bars to this stream."""
    return not stream.isatty() and not any(environ.get(name) for name in COLOURED)


class PlainPaper:
    """Writes the same characters as ``RichPaper`` off a terminal."""

    live = False

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        self._environ = environ

    @property
    def width(self) -> int:
        """Columns: of the variable COLUMNS, else of the terminal that a standard stream has, else 80."""
        columns = self._environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns):
            return int(columns)
        for stream in (0, 1, 2):
            try:
                return os.get_terminal_size(stream).columns or USUAL
            except (OSError, ValueError):
                continue
        return USUAL

    def write(self, line: Line = ()) -> None:
        """One line, without its styles. Raises OSError once, and leaves the stream alone then."""
        text = "".join(text for text, _style in line).rstrip()
        try:
            self._stream.write("\n".join(part.expandtabs() for part in text.split("\n")) + "\n")
            self._stream.flush()
        except OSError:
            let_go(self._stream)
            raise

    def area(self) -> LiveArea:
        """There is none: ``live`` is false."""
        raise NotImplementedError
