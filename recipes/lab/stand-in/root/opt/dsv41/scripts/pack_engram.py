"""In place of the packer of SGLang's Engram rows: the same words, the same files, the sizes that the checkpoint's config asks for.

Its rows are made up. A number of seconds in ``stand-in-seconds`` in the output folder makes each layer take so long, for tests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

MAGIC = 0x31344E4531565344
HEADER, ROW = 4096, 264
AT_ONCE = 512
"""Rows written before a line of progress."""


def told() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", type=Path, default=os.environ.get("DSV41_SOURCE", "/models/DeepSeek-V4.1-Flash")
    )
    parser.add_argument("--out", type=Path, default=os.environ.get("DSV41_PACKED_DIR", "/engram"))
    parser.add_argument("--rank", type=int, default=int(os.environ.get("NODE_RANK", "0")))
    parser.add_argument("--tp", type=int, default=int(os.environ.get("TP_SIZE", "3")))
    return parser.parse_args()


def heights(model: Path) -> Iterator[tuple[int, int]]:
    """Each Engram layer with the rows of its table, whose shard must be there."""
    config = json.loads((model / "config.json").read_text())
    text = config.get("text_config", config)
    placed = json.loads((model / "model.safetensors.index.json").read_text())["weight_map"]
    for layer, rows in zip(text["engram_layer_ids"], text["engram_num_embeddings"], strict=True):
        shard = model / placed[f"layers.{layer}.engram.embed.weight"]
        if not shard.is_file():
            raise SystemExit(f"{shard} is missing")
        yield layer, rows


def rows_of(layer: int, first: int, behind: int) -> Iterator[bytes]:
    for row in range(first, behind):
        yield hashlib.shake_256(f"{layer} {row}".encode()).digest(ROW)


def pack(given: argparse.Namespace, layer: int, total: int, seconds: float) -> None:
    """Write one layer beside its place, and move it there when it is whole."""
    first, behind = total * given.rank // given.tp, total * (given.rank + 1) // given.tp
    path = given.out / f"engram-l{layer}-r{given.rank}of{given.tp}.bin"
    size = HEADER + (behind - first) * ROW
    if path.is_file() and path.stat().st_size == size:
        print(f"layer {layer}: {path} already complete", flush=True)
        return
    part = path.with_suffix(".partial")
    with part.open("wb") as file:
        file.write(struct.pack("<6Q", MAGIC, layer, first, behind, total, ROW).ljust(HEADER, b"\0"))
        for written, row in enumerate(rows_of(layer, first, behind), 1):
            file.write(row)
            if written % AT_ONCE == 0:
                print(f"layer {layer}: {written}/{behind - first} rows", flush=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.2)
            print(f"layer {layer}: still writing", flush=True)
    part.rename(path)
    print(f"layer {layer}: wrote {path}", flush=True)


def main() -> None:
    given = told()
    slow = given.out / "stand-in-seconds"
    seconds = float(slow.read_text()) if slow.is_file() else 0.0
    for layer, total in heights(given.model):
        pack(given, layer, total, seconds)


if __name__ == "__main__":
    main()
