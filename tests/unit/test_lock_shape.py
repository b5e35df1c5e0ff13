"""Lock files that were cut, merged or edited by hand: told in plain words, all at once, whatever they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkyard.errors import ConfigError
from sparkyard.lock import Lock, Locked, format_lock, parse_lock, read_lock
from sparkyard.model import Manifest, RemoteFile

FILE = RemoteFile("a.safetensors", 3, "0" * 64, "")
WHOLE = format_lock(Lock({"weights": Locked("main", Manifest("o/r", "1" * 40, (FILE,)))}))
PYTHON = ("Expecting", "NoneType", "indices", "object", "subscriptable", "column 1 (char", "KeyError")
"""Words that only a programmer reads."""


def told(text: str) -> list[str]:
    """Every fault, as `key: what` with its line."""
    with pytest.raises(ConfigError) as raised:
        parse_lock(text, "locks/A.json")
    assert "or delete it to resolve the pins anew" in (raised.value.next_step or "") or "version" in str(
        raised.value.faults
    )
    return [f"{fault.line}|{fault.key}|{fault.message}" for fault in raised.value.faults]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["0||is empty"]),
        (" \n", ["0||is empty"]),
        (WHOLE[: len(WHOLE) // 2], ["8||ends too early: the rest of it is missing"]),
        (WHOLE.replace('"size": 3', "=="), ["11||is no JSON from column 6 on"]),
        ("<<<<<<< HEAD\n" + WHOLE, ["1||has the marks of a merge in it"]),
        ("[]", ["0||a mapping is expected, found an empty list"]),
        ("null", ["0||a mapping is expected, found nothing"]),
        ("{}", ["0|checkpoints|is missing", "0|version|is missing"]),
        (
            WHOLE.replace('"size": 3', '"size": "3"').replace('"repo": "o/r"', '"repo": 7'),
            [
                '0|checkpoints.weights.files.0.size|a whole number of bytes is expected, found "3"',
                "0|checkpoints.weights.repo|text is expected, found the number 7",
            ],
        ),
        (
            '{"version": 3, "checkpoints": {}, "git": {"kit": {"url": "u", "commit": null}}}',
            ["0|git.kit.asked|is missing", "0|git.kit.commit|text is expected, found nothing"],
        ),
    ],
)
def test_what_is_wrong_is_told_in_plain_words(text, faults):
    found = told(text)
    assert sorted(found) == sorted(faults)
    assert [fault for fault in found if any(word in fault for word in PYTHON)] == []


def test_bytes_that_are_no_text_are_told(tmp_path: Path):
    path = tmp_path / "A.json"
    path.write_bytes(b"{\xff}")
    with pytest.raises(ConfigError) as raised:
        read_lock(path)
    assert "is no text: byte 1 is not UTF-8" in str(raised.value.faults[0].message)


KEYS = st.sampled_from(
    ("version", "checkpoints", "git", "images", "files", "repo", "revision", "commit", "path", "size", "config", "patterns", "url", "x")
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str) -> object:
    """The lock, or the faults; any other end fails the test."""
    try:
        return parse_lock(text, "A.json")
    except ConfigError as error:
        return error.faults


@given(JSON)
def test_whatever_a_lock_file_holds_ends_in_a_lock_or_in_faults(body):
    assert parsed(json.dumps(body))


@given(
    st.dictionaries(
        st.sampled_from(("repo", "revision", "commit", "files", "config", "patterns")), JSON, max_size=6
    )
)
def test_whatever_an_entry_holds_ends_in_a_lock_or_in_faults(entry):
    assert parsed(json.dumps({"version": 3, "checkpoints": {"a": entry}}))


@given(st.integers(0, len(WHOLE) - 2))
def test_a_lock_that_was_cut_anywhere_is_told(at):
    assert told(WHOLE[:at])
