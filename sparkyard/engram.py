"""The rows of Engram tables that each rank reads, computed from a checkpoint's ``config.json``. Pure; numbers of rows, never bytes.

An Engram layer has one table for each n-gram size (from 2 to ``engram_max_ngram_size``) and each of ``engram_n_heads`` heads. The height of a
table is a prime: from ``engram_vocab_size`` upward the primes are taken in order, each once, over all layers of ``engram_layer_ids``. A layer's
tables lie one behind the other, and their sum is the layer's entry of ``engram_num_embeddings``, which is compared. A rank owns whole tables.

Rule and figures: facts of the standard kits, section 2.6; checked against both published heights (384,006,168 and 384,016,682 rows) and the
published ranges of rank 1 of 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate, islice
from typing import Any

from sparkyard.unlocked import Unlocked

KEYS = ("engram_layer_ids", "engram_vocab_size", "engram_max_ngram_size", "engram_n_heads")
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Bases with which Miller's and Rabin's test is exact below 3.3e24."""


def engram_rows(config: Any, world: Any) -> Any:
    """One entry for each Engram layer, in order: ``layer``, ``height``, ``ranges`` and ``even``.

    ``ranges[rank]`` is ``[first, behind the last]`` of the whole tables that the rank owns; ``even[rank]`` the same of a division
    of the rows without regard to tables (``height * rank // world``), as SGLang's packer makes it.
    What is not locked yet stays a mark. Raises ValueError for a config without Engram, or whose heights are not those of the rule.
    """
    if isinstance(config, Unlocked):
        return config
    text = _text(config)
    count, layers = (text["engram_max_ngram_size"] - 1) * text["engram_n_heads"], text["engram_layer_ids"]
    if count % world:
        raise ValueError(f"{count} Engram tables of a layer cannot be divided among {world} ranks")
    primes = _first(text["engram_vocab_size"], count * len(layers))
    tables = [primes[number * count : (number + 1) * count] for number in range(len(layers))]
    _compare(text, [sum(each) for each in tables])
    return [_layer(layer, each, world) for layer, each in zip(layers, tables, strict=True)]


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model. Raises ValueError when it has no Engram."""
    text = config.get("text_config", config)
    missing = [key for key in KEYS if key not in text]
    if missing:
        raise ValueError(f"the checkpoint's config.json has no {', '.join(missing)}")
    return text  # type: ignore[no-any-return]


def _compare(text: Mapping[str, Any], heights: list[int]) -> None:
    told = text.get("engram_num_embeddings", heights)
    if told != heights:
        raise ValueError(
            f"engram_num_embeddings of config.json is {told}, and its primes add up to {heights}"
        )


def _layer(layer: int, tables: tuple[int, ...], world: int) -> dict[str, Any]:
    bounds, each = [0, *accumulate(tables)], len(tables) // world
    height = bounds[-1]
    return {
        "layer": layer,
        "height": height,
        "ranges": [[bounds[rank * each], bounds[(rank + 1) * each]] for rank in range(world)],
        "even": [[height * rank // world, height * (rank + 1) // world] for rank in range(world)],
    }


@cache
def _first(start: int, count: int) -> tuple[int, ...]:
    """So many primes from ``start`` upward."""
    return tuple(islice(_primes(start), count))


def _primes(start: int) -> Iterator[int]:
    number = start
    while True:
        if is_prime(number):
            yield number
        number += 1


def is_prime(number: int) -> bool:
    """Whether a whole number below 3.3e24 is a prime."""
    if number < 2 or any(number % small == 0 for small in _WITNESSES):
        return number in _WITNESSES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in _WITNESSES)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    seen = pow(base, odd, number)
    return seen in (1, number - 1) or any(
        (seen := seen * seen % number) == number - 1 for _ in range(twos - 1)
    )
