"""Waits until a node has its memory back (what a stopped engine held is not free at once), and runs words only while it has enough."""

from __future__ import annotations

import time

from sparkyard.actions import WaitMemory
from sparkyard.command import Command
from sparkyard.errors import CouldNotCheck, Interrupted, StepFailed
from sparkyard.memory_guard import killed, next_step, told_low, watched
from sparkyard.reporting.amounts import gigabytes
from sparkyard.world import Completed, OnLine, Shell, World, must

LOOK = 0.5
"""Seconds between two looks."""
AVAILABLE = Command.of("sed", "-n", "s/^MemAvailable: *\\([0-9]*\\) kB/\\1/p", "/proc/meminfo", timeout=10)


def wait_memory(action: WaitMemory, node: str, world: World) -> None:
    """Return once so much memory is available. Raises StepFailed at the time limit, CouldNotCheck, Interrupted."""
    began = time.monotonic()
    while (free := _available(node, world)) < action.wanted:
        if time.monotonic() - began > action.timeout:
            raise StepFailed(
                f"{gigabytes(free)} of memory are free after {action.timeout:g} s of waiting; "
                f"expected {gigabytes(action.wanted)}",
                node=node,
                next_step="end what holds it: ps -eo rss,pid,args --sort=-rss | head",
            )
        if world.cancelled.wait(LOOK):
            raise Interrupted("interrupted while waiting for memory", node=node)
    world.say(f"{gigabytes(free)} of memory are free")


def _available(node: str, world: World) -> int:
    return available_bytes(must(world.shell(node), AVAILABLE, "reading /proc/meminfo").text, node)


def available_bytes(text: str, node: str) -> int:
    """The answer of ``AVAILABLE``, which is KiB. Raises CouldNotCheck for one that is no number: nobody knows how much is free then."""
    if not (text.strip().isascii() and text.strip().isdecimal()):
        raise CouldNotCheck(
            "/proc/meminfo does not say in one number how much memory is available (MemAvailable)",
            node=node,
            next_step="look at it: grep Mem /proc/meminfo",
        )
    return int(text) * 1024


def run_watched(shell: Shell, command: Command, limit: int, what: str, on_line: OnLine) -> Completed:
    """Run the words; with a ``limit`` they are killed when fewer bytes of memory are available on the node.

    Raises StepFailed then, with ``what`` they are to people.
    """
    if not limit:
        return shell.run(command, on_line=on_line)
    low: list[int] = []

    def hear(line: str) -> None:
        if (seen := told_low(line)) is not None:
            low.append(seen)
        else:
            on_line(line)

    done = shell.run(watched(command, limit), on_line=hear)
    if done.status != 0 and low:
        raise StepFailed(
            f"{what} {killed(low[0], limit)}",
            node=shell.node.name,
            details=[f"killed: {command.shown()}"],
            next_step=next_step(shell.node.name),
        )
    return done
