"""The ``lab.*`` tasks."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from sparkyard.errors import UsageError
from sparkyard.events import Event
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
    if line.options.json and not command:
        raise UsageError("a shell cannot be told as JSON", next_step="add --command='…', or leave --json out")
    words = lab.enter_words(node, _split(command)) if command else lab.shell_words(node)
    if line.options.json:
        _tell(line, node, words)
        return
    line.close()
    os.execvp(words[0], words)  # noqa: S606 - the shell takes over this process


def _tell(line: Line, node: str, words: Sequence[str]) -> None:
    """A command there, with an event for each line that it prints; exit status 1 when its own is not 0."""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        for printed in running.stdout:
            text = printed.decode(errors="replace").rstrip("\r\n")
            line.emit(Event("finding", text, node, data={"line": text}))
    if running.returncode:
        line.say(f"the command ended with status {running.returncode}")
        line.statuses.append(1)


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command={command}: {str(error).lower()}") from None
    if not words:
        raise UsageError("--command was given without a command")
    return words


def _show(line: Line, state: object) -> None:
    from sparkyard.lab.state import LabState  # noqa: PLC0415

    assert isinstance(state, LabState)
    for node in state.nodes:
        row = {
            "node": node.name,
            "address": node.management,
            "link": node.fabric,
            "state": "ready" if node.ready else "down",
        }
        line.emit(finding("lab", row))
