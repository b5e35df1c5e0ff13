"""Where sparkyard runs: on rank 0's node. In the lab it enters that node first; elsewhere it refuses to be somewhere else."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sparkyard.errors import SparkyardError, UsageError
from sparkyard.model import Inventory

if TYPE_CHECKING:
    from sparkyard.step_world import Surroundings

INSIDE = Path("/run/sparkyard-lab")
"""Every lab node has it, and nothing else does."""


def enter_lab(inventory: Inventory) -> None:
    """Become the same line inside the lab's head; returns only when we are there already.

    Raises LabError when no lab is up.
    """
    if INSIDE.exists():
        return
    from sparkyard import lab  # noqa: PLC0415

    try:
        words = lab.enter_words(inventory.head.name, (sys.executable, *sys.argv), cwd=str(Path.cwd()))
    except (lab.LabError, KeyError) as error:
        if isinstance(error, lab.LabError) and not inventory.stand_in:
            raise
        raise UsageError(
            f"this inventory is for a lab, and its head {inventory.head.name} is no node of one here: {error}",
            next_step="invoke lab.up, or take lab and stand_in out of the inventory",
        ) from error
    sys.stdout.flush()
    os.execvp(words[0], words)  # noqa: S606 - the same line, one namespace further in


def must_be_lab(around: Surroundings, nodes: Iterable[str]) -> None:
    """Raises UsageError for a node without the lab's marker file; one that does not answer is left to its own steps."""
    from sparkyard.asking import ask_all  # noqa: PLC0415
    from sparkyard.facts import file  # noqa: PLC0415
    from sparkyard.stand_in import marker_question, refuse_outside  # noqa: PLC0415

    asked = marker_question()
    for node, answers in ask_all(around, dict.fromkeys(nodes, (asked,))).items():
        if not isinstance(answers, SparkyardError):
            refuse_outside(node, file(answers, asked))


def must_be_head(inventory: Inventory) -> None:
    """Raises UsageError unless rank 0's link address belongs to this machine (design: type it on the head)."""
    head = inventory.head
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((head.link.address, 0))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            raise UsageError(
                f"this machine does not have {head.link.address}, the link address of rank 0 ({head.name})",
                next_step=f"ssh to {head.name} and type it there; or correct link.address in {inventory.folder}/hosts.yml",
            ) from None
