"""Unquoted YAML words: which have one meaning to every reader, and what to say of the others.

YAML 1.1, which PyYAML and Ansible read, turns ``off`` into false and ``0123`` into 83. Here such a word is a fault, not a value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import yaml

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "": None,
}
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
_DIGITS = re.compile(r"-?[1-9][0-9]*")

_TRAPS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i:yes|on|TRUE)"), "YAML reads {text} as true; write true, or quote it"),
    (re.compile(r"(?i:no|off|FALSE)"), "YAML reads {text} as false; write false, or quote it"),
    (re.compile(r"~|Null|NULL"), "YAML reads {text} as nothing; write null, or quote it"),
    (re.compile(r"[-+]?[0-9]+(:[0-9]+)+(\.[0-9]*)?"), "YAML reads {text} in base 60; quote it"),
    (
        re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?"),
        "a number with _ in it; write {digits}, or quote it",
    ),
    (
        re.compile(r"[-+]?0[0-9]+(\.[0-9]*)?"),
        "zero-padded; drop the zeros, or quote it",
    ),
    (
        re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+"),
        "a number to some readers; write it out, or quote it",
    ),
    (
        re.compile(
            r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9]+\.|\.[0-9]+|\.(?i:inf|nan))|\+[0-9.]+"
        ),
        "write {text} as a plain decimal number, or quote it",
    ),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"), "YAML reads {text} as a date; quote it"),
)


@lru_cache(maxsize=4096)
def read_plain(text: str) -> tuple[Scalar, str]:
    """The value of an unquoted word, and what is wrong with it (empty when nothing is)."""
    if text in _WORDS:
        return _WORDS[text], ""
    if _INT.fullmatch(text):
        return int(text), ""
    if _FLOAT.fullmatch(text):
        return float(text), ""
    return text, _complaint(text)


def is_text(text: str) -> bool:
    """Whether the unquoted word is plain text to every reader."""
    value, complaint = read_plain(text)
    return isinstance(value, str) and not complaint


def _complaint(text: str) -> str:
    if _DIGITS.fullmatch(text):
        return f"YAML reads these {len(text.lstrip('-'))} digits as a number; quote it"
    for pattern, words in _TRAPS:
        if pattern.fullmatch(text):
            return f'{words.format(text=text, digits=text.replace("_", ""))}: "{text}"'
    return "" if _is_str(text) else f'YAML does not read {text} as text; quote it: "{text}"'


def _is_str(text: str) -> bool:
    resolver: Any = _resolver()
    return bool(resolver.resolve(yaml.ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")


@lru_cache(maxsize=1)
def _resolver() -> yaml.resolver.Resolver:
    return yaml.resolver.Resolver()
