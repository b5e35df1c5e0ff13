"""What to do with a stream whose reader has gone."""

from __future__ import annotations

import contextlib
import os
from typing import IO


def let_go(stream: IO[str]) -> None:
    """Point the stream at nothing, so that what is still in its buffer makes no noise when the program ends."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file has nothing to point
        number = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)
