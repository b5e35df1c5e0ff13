"""Faults on demand: ``--die-at PHASE`` and ``--hold-at PHASE`` in the file ``stand-in/faults`` of a rank's cache folder.

A rank that holds goes on when somebody makes the file ``stand-in/go`` beside it.
"""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path

from rendezvous import leave, say

TOLD = Path("/root/.cache/stand-in/faults")
GO = TOLD.with_name("go")
PHASES = ("start", "rendezvous", "pull", "compile", "write", "end")


class Faults:
    """What this rank does wrong, and when."""

    def __init__(self, rank: int) -> None:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--die-at", choices=PHASES)
        parser.add_argument("--hold-at", choices=PHASES)
        told = TOLD.read_text() if TOLD.is_file() else ""
        self.given = parser.parse_args(shlex.split(told))
        self.rank = rank

    def phase(self, name: str) -> None:
        """A phase begins: say so, and die or hold when that is wanted."""
        say(self.rank, f"phase {name}")
        if self.given.die_at == name:
            say(self.rank, f"FATAL scripted death in phase {name}")
            leave(1)
        if self.given.hold_at == name:
            say(self.rank, f"holding in phase {name}")
            while not GO.exists():
                time.sleep(0.1)
