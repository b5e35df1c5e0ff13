"""What an engine leaves on its node's disk: a file of prepared weights a rank, and kept prompts by identity."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from rendezvous import say
from styles import Given

IDENTITY = (
    "TF_DS_KV",
    "TF_DS_REPLAY",
    "TF_DS_REPLAY_FLOOR",
    "TF_DS_PREFILL_CHUNK",
    "TF_DS_KERNELS",
    "TF_DS_ENGRAM",
    "TF_DS_VISION_EXTRA",
)
"""Variables of which a change makes another identity, and with it loses every kept prompt."""


def prepare(given: Given, rank: int, environment: Mapping[str, str]) -> None:
    """The rank cache and the token map at the first start; the identity's own spill folder, and no other. Raises OSError as the engine would."""
    if folder := environment.get("TF_DS_RANK_CACHE"):
        rank_cache(Path(folder), rank, given.number("world", 1))
    if path := environment.get("TF_DS_TOKEN_MAP"):
        token_map(Path(path), rank)
    if float(environment.get("TF_DS_SPILL_GIB") or 0) > 0:
        top = environment.get("TF_DS_SPILL_DIR") or "~/.cache/tensorfold/dsv41-spill"
        spill(Path(top).expanduser(), rank, identity(given, environment))


def rank_cache(folder: Path, rank: int, world: int) -> None:
    made = sorted(folder.glob(f"rank{rank}of{world}-*.bin"))  # by a job of its own
    path = made[0] if made else folder / f"rank{rank}of{world}.bin"
    if path.is_file():
        say(rank, f"rank cache: {path} is used again")
        return
    say(rank, f"rank cache: writing {path}")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(hashlib.shake_256(path.name.encode()).digest(4096))


def token_map(path: Path, rank: int) -> None:
    if not path.exists():
        say(rank, f"token map: writing {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def identity(given: Given, environment: Mapping[str, str]) -> str:
    """Two ranks with one identity restore each other's prompts; any other identity is deleted."""
    index = Path(given.text("model")) / "model.safetensors.index.json"
    parts = [environment.get(name) for name in IDENTITY]
    weights = index.read_text() if index.is_file() else ""
    return hashlib.sha256(json.dumps([parts, weights, given.text("world")]).encode()).hexdigest()[:16]


def spill(top: Path, rank: int, name: str) -> None:
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    for other in sorted(top.iterdir()):
        if other.name != name and other.is_dir() and not os.path.ismount(other):
            say(rank, f"spill: {other.name} has another identity, deleted")
            while other.exists():
                with contextlib.suppress(FileNotFoundError):  # another rank of this node deletes it too
                    shutil.rmtree(other)
    (top / name).mkdir(mode=0o700, exist_ok=True)
    say(rank, f"spill: identity {name} in {top}")
