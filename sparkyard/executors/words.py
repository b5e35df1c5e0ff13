"""Runs words on a node."""

from __future__ import annotations

from sparkyard.actions import Run
from sparkyard.command import mask
from sparkyard.errors import StepFailed
from sparkyard.world import World, must


def run(action: Run, node: str, world: World) -> None:
    """Run the words and demand status 0; their lines go to the view when the action streams. Raises StepFailed."""
    command = action.command

    def on_line(line: str) -> None:
        world.say(mask(line, command.secrets))

    try:
        must(world.shell(node), command, action.title, on_line=on_line if action.stream else None)
    except StepFailed as error:
        if command.words[0] == "rm" and any("Permission denied" in line for line in error.details):
            error.next_step = f"what containers wrote there is root's; on {node}: sudo {command.line()}"
        raise
