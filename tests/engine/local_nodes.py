"""Nodes that are this machine: the engine's real parts (facts script, shell, executors) without ssh."""

from __future__ import annotations

from pathlib import Path

from sparkyard.known_hosts import Keys
from sparkyard.model import Inventory, Link, Node
from sparkyard.step_world import Surroundings


def local_node(name: str, rank: int, folder: Path) -> Node:
    root = folder / name
    root.mkdir(parents=True, exist_ok=True)
    link = Link(f"127.0.0.{rank + 1}", "lo", ())
    return Node(name, rank, True, link.address, link, str(root), str(root / "models"))


def surroundings(folder: Path, *names: str) -> Surroundings:
    nodes = tuple(local_node(name, rank, folder) for rank, name in enumerate(names or ("spark-1", "spark-2")))
    inventory = Inventory(folder, nodes, {}, None, None)
    runs = folder / "runs"
    runs.mkdir()
    return Surroundings(inventory, folder / "own", runs, Keys(folder / "own", []))
