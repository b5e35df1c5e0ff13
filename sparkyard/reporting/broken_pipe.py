"""What to do with a stream whose reader has gone, or that nobody gave us."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO


def let_go(stream: IO[str]) -> None:
    """Point the stream at nothing, so that what is still in its buffer makes no noise when the program ends."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file has nothing to point
        number = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)


def fill_closed() -> None:
    """Open what was closed when we were started (``>&-``), so that no file or socket of ours becomes standard output."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def complain(text: str) -> None:
    """Write to standard error, which may have gone; that is no reason for another error."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)
