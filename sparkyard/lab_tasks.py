"""The ``lab.*`` tasks."""

from __future__ import annotations

import os
import shlex

from sparkyard.errors import UsageError
from sparkyard.line import Line
from sparkyard.tables import finding


def up(line: Line, nodes: str) -> None:
    """Bring the lab up. Raises UsageError for a number of nodes it cannot have."""
    from sparkyard import lab  # noqa: PLC0415

    if not (nodes.isascii() and nodes.isdecimal()) or not 1 <= int(nodes) <= lab.MOST_NODES:
        raise UsageError(f"--nodes takes a number from 1 to {lab.MOST_NODES}, not {nodes!r}")
    _show(line, lab.up(int(nodes), line.say))


def down(line: Line) -> None:
    """End the lab."""
    from sparkyard import lab  # noqa: PLC0415

    lab.down(line.say)


def status(line: Line) -> None:
    """Show the lab's nodes; exit status 1 when there is no lab."""
    from sparkyard import lab  # noqa: PLC0415

    state = lab.status()
    if state is None:
        line.say("no lab is up; next: invoke lab.up")
        line.statuses.append(1)
        return
    _show(line, state)


def shell(line: Line, node: str, command: str) -> None:
    """Become a shell in a node, or one command there."""
    from sparkyard import lab  # noqa: PLC0415

    state = lab.status()
    known = [each.name for each in state.nodes] if state else []
    if node not in known:
        raise UsageError(
            f"no lab node {node!r} is up",
            next_step=f"nodes: {', '.join(known)}" if known else "invoke lab.up",
        )
    words = lab.enter_words(node, _split(command)) if command else lab.shell_words(node)
    line.close()
    os.execvp(words[0], words)  # noqa: S606 - the shell takes over this process


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command={command}: {str(error).lower()}") from None
    if not words:
        raise UsageError("--command was given without a command")
    return words


def _show(line: Line, state: object) -> None:
    from sparkyard.lab import LabState  # noqa: PLC0415

    assert isinstance(state, LabState)
    for node in state.nodes:
        row = {
            "node": node.name,
            "address": node.management,
            "link": node.fabric,
            "state": "ready" if node.ready else "down",
        }
        line.emit(finding("lab", row))
