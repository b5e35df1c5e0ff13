"""What an export leaves: blobs in the cache, and a package that is a hard link to one of them, there from its first byte on."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CACHE = Path("/root/.cache/flare")
CONFIG = Path("/root/.config/flare")
PUBLISHER = "local-development"
PIECES = 16
PIECE = 64 * 1024


def shard(rank: int) -> Path:
    """The weights of a rank, as they came from rank 0."""
    return CACHE / "weights" / f"rank{rank}.bin"


def weights(checkpoint: Path, rank: int, ranks: int) -> bytes:
    """What a rank is given: made of the index of the checkpoint, so that it is the same every time."""
    index = (checkpoint / "model.safetensors.index.json").read_bytes()
    return hashlib.shake_256(index + f"{rank} of {ranks}".encode()).digest(PIECE)


def compiled(capacity: dict[str, Any]) -> str:
    """Keep the compiled forward of a capacity; returns what is wrong when there is one of another."""
    folder = CACHE / "compiled-forward"
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "capacity.json"
    if known.is_file() and json.loads(known.read_text()) != capacity:
        return f"the compiled forward in {folder} is of another capacity: {known.read_text().strip()}; move it aside"
    known.write_text(json.dumps(capacity, sort_keys=True) + "\n")
    return ""


def signing_key() -> str:
    """The development key of this machine, made when there is none."""
    path = CONFIG / "keys" / PUBLISHER
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hashlib.sha256(os.urandom(32)).hexdigest()[:32] + "\n")
    return path.read_text().strip()


def write(output: Path, about: dict[str, Any], tell: Callable[[str], None]) -> None:
    """Write the package piece by piece into a blob of the cache, with the package's own name linked to it from the start."""
    blob = CACHE / "blobs" / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    blob.parent.mkdir(parents=True, exist_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    blob.unlink(missing_ok=True)
    output.unlink(missing_ok=True)
    with blob.open("wb") as file:
        os.link(blob, output)
        for number, piece in enumerate(_pieces(about), 1):
            file.write(piece)
            file.flush()
            tell(f"written {number} of {PIECES + 1}")
            time.sleep(0.02)


def _pieces(about: dict[str, Any]) -> Iterator[bytes]:
    header = {"__metadata__": {"flare": json.dumps(about, sort_keys=True)}}
    spans = {"runtime": {"dtype": "U8", "shape": [PIECES * PIECE], "data_offsets": [0, PIECES * PIECE]}}
    text = json.dumps(header | spans).encode()
    yield struct.pack("<Q", len(text)) + text
    for number in range(PIECES):
        yield hashlib.shake_256(f"piece {number}".encode()).digest(PIECE)


def read(path: Path) -> dict[str, Any]:
    """What a package says of itself. Raises ValueError for one that is not whole."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    if path.stat().st_size != 8 + length + header["runtime"]["data_offsets"][1]:
        raise ValueError(f"{path} is not whole")
    about: dict[str, Any] = json.loads(header["__metadata__"]["flare"])
    return about
