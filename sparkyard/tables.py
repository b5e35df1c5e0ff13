"""Tables of ``config``, ``status``, ``render``, ``trust``, ``adopt``, ``init`` and the lab: rows are findings.

A row is one ``finding`` event whose data holds the row and, under ``table``, the name of its table. The human view collects
the rows of a table and prints them folded to the width; ``--json`` has each row as a line. Values are never cut.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkyard.events import Event

Row = Mapping[str, Any]

TABLES: Mapping[str, tuple[str, ...]] = {
    "config": ("node", "key", "value", "origin"),
    "status": ("node", "rank", "state", "since", "health", "image", "drift"),
    "render": ("node", "name", "path", "mode", "bytes"),
    "trust": ("node", "address", "type", "fingerprint", "seen"),
    "adopt": ("checkpoint", "file", "bytes", "result"),
    "lock": ("pin", "asked", "found", "amount"),
    "lock-files": ("checkpoint", "file", "bytes", "content"),
    "init": ("file", "result"),
    "lab": ("node", "address", "link", "state"),
}
"""The columns of each table: keys of its rows, and also their headings. Further keys of a row are for ``--json`` only."""

GAP = "  "
NARROWEST = 6
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def known(table: str) -> bool:
    return table in TABLES


def finding(table: str, row: Row, message: str = "") -> Event:
    """One row of a table as an event. Raises KeyError for a table without columns."""
    columns = TABLES[table]
    words = message or " ".join(text for text in (cell(row.get(key)) for key in columns) if text)
    return Event("finding", words, node=str(row.get("node") or ""), data={"table": table, **row})


def cell(value: Any) -> str:
    """A value as the text of one cell: empty for None, lists with commas, yes and no for booleans."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    return CONTROL.sub(" ", str(value))


def widths(texts: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column: its longest text, and where the sum is too wide, narrower where that adds the fewest lines."""
    lengths = [[len(text) for text in column] for column in zip(*texts, strict=True)]
    found = [max(column) for column in lengths]
    room = width - len(GAP) * (len(found) - 1)
    while sum(found) > room and max(found) > NARROWEST:
        candidates = [number for number, size in enumerate(found) if size > NARROWEST]
        found[min(candidates, key=lambda n: (_more_lines(lengths[n], found[n]), -found[n]))] -= 1
    return found


def _more_lines(lengths: Sequence[int], size: int) -> int:
    """How many lines a column gains when it loses one character of its size."""
    return sum(-(-length // (size - 1)) + (-length // size) for length in lengths)


def folded(table: str, rows: Iterable[Row], width: int) -> list[str]:
    """The rows as lines of text below a heading; a long value goes on below itself. Columns without any value are left out."""
    rows = list(rows)
    columns = [key for key in TABLES[table] if any(cell(row.get(key)) for row in rows)] or list(TABLES[table])
    texts = [[*columns], *([cell(row.get(key)) for key in columns] for row in rows)]
    wide = widths(texts, width)
    return [line for text in texts for line in lines_of_row(text, wide)]


def lines_of_row(texts: Sequence[str], wide: Sequence[int]) -> list[str]:
    """One row as lines, each cell folded within its column."""
    cells = [
        textwrap.wrap(text, size, break_on_hyphens=False) or [""]
        for text, size in zip(texts, wide, strict=True)
    ]
    height = max(map(len, cells))
    padded = [lines + [""] * (height - len(lines)) for lines in cells]
    return [
        GAP.join(f"{part:<{size}}" for part, size in zip(parts, wide, strict=True)).rstrip()
        for parts in zip(*padded, strict=True)
    ]
