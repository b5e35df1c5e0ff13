"""What is kept on this machine: folders, run folders, records without secrets."""

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkyard import state
from sparkyard.state import Folders, Rank, folders, make_run_folder, new_record, typed_line, write_json

WHEN = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
TOKEN = "hf_plantedTOKEN0123456789"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_xdg_variables_win_when_they_are_absolute():
    home = Path("/home/spark")
    given = {"XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "", "XDG_DATA_HOME": "relative"}
    assert folders(given, home) == Folders(
        Path("/s/sparkyard"), home / ".cache/sparkyard", home / ".local/share/sparkyard"
    )
    assert folders({}, home).runs == home / ".local/state/sparkyard/runs"


def test_sparkyards_own_variables_name_a_folder_outright():
    given = {"SPARKYARD_STATE": "/own", "XDG_STATE_HOME": "/s", "SPARKYARD_CACHE": "relative"}
    found = folders(given, Path("/home/spark"))
    assert (found.state, found.cache) == (Path("/own"), Path("/home/spark/.cache/sparkyard"))


def test_run_folders_are_private_named_by_time_and_never_shared(tmp_path):
    runs = tmp_path / "state" / "runs"
    made = [make_run_folder(runs, "download+build start", "A", WHEN) for _ in range(2)]
    assert [path.name for path in made] == [
        "20261129T120000Z-download+build_start-A",
        "20261129T120000Z-download+build_start-A-2",
    ]
    assert {mode(path) for path in (runs, *made)} == {0o700}


def test_a_lane_name_cannot_leave_the_folder(tmp_path):
    assert make_run_folder(tmp_path, "status", "../../etc", WHEN).parent == tmp_path


def test_only_the_last_runs_are_kept_and_nothing_else_is_touched(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "20200101T000000Z-a-link").symlink_to(tmp_path / "notes")
    for number in range(5):
        folder = make_run_folder(tmp_path, "stop", "A", WHEN + timedelta(seconds=number), keep=3)
        (folder / "record.json").write_text("{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "20200101T000000Z-a-link",
        "20261129T120002Z-stop-A",
        "20261129T120003Z-stop-A",
        "20261129T120004Z-stop-A",
        "notes",
    ]


def test_json_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_json(path, {"a": 1})
    assert (json.loads(path.read_text()), mode(path)) == ({"a": 1}, 0o600)

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_says_who_what_where_and_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/x/invoke", "start", "--lane=A", "--set", f"api_key={TOKEN}"])
    rank = Rank(
        "spark-1", 0, ["docker", "run", "-e", f"KEY={TOKEN}"], {"KEY": TOKEN, TOKEN: "x"}, "sha256:1", "abc"
    )
    record = replace(new_record("start", "A", ["spark-1", "spark-2"], WHEN), ranks=(rank,))
    record.write(tmp_path, [TOKEN])
    text = (tmp_path / "record.json").read_text()
    data = json.loads(text)
    assert TOKEN not in text
    assert data["typed"] == "invoke start --lane=A --set 'api_key=********'"
    assert data["ranks"][0]["argv"] == ["docker", "run", "-e", "KEY=********"]
    assert (data["lane"], data["nodes"], data["started"]) == (
        "A",
        ["spark-1", "spark-2"],
        "2026-11-29T12:00:00.000Z",
    )
    assert data["status"] is None  # until it has ended
    assert set(data["versions"]) == {"sparkyard", "python", "invoke"}
    assert data["who"]
    assert data["host"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["invoke", "start", "--set=lanes.A.api_key=s3"], "invoke start '--set=lanes.A.api_key=********'"),
        (["invoke", "start", "--set", "HF_TOKEN=s3"], "invoke start --set 'HF_TOKEN=********'"),
        (["invoke", "start", "--set", "port=8000"], "invoke start --set port=8000"),
        (["invoke", "start", "--set", "monkey=1"], "invoke start --set monkey=1"),
        (["invoke", "logs", "key=1"], "invoke logs key=1"),
    ],
)
def test_the_typed_line_hides_settings_with_secret_names(words, line):
    assert typed_line(words) == line


def test_the_user_without_a_name_is_a_number(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert state.current_user() == str(os.getuid())
