"""Copies files of a checkpoint from the head to a node: several rsync at once, over the link address, resumed where they were."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sparkyard.actions import CopyFiles
from sparkyard.command import Command, fill
from sparkyard.errors import Interrupted
from sparkyard.model import RemoteFile
from sparkyard.patience import EndSignal, Patience, waiting
from sparkyard.rsync_words import BROKEN, Route, bytes_moved, failure, rsync, shares
from sparkyard.world import Shell, World, must

PROCESSES = 4
TRIES = 3
PATIENCE = Patience(tries=TRIES)
LABEL = "copying"
"""What the progress of a copy is called; the node stands in front of it."""


def copy_files(action: CopyFiles, node: str, world: World) -> None:
    """Copy the action's files into its target folder on the node, not yet proven.

    Raises StepFailed (each cause in its own words), Unreachable for a wrong host key, Interrupted.
    """
    must(world.shell(node), Command.of("mkdir", "-p", action.target), f"making {action.target}")
    source = fill(action.source, {"home": str(Path.home())})
    route = Route(node, action.address, world.ssh_words(node), source, action.target)
    copying = Copying(world, route, sum(file.size for file in action.files))
    parts = shares(action.files, PROCESSES)
    with ThreadPoolExecutor(len(parts) or 1) as pool:
        futures = [pool.submit(copying.share, number, part) for number, part in enumerate(parts)]
    errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, Interrupted)), errors[0])
    world.progress(copying.total, copying.total, LABEL)


@dataclass
class Copying:
    """The rsync processes of one copy."""

    world: World
    route: Route
    total: int
    _failed: threading.Event = field(default_factory=threading.Event)
    _moved: dict[int, int] = field(default_factory=dict)

    def share(self, number: int, files: tuple[RemoteFile, ...]) -> None:
        """Copy one share; a connection that breaks is tried again, from where it was."""
        try:
            self._share(number, files)
        except BaseException:
            self._failed.set()
            raise

    def _share(self, number: int, files: tuple[RemoteFile, ...]) -> None:
        for attempt in range(1, TRIES + 1):
            said: list[str] = []
            status = self._run(number, files, said)
            if status == 0:
                return
            error = failure(self.route, status, said)
            passing = status in BROKEN and not _known(said)
            if not passing or attempt == TRIES:
                raise error
            pause = PATIENCE.pause(attempt)
            self.world.say(
                f"the connection to {self.route.address} broke (rsync {status}); goes on in {pause:g} s"
            )
            waiting(EndSignal(self._must_end))(pause)

    def _run(self, number: int, files: tuple[RemoteFile, ...], said: list[str]) -> int:
        def on_line(line: str) -> None:
            moved = bytes_moved(line)
            if moved is None:
                said.extend([line] if line.strip() else [])
            else:
                self._moved[number] = moved
                self.world.progress(min(sum(self._moved.values()), self.total), self.total, LABEL)

        done = self._head().run(rsync(self.route, files), on_line=on_line, cancel=EndSignal(self._must_end))
        return done.status

    def _must_end(self) -> bool:
        return self.world.cancelled.is_set() or self._failed.is_set()

    def _head(self) -> Shell:
        """The shell of the node where sparkyard runs, which has the files."""
        local = next((node for node in self.world.inventory.nodes if node.local), self.world.inventory.head)
        return self.world.shell(local.name)


def _known(said: list[str]) -> bool:
    """Whether ssh or rsync named a cause that trying again does not mend."""
    lasting = ("Host key verification failed", "Permission denied", "is your shell clean", "No space left")
    return any(token in line for token in lasting for line in said)
