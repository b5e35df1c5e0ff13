"""A secret that only one line knows: `start` says that later lines can neither mask it nor find the same settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sparkyard.line import Line
from sparkyard.load import find_recipes, load_all
from sparkyard.verbs import tell_passing_secrets

ROOT = Path(__file__).resolve().parents[2]
KEY = "a-key-of-many-letters"


class Told:
    """A line that keeps what is said."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, text: str, **data: Any) -> None:
        self.words += [text, *map(str, data.values())]


def told(sets: list[str], environ: dict[str, str]) -> list[str]:
    lane = load_all(ROOT / "inventory/two-spark", find_recipes(ROOT, []), "A", environ=environ, sets=sets)
    line = Told()
    tell_passing_secrets(cast("Line", line), lane)
    return line.words


def test_a_secret_of_the_line_is_named_and_not_shown():
    words = told([f"api_key={KEY}"], {})
    assert words[0].startswith("api_key is known to this line alone")
    assert words[1] == "write it into the inventory: lanes: {A: {api_key: …}}"
    assert KEY not in " ".join(words)


@pytest.mark.parametrize(
    ("sets", "environ"), [([], {}), (["context=524288"], {}), ([], {"SPARKYARD_API_KEY": KEY})]
)
def test_what_later_lines_know_too_is_passed_over(sets, environ):
    assert told(sets, environ) == []
