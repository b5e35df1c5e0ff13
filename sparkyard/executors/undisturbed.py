"""A world in which what must be brought to its end is not cut short by an interrupt; a second Ctrl-C ends the process all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sparkyard.command import Command
from sparkyard.model import Node
from sparkyard.world import Completed, OnLine, Shell, World

Item = TypeVar("Item")
Result = TypeVar("Result")


class UndisturbedShell:
    """A shell whose commands do not look at the run's cancel signal."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @property
    def node(self) -> Node:
        return self._shell.node

    def run(
        self, command: Command, *, on_line: OnLine | None = None, cancel: threading.Event | None = None
    ) -> Completed:
        """See ``world.Shell.run``."""
        return self._shell.run(command, on_line=on_line, cancel=cancel or threading.Event())


class Undisturbed:
    """The world of a step, with such shells."""

    def __init__(self, world: World) -> None:
        self._world = world

    def shell(self, node: str) -> Shell:
        return UndisturbedShell(self._world.shell(node))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


def at_once(do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Do it for all of them at the same time; returns or raises when all have ended."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        jobs = [pool.submit(do, item) for item in items]
    return [job.result() for job in jobs]
