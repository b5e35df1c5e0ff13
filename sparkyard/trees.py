"""What a node's answers say of a checkpoint: parsers of ``ask_tree``, ``ask_offer`` and ``ask_disk`` (scripts/node/tree.sh). Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from sparkyard.errors import CouldNotCheck
from sparkyard.manifest import INCOMING, digest, unanswered
from sparkyard.model import RemoteFile
from sparkyard.plan import Answer

Key = tuple[str, int, int, int, int]
"""Filesystem id, inode, size, mtime_ns, ctime_ns: what a file's proof hangs on."""

_ENTRY = re.compile(r"(?m)^//([a-zA-Z])\t(\d+)\t(\d+)\t(\d+)\t(-?\d+)\.(\d{9})\d*\t(-?\d+)\.(\d{9})\d*\t")
NOT_A_FILE = "not a file: "
"""What ``tree_text`` says of something else in the place of a record."""
_LEDGER_LINE = re.compile(r"(\S+)\t(\d+)\t(\d+)\t(-?\d+)\t(-?\d+)\t((?:sha256|blob):[0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A directory entry: ``kind`` is find's letter (f for a regular file), ``allocated`` the bytes it takes on disk."""

    path: str
    kind: str
    inode: int
    size: int
    allocated: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkpoint's folder on a node, with its ledger and seal."""

    fs: str
    files: Mapping[str, Seen]
    incoming: Mapping[str, Seen]
    ledger: Mapping[Key, str]
    seal: str

    def known(self, path: str) -> str:
        """The digest that the ledger has for a file as it lies there now; empty when it must be read."""
        seen = self.files[path]
        return self.ledger.get((self.fs, seen.inode, seen.size, seen.mtime_ns, seen.ctime_ns), "")

    def link_above(self, path: str) -> str:
        """The first parent of a path that is not a real folder, or nothing. Writing below it would lead elsewhere."""
        parts = path.split("/")
        parents = ["/".join(parts[:count]) for count in range(1, len(parts))]
        return next((parent for parent in parents if parent in self.files), "")


@dataclass(frozen=True, slots=True)
class Disk:
    """A filesystem: its id, the bytes that we may still write, and the path that was looked at."""

    fs: str
    available: int
    at: str


def parse_tree(answer: Answer, node: str, what: str) -> Tree:
    """The tree in an answer. Raises CouldNotCheck for one that failed or was cut short."""
    head, ledger, seal = _sections(answer, node, what)
    first, _, listing = head.partition("\n//")
    fs = re.fullmatch(r"tree 1\nfs ([0-9a-f]+)\n?", first if first.endswith("\n") else f"{first}\n")
    if not fs:
        raise unanswered(node, what, f"it began with {first[:80]!r}")
    entries = _entries(f"//{listing}" if listing else "", node, what)
    mine = f"{INCOMING}/"
    return Tree(
        fs=fs.group(1),
        files={seen.path: seen for seen in entries if not seen.path.startswith(mine)},
        incoming={seen.path.removeprefix(mine): seen for seen in entries if seen.path.startswith(mine)},
        ledger=parse_ledger(ledger),
        seal=seal,
    )


def _sections(answer: Answer, node: str, what: str) -> tuple[str, str, str]:
    refuse_cut(answer, node, what)
    text = answer.out.rstrip("\n").removesuffix("//done")
    try:
        rest, seal = text.rsplit("\n//seal\n", 1)
        head, ledger = rest.rsplit("\n//ledger\n", 1)
    except ValueError:
        raise unanswered(node, what, "a part of the answer is missing") from None
    return head, ledger, seal.strip("\n")


def _in_the_way(node: str, path: str) -> CouldNotCheck:
    return CouldNotCheck(
        f"{path} is no regular file, and sparkyard keeps a record there",
        node=node,
        next_step=f"look at it and remove it: rm -r -- {shlex.quote(path)}",
    )


def refuse_cut(answer: Answer, node: str, what: str) -> None:
    """Raises CouldNotCheck for an answer that failed or does not end as it must."""
    if answer.status != 0:
        last = (answer.err.strip().splitlines() or [f"status {answer.status}"])[-1]
        if last.startswith(NOT_A_FILE):
            raise _in_the_way(node, last.removeprefix(NOT_A_FILE))
        raise unanswered(node, what, last)
    if not answer.out.rstrip("\n").endswith("\n//done"):
        raise unanswered(node, what, "the answer was cut short")


def _entries(listing: str, node: str, what: str) -> list[Seen]:
    marks = list(_ENTRY.finditer(listing))
    if bool(listing) != bool(marks) or (marks and marks[0].start() != 0):
        raise unanswered(node, what, f"its list of files began with {listing[:80]!r}")
    if not marks:
        return []
    ends = [mark.start() - 1 for mark in marks[1:]] + [len(listing)]
    return [_entry(mark, listing[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]


def _entry(mark: re.Match[str], path: str) -> Seen:
    kind, inode, size, blocks, mtime, mtime_part, ctime, ctime_part = mark.groups()
    return Seen(
        path=path,
        kind=kind,
        inode=int(inode),
        size=int(size),
        allocated=int(blocks) * 512,
        mtime_ns=int(mtime) * 10**9 + int(mtime_part),
        ctime_ns=int(ctime) * 10**9 + int(ctime_part),
    )


def parse_ledger(text: str) -> dict[Key, str]:
    """The proofs in a ledger. A line that is not whole is no proof: its file is read again."""
    lines = [match.groups() for line in text.split("\n") if (match := _LEDGER_LINE.fullmatch(line))]
    return {(fs, int(inode), int(size), int(m), int(c)): known for fs, inode, size, m, c, known in lines}


def parse_disk(answer: Answer, node: str, what: str) -> Disk:
    """The filesystem in an answer. Raises CouldNotCheck for one that failed or was cut short."""
    refuse_cut(answer, node, what)
    found = re.fullmatch(
        r"disk 1\nfs ([0-9a-f]+)\navailable (\d+)\nat (.+)\n//done\n?", answer.out, re.DOTALL
    )
    if not found:
        raise unanswered(node, what, f"it began with {answer.out[:80]!r}")
    return Disk(found.group(1), int(found.group(2)), found.group(3))


def holds(tree: Tree, file: RemoteFile) -> bool:
    """Whether a regular file of the right size lies in its place."""
    seen = tree.files.get(file.path)
    return seen is not None and seen.kind == "f" and seen.size == file.size


def proven(tree: Tree, file: RemoteFile) -> bool:
    """Whether the file lies in its place and the ledger knows its content to be right."""
    return holds(tree, file) and tree.known(file.path) == digest(file)
