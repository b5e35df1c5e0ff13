"""A lane with one checkpoint from the local hub, its head on this machine, driven by the real engine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkyard.engine import Engine, Mode
from sparkyard.events import Event
from sparkyard.known_hosts import Keys
from sparkyard.locking import completed
from sparkyard.model import Inventory, Lane, Link, Manifest, Node
from sparkyard.plan import Plan
from sparkyard.recipe import CheckpointSpec, Recipe, Source
from sparkyard.resolve import gaps, known_lock
from sparkyard.resolving import Resolver
from sparkyard.step_world import Surroundings
from sparkyard.steps.adopt import adopt_steps
from sparkyard.steps.checkpoint import download_steps
from tests.unit.sample import RECIPES, recipe_data

REPO = "example/small"


def bytes_of(size: int, seed: int = 0) -> bytes:
    """Bytes that do not repeat, the same for the same seed."""
    return hashlib.shake_128(b"%d" % seed).digest(size)


def safetensors_of(size: int, seed: int = 0) -> bytes:
    """A safetensors file of exactly that size: one tensor, its header filled up with spaces."""
    room = size - 8
    for length in range(30, room + 1):
        header = json.dumps({"t": {"data_offsets": [0, room - length]}}).ljust(length).encode()
        if len(header) == length:
            return length.to_bytes(8, "little") + header + bytes_of(room - length, seed)
    raise ValueError(f"{size} bytes are too few")


def content_of(path: str, size: int, seed: int = 0) -> bytes:
    """What a repository made here has at a path."""
    return safetensors_of(size, seed) if path.endswith(".safetensors") else bytes_of(size, seed)


def make_repository(folder: Path, sizes: dict[str, int]) -> Path:
    """``<folder>/example/small`` with files of these sizes."""
    root = folder / REPO
    for seed, (path, size) in enumerate(sizes.items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content_of(path, size, seed))
    return root


class Project:
    """Inventory, lane and state folders below ``folder``; ``run`` downloads, ``adopt`` adopts."""

    def __init__(self, folder: Path, endpoint: str, workers: tuple[Node, ...] = (), **spec: Any) -> None:
        self.folder = folder
        root = folder / "head"
        head = Node(
            "spark-1", 0, True, "127.0.0.1", Link("127.0.0.1", "lo", ()), str(root), str(root / "models")
        )
        self.inventory = Inventory(folder / "inventory", (head, *workers), {}, None, None, endpoint)
        checkpoint = CheckpointSpec(
            repo=REPO, source=Source(kind="chosen", why="test"), **({"revision": "main"} | spec)
        )
        recipe = Recipe.model_validate(recipe_data()).model_copy(
            update={"checkpoints": {"small": checkpoint}}
        )
        self.lane = Lane("T", recipe, RECIPES / "tiny", self.inventory, self.inventory.nodes, {}, {})
        self.events: list[Event] = []
        self.keys = Keys(folder / "own", [])

    def limits(self, disk: int) -> None:
        limits = self.lane.recipe.limits.model_copy(update={"disk": disk})
        self.lane = replace(self.lane, recipe=self.lane.recipe.model_copy(update={"limits": limits}))

    def manifests(
        self,
        *,
        keep: bool = True,
        say: Callable[[str], None] = lambda line: None,
        wait: Callable[[float], None] | None = None,
    ) -> dict[str, Manifest]:
        """As ``invoke download`` has them: locked, or asked for, and kept after a yes (``keep``)."""
        known = known_lock(self.lane)
        if not gaps(self.lane, known):
            return known.manifests
        around = self.surroundings()
        try:
            resolver = Resolver(self.lane, around, say, wait)
            return completed(self.lane, known, resolver, lambda _found: keep, say).manifests
        finally:
            around.close()

    @property
    def manifest(self) -> Manifest:
        return self.manifests()["small"]

    def path(self, name: str = "", node: str = "spark-1") -> Path:
        base = Path(self.inventory.node(node).models) / REPO.replace("/", "--")
        return base / self.manifest.commit / name

    def surroundings(self) -> Surroundings:
        runs = self.folder / "runs"
        runs.mkdir(exist_ok=True)
        return Surroundings(self.inventory, self.folder / "own", runs, self.keys)

    def run(self, *, check: bool = False, deep: bool = False, around: Surroundings | None = None) -> int:
        """``invoke download``; the exit status. ``events`` holds what happened."""
        return self.run_plan(self.plan(deep=deep), check, around)

    def plan(self, *, deep: bool = False) -> Plan:
        return Plan("download", "T", download_steps(self.lane, self.manifests(), deep=deep))

    def adopt(self, path: Path) -> int:
        """``invoke adopt --from=PATH``."""
        return self.run_plan(Plan("adopt", "T", adopt_steps(self.lane, self.manifests(), str(path))))

    def run_plan(self, plan: Plan, check: bool = False, around: Surroundings | None = None) -> int:
        self.events = []
        place = around or self.surroundings()
        try:
            engine = Engine(place, self.events.append, Mode(check=check), lambda _lines: True)
            return engine.run(plan)
        finally:
            place.close()

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """(event, step) of everything but output."""
        return [
            (e.type, e.step) for e in self.events if e.type.startswith("step-") and e.type != "step-output"
        ]

    @property
    def said(self) -> str:
        """Everything that people would read."""
        return "\n".join(
            f"{e.message} {e.data.get('reason', '')} {e.data.get('details', '')}" for e in self.events
        )


def on_disk(path: Path) -> int:
    """Bytes that a file takes on disk; 0 while it is not there, or not any more."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def flip(path: Path, at: int = 7) -> None:
    """Change one byte and put the modification time back."""
    before = path.stat()
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
