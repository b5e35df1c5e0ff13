"""The lock of each node, held for the life of a line by a process on the node that ends when we do."""

from __future__ import annotations

import getpass
import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sparkyard.command import Command
from sparkyard.errors import Interrupted, LockHeld, SparkyardError, StepFailed, Unreachable
from sparkyard.guard import node_script
from sparkyard.world import Completed, Shell

HELD_ELSEWHERE = 75


def details(line: str) -> str:
    """Who holds a lock, as one line of JSON. ``line`` is what was typed, without values of ``--set``."""
    who = {
        "who": getpass.getuser(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "command": line,
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(who)


def lock_command(root: str, wait: float, holder: str) -> Command:
    """The words that take and keep a node's lock."""
    return Command(("sh", "-c", node_script("lock.sh"), "sparkyard-lock", root, f"{wait:g}", holder))


@dataclass
class NodeLock:
    """One node's lock while it is held."""

    shell: Shell
    release: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    held: bool = False
    error: SparkyardError | None = None
    bug: Exception | None = None

    def keep(self, command: Command, lost: Callable[[str], None]) -> None:
        """Runs in a thread of its own for as long as the lock is held."""
        try:
            done = self.shell.run(command, on_line=self._line, cancel=self.release)
            self.error = self.error or _refusal(self.shell.node.name, done)
        except SparkyardError as error:
            if not self.release.is_set():
                self.error = error
        except Exception as error:
            self.bug = error
        if self.held and not self.release.is_set():
            lost(self.shell.node.name)
        self.settled.set()

    def _line(self, line: str) -> None:
        if line == "held":
            self.held = True
            self.settled.set()


def _refusal(node: str, done: Completed) -> SparkyardError:
    if done.status != HELD_ELSEWHERE:
        return StepFailed("the node's lock could not be taken", node=node, details=done.last_lines())
    return LockHeld(
        f"another sparkyard holds the lock: {_holder(done.text)}",
        node=node,
        next_step="wait for it to end, or add --lock-wait=SECONDS to wait here",
    )


def _holder(text: str) -> str:
    try:
        who = json.loads(text)
        return "{who}@{host}, pid {pid}, since {since}, running: {command}".format(**who)
    except (ValueError, KeyError, TypeError):
        return "holder unknown"


class Locks:
    """The locks of a line.

    Args:
        lost: called with a node's name when a held lock ends before it was released; the line must then stop.
    """

    def __init__(
        self, line: str, wait: float, lost: Callable[[str], None], cancelled: threading.Event
    ) -> None:
        self._cancelled = cancelled
        self._details = details(line)
        self._wait = wait
        self._lost = lost
        self._held: dict[str, tuple[NodeLock, threading.Thread]] = {}

    def take(self, shells: Sequence[Shell]) -> list[Unreachable]:
        """Lock every node that is not yet locked by this line; returns the errors of those that do not answer.

        Raises what else the first node that refused has to say (LockHeld); then none is locked.
        """
        new = [shell for shell in shells if shell.node.name not in self._held]
        if not new:
            return []
        with ThreadPoolExecutor(len(new)) as pool:
            locks = list(pool.map(self._take, new))
        errors = [lock.error for lock in locks if lock.error]
        for lock in locks:
            if lock.bug:
                self.release()
                raise lock.bug
        refused = [error for error in errors if not isinstance(error, Unreachable)]
        if refused:
            self.release()
            raise refused[0]
        for lock in locks:
            if lock.error:
                del self._held[lock.shell.node.name]
        return [error for error in errors if isinstance(error, Unreachable)]

    def _take(self, shell: Shell) -> NodeLock:
        lock = NodeLock(shell)
        command = lock_command(shell.node.root, self._wait, self._details)
        thread = threading.Thread(target=lock.keep, args=(command, self._lost), daemon=True)
        self._held[shell.node.name] = (lock, thread)
        thread.start()
        while not lock.settled.wait(0.1):
            if self._cancelled.is_set():
                lock.release.set()
                lock.error = Interrupted("interrupted while waiting for the lock", node=shell.node.name)
        return lock

    def release(self) -> list[Shell]:
        """Let go of everything; returns, when every node has, the shells of what was held."""
        held = [lock.shell for lock, _thread in self._held.values()]
        for lock, _thread in self._held.values():
            lock.release.set()
        for _lock, thread in self._held.values():
            thread.join(10)
        self._held.clear()
        return held
