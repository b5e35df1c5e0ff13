"""Output of a running command: whole when it is short, its tail when it is followed line by line."""

from __future__ import annotations

from collections.abc import Callable

TAIL = 4 * 1024 * 1024
"""Bytes kept of each output while lines are followed; everything is kept otherwise."""
LONGEST = 1024 * 1024
"""Bytes after which a line is handed out in pieces: a program may write for ever without an end of line."""


class Output:
    """Collects the bytes of one stream and hands out its lines."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._kept = bytearray()
        self._partial = b""

    def feed(self, data: bytes) -> None:
        self._kept += data
        if self._on_line is None:
            return
        if len(self._kept) > 2 * TAIL:
            del self._kept[:-TAIL]
        *lines, self._partial = (
            (self._partial + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        )
        for line in lines:
            self._on_line(line.decode(errors="replace"))
        while len(self._partial) > LONGEST:
            self._on_line(self._partial[:LONGEST].decode(errors="replace"))
            self._partial = self._partial[LONGEST:]

    def close(self) -> bytes:
        """The bytes kept, after handing out a last line without an end."""
        if self._partial and self._on_line is not None:
            self._on_line(self._partial.decode(errors="replace"))
        self._partial = b""
        return bytes(self._kept)
