"""Secrets that are made once and kept on the head: what of a file is taken, and what is refused without being told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from sparkyard.errors import ConfigError
from sparkyard.generated import with_secrets
from sparkyard.load import find_recipes, load_all

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lane(tmp_path, monkeypatch):
    """Lane D of the example inventory, on a head whose home is a folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    recipes = find_recipes(ROOT, [], {})
    made = load_all(ROOT / "inventory/four-spark", recipes, "D", environ={}, sets=[])
    folder = tmp_path / ".local/share/sparkyard/secrets"
    folder.mkdir(parents=True)
    return SimpleNamespace(lane=made, token=folder / "D-agent_token", code=folder / "D-join_code")


def test_what_is_made_is_what_the_setting_allows_and_stays(lane):
    first = with_secrets(lane.lane, read=True, make=True)
    again = with_secrets(lane.lane, read=True, make=False)
    assert len(first.settings["agent_token"].value) == 48
    assert first.settings["agent_token"].value == again.settings["agent_token"].value
    assert lane.token.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ["too-short", "", "two words that are together long enough", "x" * 20 + "\n" + "x" * 20]
)
def test_a_file_that_was_edited_to_something_else_is_refused_and_not_told(lane, text):
    lane.token.write_text(text)
    lane.code.write_text("also a bad one")
    with pytest.raises(ConfigError) as told:
        with_secrets(lane.lane, read=True, make=True)
    lines = [str(fault) for fault in told.value.faults]
    assert [line.split(": ")[:2] for line in lines] == [
        [str(lane.token), "agent_token"],
        [str(lane.code), "join_code"],
    ]
    assert "one word of 32 or more ASCII characters is expected, found another text of" in lines[0]
    assert "remove the file for a new secret" in lines[0]
    assert not text or text not in lines[0]
    assert "also a bad" not in lines[1]
    looked = with_secrets(lane.lane, read=True, make=False, judge=False)  # stop, status
    assert looked.settings["join_code"].value == "also a bad one"
