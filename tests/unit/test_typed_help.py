"""What `--list` and `--help` print fits a terminal of 80 columns, and says something of every verb and flag."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkyard.options import HELP
from sparkyard.selection import NOUNS

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 80


def namespace() -> Any:
    """The collection of tasks.py, which is no package's."""
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("tasks").namespace
    finally:
        sys.path.remove(str(ROOT))


VERBS = sorted(namespace().task_names)


def printed(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "invoke", *words],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_the_list_has_every_verb_on_lines_that_fit():
    lines = printed("--list")
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line.split()[0] for line in lines if line[:2] == "  " and line[2:3].strip()] == sorted(
        VERBS, key=lambda verb: ("." in verb, verb)
    )


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_fits(verb):
    lines = printed(verb, "--help")
    assert [line for line in lines if len(line) > WIDTH] == []
    flags = [line.split() for line in lines if line.startswith("  -")]
    assert all(len(words) > 1 for words in flags)


@pytest.mark.parametrize("verb", VERBS)
def test_the_first_line_of_a_verb_is_whole(verb):
    """``--list`` prints the first line alone: it is a sentence, and short enough for one line of ``--help``."""
    first, *more = (namespace()[verb].__doc__ or "").strip().splitlines()
    assert first.endswith(".")
    assert len(first) <= WIDTH - 2
    assert not more or more[0] == ""


def test_the_help_of_only_names_every_part():
    assert HELP["only"] == f"=PARTS: of {','.join(NOUNS)}"
