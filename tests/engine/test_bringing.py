"""What a build says at its end of a setting that its job brought forth, with real files, a real log and the real script of facts."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkyard.bringing import _when, tell_what_jobs_brought
from sparkyard.events import Event
from sparkyard.line import Line
from sparkyard.render import render_lane
from sparkyard.shell import LocalShell
from tests.unit import sample
from tests.unit.job_answers import rows

SECRET = "0123456789abcdef"
KEY = {
    "default": "",
    "about": "what signed it",
    "source": {"kind": "chosen", "why": "test"},
    "secret": True,
}
DATA = sample.recipe_data() | {
    "jobs": {"rows": rows(brings=[{"setting": "key", "folder": "{{ node.home }}/keys", "log": r"\bkey\b"}])}
}
LANE = sample.lane(data=DATA | {"settings": DATA["settings"] | {"key": KEY}})
RENDERED = render_lane(LANE, {})
DONE = Event("step-changed", node=LANE.head.name, step=f"job:rows@{LANE.head.name}")


def said(place: Path, *events: Event, check: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """What is told of a line with these events, on a machine whose home and runs are below ``place``."""
    found: list[tuple[str, dict[str, Any]]] = []
    around = SimpleNamespace(
        shell=lambda _name: LocalShell(LANE.head),
        inventory=LANE.inventory,
    )
    line = SimpleNamespace(
        options=SimpleNamespace(check=check),
        events=list(events),
        around=around,
        folder=Path("/inventory/my"),
        folders=SimpleNamespace(runs=place / "runs"),
        say=lambda message, **data: found.append((message, data)),
    )
    tell_what_jobs_brought(cast("Line", line), LANE, RENDERED)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_files_and_lines_are_named_and_what_is_in_them_is_not(home: Path) -> None:
    (home / "keys").mkdir()
    for number, name in enumerate(("old", "new")):
        (home / "keys" / name).write_text(SECRET)
        os.utime(home / "keys" / name, (number, number))
    container = RENDERED.jobs[0].containers[0].name
    logs = home / "runs" / "20261130T000000Z-build-T" / "logs"
    logs.mkdir(parents=True)
    log = logs / f"{LANE.head.name}-{container}.log"
    log.write_text(f"2026-11-30T08:26:34.327091870Z begins\n2026-11-30T08:26:34.327091870Z key {SECRET}\n")
    ((message, data),) = said(home, DONE)
    assert message == "the build is done; a start still needs key: what signed it"
    assert data["details"] == [
        f"files in {home}/keys on {LANE.head.name}, the newest first:",
        "  new (16 bytes, 1970-01-01 00:00 UTC)",
        "  old (16 bytes, 1970-01-01 00:00 UTC)",
        f"line 2 of the log of job rows: {log}",
    ]
    assert data["next"].startswith(
        f"write it into /inventory/my/hosts.yml: lanes: {{{LANE.name}: {{key: …}}}}"
    )
    assert SECRET not in message + repr(data)


def test_links_that_lead_in_a_circle_hide_no_file(home: Path) -> None:
    (home / "keys").mkdir()
    (home / "keys" / "loop").symlink_to(".")
    os.mkfifo(home / "keys" / "pipe")
    (home / "keys" / "key").write_text(SECRET)
    os.utime(home / "keys" / "key", (1, 1))
    (home / "keys" / "a\n  b").write_text(SECRET)
    ((_message, data),) = said(home, DONE)
    assert data["details"][0] == f"files in {home}/keys on {LANE.head.name}, the newest first:"
    assert [line.split(" (")[0] for line in data["details"][1:]] == ["  'a\\n  b'", "  key"]


def test_a_time_that_no_calendar_has_is_told_as_it_is() -> None:
    assert _when(8_589_934_591) == "2242-03-16 12:56 UTC"
    assert _when(2**62) == f"{2**62} s after 1970"
    assert _when(-(2**62)) == f"{-(2**62)} s after 1970"


def test_nothing_there_is_said_too(home: Path) -> None:
    ((_message, data),) = said(home, DONE)
    assert data["details"] == [f"look on {LANE.head.name} into {home}/keys: sudo ls -lR {home}/keys"]
    (home / "keys").mkdir()
    ((_message, data),) = said(home, DONE)
    assert data["details"] == [f"no file is in {home}/keys on {LANE.head.name}"]


def test_a_job_that_is_not_seen_done_says_nothing(home: Path) -> None:
    assert said(home) == []
    assert said(home, DONE, check=True) == []
