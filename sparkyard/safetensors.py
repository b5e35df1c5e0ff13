"""What a safetensors file and its index say of themselves: where the header ends the file, which shards there must be. Pure.

A file begins with 8 bytes (little-endian) that say how long its JSON header is; each tensor in it has ``data_offsets`` from the
end of the header, and the last of them is the end of the file.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
from collections.abc import Iterable, Sequence

ENDING = ".safetensors"
INDEX_ENDING = ".safetensors.index.json"
LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""


def header_length(first: bytes) -> int:
    """Bytes of the JSON header, from the first 8 of a file. Raises ValueError when they cannot be that."""
    length = int.from_bytes(first[:8], "little")
    if len(first) < 8 or not 2 <= length <= LONGEST_HEADER:
        raise ValueError("does not begin as a safetensors file")
    return length


def end_of(header: bytes) -> int:
    """Bytes that the whole file has by its header (without the 8 in front). Raises ValueError for one that cannot be read."""
    try:
        tensors = json.loads(header)
        ends = [int(told["data_offsets"][1]) for name, told in tensors.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"has a header that cannot be read ({type(error).__name__})") from None
    return 8 + len(header) + max(ends, default=0)


def fault(end: int, size: int) -> str:
    """What is wrong with a file of ``size`` bytes whose header says ``end``; nothing when they agree."""
    if end > size:
        return f"is {end - size} bytes short: its header ends at {end}, the file has {size}"
    if end < size:
        return f"is {size - end} bytes too long: its header ends at {end}, the file has {size}"
    return ""


def shards(index: bytes, path: str) -> tuple[str, ...]:
    """The files that an index names, as paths beside the index at ``path``. Raises ValueError for one that cannot be read."""
    try:
        named = {str(name) for name in json.loads(index)["weight_map"].values()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"is no index of shards ({type(error).__name__})") from None
    folder = posixpath.dirname(path)
    return tuple(sorted(posixpath.join(folder, name) for name in named))


def absent(named: Iterable[str], patterns: Sequence[str], there: Iterable[str]) -> tuple[str, ...]:
    """The named shards that the recipe's patterns ask for and that are not there.

    A recipe that takes two shards of 48 asks for no more than these two.
    """
    globs = [f"{pattern}*" if pattern.endswith("/") else pattern for pattern in patterns] or ["*"]
    known = set(there)
    return tuple(
        name for name in named if name not in known and any(fnmatch.fnmatchcase(name, g) for g in globs)
    )
