"""Views and records when the machine does not play along: full disks, odd terminals, secrets in what is shown."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path

import pytest

from sparkyard.errors import SystemRefused
from sparkyard.events import Event
from sparkyard.executors.news import LogFile
from sparkyard.plan import Plan
from sparkyard.recording import Recording
from sparkyard.report import JsonView, MultiView, human_view
from tests.unit import happenings

FULL = Path("/dev/full")
SECRET = "hunter2hunter2"


@pytest.mark.parametrize("view", [JsonView, human_view])
def test_a_full_disk_below_standard_output_is_told_once_and_the_other_views_go_on(view):
    gone: list[int | None] = []
    kept = io.StringIO()
    with FULL.open("w", encoding="utf-8", buffering=1) as stream:
        views = MultiView([view(stream), JsonView(kept)], on_gone=lambda error: gone.append(error.errno))
        views.handle(happenings.started())
        views.handle(Event("finding", "still here"))
        views.close()
    assert gone == [errno.ENOSPC]
    assert len(kept.getvalue().splitlines()) == 2


def test_a_record_that_cannot_be_written_is_told_once_and_ends_nothing(tmp_path):
    lost: list[OSError] = []
    recording = Recording(tmp_path, ("start",), Plan("start", "A", ()), False, lost.append)
    (recording.folder / "events.jsonl").symlink_to(FULL)
    views = MultiView([recording.view])
    for _ in range(2):
        views.handle(happenings.started())
    recording.end(0)
    views.close()
    assert [error.errno for error in lost] == [errno.ENOSPC]
    assert json.loads((recording.folder / "record.json").read_text())["status"] == 0


def test_no_view_sees_a_secret_whatever_carries_it(tmp_path):
    out = io.StringIO()
    views = MultiView([JsonView(out)])
    views.mask([SECRET, ""])
    views.handle(Event("step-failed", f"key {SECRET}", "n", "s:x@n", {"details": [f"log: {SECRET}"]}))
    assert SECRET not in out.getvalue()
    assert out.getvalue().count("********") == 2
    log = LogFile(tmp_path / "logs", "n", "c", (SECRET,))
    log.add(f"KEY IS {SECRET}")
    log.close()
    assert log.path.read_text() == "KEY IS ********\n"


@pytest.mark.parametrize("columns", ["0", "1", "7", "40"])
def test_any_width_of_a_terminal_can_be_folded_to(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    view = human_view(stream)
    view.handle(happenings.started())
    view.handle(Event("finding", "words " * 30))
    view.handle(Event("finding", "", "spark-1", data={"table": "lab", "node": "spark-1", "state": "ready"}))
    view.close()
    assert stream.getvalue().count("words") == 30


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device\n  next: make room"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x"),
            "/x: Permission denied\n  next: make it writ",
        ),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/x/y"), "/x/y: Not a directory"),
    ],
)
def test_what_the_system_refuses_is_one_message(error, says):
    assert str(SystemRefused.of(error)).startswith(says)
    assert SystemRefused.of(error).status == 1
