"""The words that make any command end with our side of its standard input, on this machine and over ssh alike."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from sparkyard.command import Command

PACKAGE = Path(__file__).resolve().parent


@cache
def node_script(name: str) -> str:
    """The text of a script that runs on nodes: beside the package in a clone, inside it when installed."""
    for folder in (PACKAGE.parent / "scripts" / "node", PACKAGE / "share" / "scripts" / "node"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise FileNotFoundError(name)


def guarded(command: Command) -> tuple[Command, bytes]:
    """The command inside the guard, and the bytes to send first; keep standard input open for as long as it may run."""
    payload = base64.b64encode(command.stdin)
    words = ("sh", "-c", node_script("guard.sh"), "sparkyard-guard", str(len(payload)), *command.argv())
    return Command(words, secrets=command.secrets, timeout=command.timeout), payload
