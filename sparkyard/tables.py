"""Tables of ``config``, ``status``, ``render``, ``trust``, ``adopt``, ``init`` and the lab: rows are findings.

A row is one ``finding`` event whose data holds the row and, under ``table``, the name of its table. The human view collects
the rows of a table and prints them folded to the width; ``--json`` has each row as a line. Values are never cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkyard.events import Event

Row = Mapping[str, Any]

TABLES: Mapping[str, tuple[str, ...]] = {
    "show": ("name", "value", "source", "about"),
    "sources": ("key", "value"),
    "published": ("what", "theirs", "ours", "why"),
    "diff": ("what", "lane", "with"),
    "config": ("node", "key", "value", "origin"),
    "status": ("node", "rank", "of", "state", "since", "health", "image", "told"),
    "render": ("node", "name", "path", "mode", "bytes"),
    "trust": ("node", "address", "type", "fingerprint", "seen"),
    "adopt": ("checkpoint", "file", "bytes", "result"),
    "lock": ("pin", "asked", "found", "amount"),
    "lock-files": ("checkpoint", "file", "bytes", "content"),
    "template": ("text", "pristine", "patched"),
    "parity": ("conversation", "result", "why"),
    "lanes": ("lane", "title", "ranks", "fabric", "possible", "here"),
    "lanes-nodes": ("lane", "node", "memory", "disk", "there"),
    "lanes-figures": ("figure", "lane", "value", "conditions"),
    "lanes-answers": ("if you mostly", "run", "why", "possible here"),
    "init": ("file", "result"),
    "lab": ("node", "address", "link", "state"),
}
"""The columns of each table: keys of its rows, and also their headings, unless the first row has better ones in ``headings``.
Further keys of a row are for ``--json`` only."""

GAP = "  "
NARROWEST = 6
SEPARATOR = re.compile(r"[/._,:;=@-](?=[^/._,:;=@-])")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def known(table: str) -> bool:
    return table in TABLES


def finding(table: str, row: Row, message: str = "") -> Event:
    """One row of a table as an event. Raises KeyError for a table without columns."""
    columns = TABLES[table]
    words = message or " ".join(text for text in (cell(row.get(key)) for key in columns) if text)
    return Event("finding", words, node=str(row.get("node") or ""), data={"table": table, **row})


def cell(value: Any) -> str:
    """A value as the text of one cell: empty for None, lists with commas, booleans as an inventory and `--set` take them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    return CONTROL.sub(" ", str(value))


def widths(texts: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column: its longest text, and where the sum is too wide, narrower where that adds the fewest lines."""
    columns = list(zip(*texts, strict=True))
    lengths = [[len(text) for text in column] for column in columns]
    found = [max(column) for column in lengths]
    room = width - len(GAP) * (len(found) - 1)
    for least in ([_least(column, room // len(columns)) for column in columns], [NARROWEST] * len(columns)):
        while sum(found) > room and any(size > low for size, low in zip(found, least, strict=True)):
            candidates = [number for number, size in enumerate(found) if size > least[number]]
            found[min(candidates, key=lambda n: (_more_lines(lengths[n], found[n]), -found[n]))] -= 1
    return found


def _least(column: Sequence[str], share: int) -> int:
    """What a column is not made narrower than while others can give: its longest word, and no more than its share."""
    longest = max((len(word) for text in column for word in text.split()), default=0)
    return max(NARROWEST, min(longest, share))


def _more_lines(lengths: Sequence[int], size: int) -> int:
    """How many lines a column gains when it loses one character of its size."""
    return sum(-(-length // (size - 1)) + (-length // size) for length in lengths)


def folded(table: str, rows: Iterable[Row], width: int) -> list[str]:
    """The rows as lines of text below a heading; a long value goes on below itself. Columns without any value are left out."""
    rows = list(rows)
    columns = [key for key in TABLES[table] if any(cell(row.get(key)) for row in rows)] or list(TABLES[table])
    headings: Mapping[str, str] = rows[0].get("headings", {}) if rows else {}
    texts = [
        [headings.get(key, key) for key in columns],
        *([cell(row.get(key)) for key in columns] for row in rows),
    ]
    wide = widths(texts, width)
    return [line for text in texts for line in lines_of_row(text, wide)]


def wrapped(text: str, size: int) -> list[str]:
    """The text in lines of at most ``size`` characters; a word that is longer is broken behind a separator where it has one."""
    words = [piece for word in text.split() for piece in _pieces(word, size)]
    lines: list[str] = []
    for word, joined in words:
        if lines and not joined and len(lines[-1]) + 1 + len(word) <= size:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _pieces(word: str, size: int) -> Iterable[tuple[str, bool]]:
    """(piece, whether it goes on what stands before it)."""
    joined = False
    while len(word) > size:
        cuts = [match.end() for match in SEPARATOR.finditer(word[:size]) if match.end() * 3 >= size]
        cut = max(cuts, default=size)
        yield word[:cut], joined
        word, joined = word[cut:], True
    yield word, joined


def lines_of_row(texts: Sequence[str], wide: Sequence[int]) -> list[str]:
    """One row as lines, each cell folded within its column."""
    cells = [wrapped(text, size) or [""] for text, size in zip(texts, wide, strict=True)]
    height = max(map(len, cells))
    padded = [lines + [""] * (height - len(lines)) for lines in cells]
    return [
        GAP.join(f"{part:<{size}}" for part, size in zip(parts, wide, strict=True)).rstrip()
        for parts in zip(*padded, strict=True)
    ]
