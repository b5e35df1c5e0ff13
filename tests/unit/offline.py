"""Lines typed on a machine where no program of a node could be run, and how people are shown what a verb says."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from sparkyard.events import Event
from sparkyard.reporting.console import RichPaper
from sparkyard.reporting.human import HumanView
from sparkyard.showing import Section
from sparkyard.tables import finding

ROOT = Path(__file__).resolve().parents[2]


def typed(*line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``invoke …`` without ssh, docker or git, and without anything of the caller's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("INVOKE_", "SPARKYARD_", "COLUMNS"))}
    return subprocess.run(
        [sys.executable, "-m", "invoke", *line],
        cwd=ROOT,
        env=kept | {"PATH": "/nonexistent"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def shown(sections: Sequence[Section]) -> str:
    """The text that people see, on 80 columns."""
    stream = io.StringIO()
    view = HumanView(RichPaper(Console(file=stream, width=80)), live=False)
    for section in sections:
        view.handle(Event("finding", section.title, data={"heading": section.title}))
        for row in section.rows:
            view.handle(finding(section.table, row))
    view.close()
    return stream.getvalue()
