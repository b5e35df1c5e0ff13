"""The syntax of a Python text with exact places in it, in bytes; parts are put in without touching anything else. Pure.

Positions of ``ast`` are lines and UTF-8 bytes; what lies between two nodes (commas, comments, ends of lines, parentheses) it does
not know, and is read here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sparkyard.errors import PatchRefused

BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\r|\n")
BESIDE = re.compile(rb"#[^\r\n]*|\\(?:\r\n|\r|\n)|\s")
"""What has no meaning between two nodes: comments, continued lines, white space."""

Located = ast.expr | ast.stmt | ast.keyword | ast.alias


@dataclass(frozen=True, slots=True)
class Insertion:
    """Bytes to put in at an offset."""

    at: int
    what: bytes


@dataclass(frozen=True, slots=True)
class PythonText:
    """A text in bytes without its byte order mark, its syntax tree, and the offset of every line."""

    content: bytes
    tree: ast.Module
    lines: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> PythonText:
        """Raises PatchRefused for what this Python cannot read."""
        content = text.encode().removeprefix(BOM)
        try:
            tree = ast.parse(content.decode())
        except SyntaxError as error:
            where = f"line {error.lineno}: " if error.lineno else ""
            raise PatchRefused(f"it cannot be read as Python: {where}{error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise PatchRefused(f"it cannot be read as Python: {error}") from error
        return cls(content, tree, (0, *(found.end() for found in LINE_END.finditer(content))))

    def start(self, node: Located) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def source(self, node: Located) -> str:
        return self.content[self.start(node) : self.end(node)].decode(errors="replace")

    def line_start(self, offset: int) -> int:
        """Where the line of an offset begins."""
        return max(start for start in self.lines if start <= offset)

    def line_end(self, offset: int) -> int:
        """Where the line of an offset ends, before its line end."""
        found = LINE_END.search(self.content, offset)
        return found.start() if found else len(self.content)

    def newline(self, offset: int) -> bytes:
        """The line end of the line before, which is how this text ends its lines."""
        before = LINE_END.findall(self.content, 0, self.line_start(offset))
        return bytes(before[-1]) if before else b"\n"

    def indent(self, offset: int) -> bytes | None:
        """The white space before an offset, if there is nothing else before it on its line."""
        before = self.content[self.line_start(offset) : offset]
        return before if not before.strip() else None

    def last_sign(self, start: int, end: int) -> int:
        """The offset behind the last byte between two nodes that is neither comment nor white space; ``start`` if there is none."""
        at = last = start
        while at < end:
            beside = BESIDE.match(self.content, at, end)
            at = beside.end() if beside else at + 1
            last = last if beside else at
        return last

    def sign(self, wanted: bytes, start: int, end: int) -> int | None:
        """The offset of the first such byte between two nodes, outside of comments."""
        at = start
        while at < end:
            beside = BESIDE.match(self.content, at, end)
            if beside is None and self.content[at : at + 1] == wanted:
                return at
            at = beside.end() if beside else at + 1
        return None

    def with_insertions(self, insertions: Iterable[Insertion]) -> bytes:
        made = self.content
        for each in sorted(insertions, key=lambda each: each.at, reverse=True):
            made = made[: each.at] + each.what + made[each.at :]
        return made
