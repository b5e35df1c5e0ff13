"""Inventories and lanes for tests, built directly from the recipe in tests/data/recipes/tiny."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from sparkyard.model import Inventory, Lane, Link, Node, Origin, Value
from sparkyard.recipe import Recipe

RECIPES = Path(__file__).parent.parent / "data" / "recipes"
HOME = "<discovered: home>"
COMMIT = "1" * 40
ENGRAM_CONFIG = {
    "text_config": {
        "engram_layer_ids": [1, 14],
        "engram_vocab_size": 16_000_000,
        "engram_max_ngram_size": 4,
        "engram_n_heads": 8,
        "engram_num_embeddings": [384_006_168, 384_016_682],
    }
}
"""What counts of the model's config.json for its Engram tables."""


def node(rank: int, **changes: Any) -> Node:
    """Spark rank+1: its link is on f1 ports when its rank is even, on f0 ports when it is odd."""
    port = "f1" if rank % 2 == 0 else "f0"
    values: dict[str, Any] = {
        "name": f"spark-{rank + 1}",
        "rank": rank,
        "local": rank == 0,
        "host": f"spark-{rank + 1}.local",
        "link": Link(
            f"10.0.0.{rank + 1}", f"enp1s0{port}np{port[1]}", (f"rocep1s0{port}", f"roceP2p1s0{port}")
        ),
        "root": f"{HOME}/.local/share/sparkyard",
        "models": f"{HOME}/.local/share/sparkyard/models",
    }
    return Node(**(values | changes))


def inventory(count: int = 2, **changes: Any) -> Inventory:
    nodes = tuple(node(rank) for rank in range(count))
    values: dict[str, Any] = {
        "folder": Path("inventory/test"),
        "nodes": nodes,
        "groups": {},
        "default_lane": "T",
        "revert_to": None,
    }
    return Inventory(**(values | changes))


def recipe_data() -> dict[str, Any]:
    """The recipe as YAML has it, to be changed by a test."""
    data: dict[str, Any] = yaml.safe_load((RECIPES / "tiny" / "recipe.yml").read_text())
    return copy.deepcopy(data)


def lane(
    count: int = 2, data: dict[str, Any] | None = None, env: dict[str, Value] | None = None, **settings: Any
) -> Lane:
    """The tiny lane on ``count`` nodes, with some settings changed."""
    recipe = Recipe.model_validate(data or recipe_data())
    origin = Origin("--set")
    values = {
        name: Value(settings.get(name, setting.default), origin, setting.secret)
        for name, setting in recipe.settings.items()
    }
    place = inventory(count)
    return Lane("T", recipe, RECIPES / "tiny", place, place.nodes, values, env or {})
