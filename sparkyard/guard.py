"""The words that make any command end with our side of its standard input, on this machine and over ssh alike."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from sparkyard.command import Command

PACKAGE = Path(__file__).resolve().parent


def node_script_path(name: str) -> Path:
    """Where a script that runs on nodes lies: beside the package in a clone, inside it when installed."""
    for folder in (PACKAGE.parent / "scripts" / "node", PACKAGE / "share" / "scripts" / "node"):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(name)


@cache
def node_script(name: str) -> str:
    """The text of a script that runs on nodes."""
    return node_script_path(name).read_text(encoding="utf-8")


def guarded(command: Command) -> tuple[Command, bytes]:
    """The command inside the guard, and the bytes to send first; keep standard input open for as long as it may run."""
    payload = base64.b64encode(command.stdin)
    words = ("sh", "-c", node_script("guard.sh"), "sparkyard-guard", str(len(payload)), *command.argv())
    return Command(words, secrets=command.secrets, timeout=command.timeout), payload
