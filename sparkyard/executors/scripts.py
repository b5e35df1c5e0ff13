"""Runs a kit's own scripts on the head: the start with every container watched as it appears, the stop with its failure said."""

from __future__ import annotations

import threading

from sparkyard.actions import SaveLogs, StartScripts, StopScripts
from sparkyard.command import Command, mask
from sparkyard.diagnosis import LAST_LINES
from sparkyard.errors import Interrupted, SparkyardError, StepFailed
from sparkyard.executors.service import save, there
from sparkyard.executors.watch import LostTrackError, state_of
from sparkyard.world import OnLine, Shell, World

LOOK = 1.0
"""Seconds between two looks for containers that the script has started."""


def start_scripts(action: StartScripts, node: str, world: World) -> None:
    """Run the start script to its end. What it leaves when it gives up is stopped by the run's undo.

    Raises StepFailed when it fails, when a container ends or all are silent for too long; Interrupted.
    """
    shell = world.shell(node)
    guard = _Guard(action, world)
    guard.begin()
    try:
        done = shell.run(action.command, on_line=_said(action.command, world), cancel=guard.cancel)
    except Interrupted:
        if guard.failure is not None and not world.cancelled.is_set():
            raise guard.failure from None
        raise
    finally:
        guard.end()
    if done.status != 0:
        lines = [mask(line, action.command.secrets) for line in done.last_lines()]
        raise StepFailed(
            f"the kit's start script ended with status {done.status}",
            node=node,
            details=[f"command: {action.command.shown()}", *lines, *_last_of_containers(world)],
            next_step="read its lines above",
        )


def stop_scripts(action: StopScripts, node: str, world: World) -> None:
    """Run the stop script; when it fails, say so: whatever it left is stopped by the steps behind it."""
    try:
        done = world.shell(node).run(action.command, on_line=_said(action.command, world))
    except StepFailed as error:
        world.say(f"the kit's stop script: {error.message}")
        return
    if done.status != 0:
        world.say(
            f"the kit's stop script ended with status {done.status}; what is left is stopped one by one"
        )


def save_logs(action: SaveLogs, node: str, world: World) -> None:
    """Save the whole log of a container, if it is there, and watch it no more."""
    world.watches.release(node, action.container)
    shell = world.shell(node)
    if there(shell, action.container):
        save(shell, action.container, world)


def _said(command: Command, world: World) -> OnLine:
    return lambda line: world.say(mask(line, command.secrets))


def _last_of_containers(world: World) -> list[str]:
    return [
        line
        for where, name, lines in world.watches.last_lines(LAST_LINES)
        for line in (f"last lines of {where} ({name}):", *(f"  {text}" for text in lines or ("(none)",)))
    ]


class _Guard:
    """Looks, beside the script, for its containers; ends the script when one of them ends, or when the run does."""

    def __init__(self, action: StartScripts, world: World) -> None:
        self.cancel = threading.Event()
        self.failure: SparkyardError | None = None
        self._action, self._world = action, world
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="scripts", daemon=True)

    def begin(self) -> None:
        for node, container in self._action.containers:
            self._world.watches.release(node, container)
        self._thread.start()

    def end(self) -> None:
        """Look no more; what is watched stays watched."""
        self._done.set()
        self._thread.join(LOOK + 3)

    def _look(self) -> None:
        while not self._done.wait(LOOK):
            if self._world.cancelled.is_set():
                self.cancel.set()
                return
            for node, container in self._action.containers:
                self._attach(self._world.shell(node), container)
            try:
                self._world.watches.demand_all_alive(self._action.log_silence)
            except SparkyardError as error:
                self.failure = error
                self.cancel.set()
                return

    def _attach(self, shell: Shell, container: str) -> None:
        node = shell.node.name
        if self._world.watches.watched(node, container):
            return
        try:
            if state_of(shell, container, self._done) is not None:
                self._world.watches.start(self._world, node, container)
        except (LostTrackError, SparkyardError):
            return
