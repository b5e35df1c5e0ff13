"""Words that watch a node's memory while other words run there, and the reading of what they say. Pure.

CPU and GPU of a Spark share one memory. When it is exhausted the node freezes until somebody pulls the plug, so what sparkyard
waits for is killed before that. Sizes are bytes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sparkyard.command import Command
from sparkyard.guard import node_script

SCRIPT = "memory.sh"
KIB, GIB = 2**10, 2**30
LOW = re.compile(r"sparkyard-memory low (\d+)")
KEPT = re.compile(r"sparkyard-memory kept ?(.*)")
FREE = "free memory on {node} (ps -eo rss,pid,args --sort=-rss | head), or let the lane take less; then type the same line again"


def watched(command: Command, limit: int, container: str = "") -> Command:
    """The command, and beside it a look at the memory twice a second; below ``limit`` the container is killed, or without one the command."""
    words = ("sh", "-c", node_script(SCRIPT), "sparkyard-memory", str(-(-limit // KIB)), container)
    return replace(command, words=(*words, *command.words))


def told_low(line: str) -> int | None:
    """The bytes that were available, in the line that says that they were too few; None for any other line."""
    found = LOW.fullmatch(line.strip())
    return int(found[1]) * KIB if found else None


def told_kept(line: str) -> str | None:
    """Docker's words, in the line that says that a container could not be killed; None for any other line."""
    found = KEPT.fullmatch(line.strip())
    return found[1].strip() if found else None


def killed(available: int, limit: int) -> str:
    """What was done, and why."""
    return f"was killed by sparkyard before the node froze: {_seen(available, limit)}"


def not_killed(available: int, limit: int, said: str) -> str:
    """What could not be done, and why it was tried."""
    return f"could not be killed: {said or 'Docker gave no reason'}; {_seen(available, limit)}"


def next_step(node: str) -> str:
    """What a person does then."""
    return FREE.format(node=node)


def _seen(available: int, limit: int) -> str:
    return (
        f"{available / 1e9:.2f} GB of memory were available, the limit is {limit / 1e9:.2f} GB (limits.guard)"
    )
