"""Faults on demand: ``--die-at PHASE`` and ``--hold-at PHASE`` in STAND_IN_EXPORT (every rank) and STAND_IN_EXPORT_<rank>.

A rank that holds goes on when somebody makes the file ``stand-in/go`` in its cache folder.
"""

from __future__ import annotations

import argparse
import os
import shlex
import time
from pathlib import Path

from rendezvous import leave, say

GO = Path("/root/.cache/stand-in/go")
PHASES = ("start", "rendezvous", "pull", "compile", "write", "end")


class Faults:
    """What this rank does wrong, and when."""

    def __init__(self, rank: int) -> None:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--die-at", choices=PHASES)
        parser.add_argument("--hold-at", choices=PHASES)
        told = (os.environ.get(name, "") for name in ("STAND_IN_EXPORT", f"STAND_IN_EXPORT_{rank}"))
        self.given = parser.parse_args([word for text in told for word in shlex.split(text)])
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
