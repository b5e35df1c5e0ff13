"""What a line may import: each of these takes longer than the work of a line that has nothing to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEVER = ("rich", "jsonschema", "huggingface_hub", "docker")
"""Not for any line that finds everything as it should be, off a terminal."""
CLIENT = "httpx2"
"""Only for a line that asks the API."""
TYPED = "from invoke.main import program\ntry: program.run(['invoke', *{words!r}])\nexcept SystemExit: pass"
NOTHING_TO_DO = """
import sparkyard.lanes, sparkyard.verbs, sparkyard.engine, sparkyard.asking, sparkyard.locks, sparkyard.recording, sparkyard.shell
import sparkyard.executors, sparkyard.executors.prove, sparkyard.executors.ready, sparkyard.executors.verify
import io, sparkyard.report
from sparkyard.state import current_versions
sparkyard.report.human_view(io.StringIO())
current_versions()
"""
ENTERING = """
import os, pathlib, sparkyard.line, sparkyard.place, sparkyard.lab, sparkyard.lab.node
from sparkyard import load
load.load_inventory(pathlib.Path("inventory/lab"), environ=os.environ, sets=())
"""


def imported(program, *names):
    """Which of the names a fresh interpreter has after the program, started where a person types."""
    told = f"{program}\nimport sys\nsys.stderr.write(' '.join(n for n in {names!r} if n in sys.modules))"
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARKYARD_", "INVOKE_", "FORCE_", "TTY_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=ROOT, env=kept, capture_output=True, text=True, check=True
    )
    return done.stderr.split()


@pytest.mark.parametrize("words", [["--list"], ["--help", "start"]])
def test_lists_and_help_need_nothing_but_invoke(words):
    heavy = ("pydantic", "jinja2", "fabric", "paramiko", "sparkyard.line", "sparkyard.model")
    assert imported(TYPED.format(words=words), *NEVER, CLIENT, *heavy) == []


def test_a_line_that_connects_to_nothing_needs_neither_ssh_nor_the_engine():
    words = ["render", "--lane=A", "--inventory=two-spark"]
    assert imported(TYPED.format(words=words), *NEVER, CLIENT, "fabric", "paramiko", "sparkyard.engine") == []


def test_a_line_with_nothing_to_do_needs_no_clients_of_hub_and_registry():
    assert imported(NOTHING_TO_DO, *NEVER, "fabric", "paramiko", "sparkyard.hub", "sparkyard.registry") == []


def test_a_lab_is_entered_before_more_is_imported():
    more = (
        "pydantic",
        "jinja2",
        "sparkyard.engine",
        "sparkyard.facts",
        "sparkyard.recipe",
        "sparkyard.lab.building",
    )
    assert imported(ENTERING, *NEVER, CLIENT, *more) == []
