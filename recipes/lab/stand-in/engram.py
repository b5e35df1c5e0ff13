"""The rows of Engram tables that a rank of vLLM reads, as its own layout makes them: heights are primes, a rank has whole tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, count, islice
from pathlib import Path


def rows(model: Path, rank: int, world: int) -> Iterator[tuple[int, int, int]]:
    """(layer, first row, the one behind the last) of each Engram layer."""
    config = json.loads((model / "config.json").read_text())
    text = config.get("text_config", config)
    tables = (text["engram_max_ngram_size"] - 1) * text["engram_n_heads"]
    layers = text["engram_layer_ids"]
    heights = list(islice(primes(text["engram_vocab_size"]), tables * len(layers)))
    each = tables // world
    for number, layer in enumerate(layers):
        bounds = [0, *accumulate(heights[number * tables : (number + 1) * tables])]
        yield layer, bounds[rank * each], bounds[(rank + 1) * each]


def primes(start: int) -> Iterator[int]:
    """From a (small) number upward."""
    return (
        number
        for number in count(start)
        if number > 1 and all(number % low for low in range(2, int(number**0.5) + 1))
    )
