"""Ctrl-C and SIGTERM: once, end cleanly; twice, now."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from sparkyard.errors import Interrupted

SHOW_CURSOR = b"\x1b[?25h"
"""The live area hides the cursor; a line that ends at once must give it back."""

LEFT = b"\nended now; a container that ran may go on: invoke status shows it, and the next line heals\n"
"""What a person must know of a line that ended at once: it stopped nothing on the nodes."""


class Signals:
    """Handles both signals for the life of a line.

    Args:
        end_cleanly: asks what runs to end; False when nothing runs that could, and the line is interrupted where it is.
    """

    def __init__(self, end_cleanly: Callable[[], bool]) -> None:
        self._end_cleanly = end_cleanly
        self._count = 0
        self._asking = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked, a signal interrupts the question itself."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), SHOW_CURSOR)
            with contextlib.suppress(OSError):
                os.write(2, LEFT)
            os._exit(Interrupted.status)  # commands on nodes end with our side of their input
        if self._asking or not self._end_cleanly():
            raise KeyboardInterrupt
        sys.stderr.write("\nending cleanly; once more to end now\n")
