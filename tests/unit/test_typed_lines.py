"""Lines as people in a hurry type them, in a process of their own: one message and the right status, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkyard import cli
from sparkyard.errors import UsageError

PROJECT = Path(__file__).resolve().parents[2]
LAB = "--inventory=lab"
ASCII: Any = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def typed(
    *line: str, cwd: Path = PROJECT, shell: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    """A line typed in the clone; ``shell`` is what follows it there (redirections)."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARKYARD_", "INVOKE_"))}
    words = [sys.executable, "-m", "invoke", *line]
    if shell:
        words = ["sh", "-c", f'"$@" {shell}', "sh", *words]
    return subprocess.run(
        words,
        cwd=cwd,
        env=kept | {"SPARKYARD_LAB": "/nonexistent/lab"} | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


USAGE = [
    (("config", LAB, "--lane="), "error: --lane was given without a value; nothing was run"),
    (("config", LAB, "--limit="), "error: --limit was given without a value; nothing was run"),
    (("config", LAB, "--limit=, ,"), "error: --limit was given without a value; nothing was run"),
    (("config", LAB, "--only=,"), "error: --only was given without a value; nothing was run"),
    (("config", "--inventory="), "error: --inventory was given without a value; nothing was run"),
    (("config", LAB, "--recipes="), "error: --recipes was given without a value; nothing was run"),
    (("config", LAB, "--lock-wait=nan"), "error: --lock-wait takes seconds from 0 to 86400, not 'nan'"),
    (("config", LAB, "--lock-wait=soon"), "error: --lock-wait takes seconds from 0 to 86400, not 'soon'"),
    (("lab.up", "--nodes=٢"), "error: --nodes takes a number from 1 to 4, not '٢'"),
    (("render", LAB, "--out="), "error: --out was given without a folder"),
    (
        ("render", LAB, "--out=recipes"),
        "error: recipes/lab holds files that render did not write; nothing was changed",
    ),
    (("init",), "error: there is nobody to ask, and no answer was given; nothing was written"),
]


@pytest.mark.parametrize(
    ("line", "says"), USAGE, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_a_slip_of_the_keyboard_is_one_message_and_status_two(line, says):
    done = typed(*line)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, says)
    assert done.stdout == ""


def test_a_flag_whose_value_was_forgotten_is_refused_by_the_parser():
    done = typed("config", LAB, "--lane")
    assert done.returncode == 1
    assert "needed value and was not given one" in done.stderr


@pytest.mark.parametrize("out", ["/dev/null", "/proc/x"])
def test_a_folder_that_cannot_be_written_is_one_message(out):
    done = typed("render", LAB, f"--out={out}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {out}")
    assert len(done.stderr.splitlines()) <= 2


def test_a_folder_without_recipes_is_refused_by_name(tmp_path):
    done = typed("config", LAB, f"--recipes={tmp_path}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path}: holds no recipe: */recipe.yml is looked for in it" in done.stderr


@pytest.mark.parametrize("json_lines", [(), ("--json",)], ids=["words", "json"])
def test_standard_output_on_a_full_disk_is_one_message_and_status_one(json_lines):
    done = typed("config", LAB, *json_lines, shell=">/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_streams_that_were_closed_at_the_start_are_no_fault(closed):
    assert typed("config", LAB, shell=closed).returncode == 0


def test_an_error_keeps_its_status_when_nobody_reads_it():
    assert typed("config", LAB, "--lane=X", shell="2>&-").returncode == 2


@pytest.mark.parametrize("columns", ["0", "1", "40", "abc"])
def test_any_width_shows_every_value(columns):
    done = typed("config", LAB, COLUMNS=columns)
    assert (done.returncode, done.stderr) == (0, "")
    assert "8080" in done.stdout


def test_a_locale_of_ascii_reads_and_shows_everything():
    done = typed("config", LAB, **ASCII)
    assert (done.returncode, done.stderr) == (0, "")
    lines = typed("config", LAB, "--json", **ASCII).stdout.splitlines()
    assert {json.loads(text)["type"] for text in lines} == {"finding"}


def test_every_text_is_read_as_utf8_whatever_the_locale():
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    done = subprocess.run(
        [
            ruff,
            "check",
            "--isolated",
            "--preview",
            "--select",
            "PLW1514",
            "--output-format=concise",
            "sparkyard",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_end_of_the_input_is_told_on_a_line_of_its_own(capsys):
    """The line of a question is still open then."""
    with pytest.raises(UsageError, match="the input ended"), cli._expected():
        raise EOFError
    assert capsys.readouterr().err == "\n"
