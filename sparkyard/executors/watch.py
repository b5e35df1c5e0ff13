"""Watches containers while a lane starts: one ``docker wait`` and one ``docker logs --follow`` each, in background threads."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparkyard.command import Command
from sparkyard.diagnosis import (
    LAST_LINES,
    MEMORY_GUARDS,
    OTHER_LINES,
    UNWATCHED,
    Ending,
    ending,
    guard_of,
    in_order,
    report,
    stall,
)
from sparkyard.errors import Interrupted, SparkyardError, StepFailed
from sparkyard.executors.news import LogFile, News
from sparkyard.memory_guard import killed, not_killed, told_kept, told_low, watched
from sparkyard.patience import EndSignal
from sparkyard.world import Completed, Shell, World

KEPT = 400
"""Log lines kept in memory of each container."""
WIDEST = 2000
"""Characters kept and shown of a line of a log; the saved log has it whole."""
TRIES = 3
"""Lost connections or engines in a row after which a rank counts as lost; one failed ssh is not a death."""
PAUSE = 1.0
"""Seconds between those tries."""
LEAVE = 3.0
"""Seconds that a watching thread gets to end when it is told to."""
DRAIN = 5.0
"""Seconds that the log of an ended container gets to arrive whole."""
KILLED = 137
"""The exit code of what SIGKILL ended."""
STATE = "{{json .State}}\n{{.RestartCount}}"
STAMP = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.?\d*Z) ?")


def split_stamp(line: str) -> tuple[str, str]:
    """Docker's time of a log line (nine digits after the point, so that times sort as text) and the line."""
    found = STAMP.match(line)
    return (found[1], line[found.end() :]) if found else ("", line)


def cut(text: str) -> str:
    """A line as it is kept and shown: its beginning, where it is longer than a person reads."""
    return (
        text
        if len(text) <= WIDEST
        else f"{text[:WIDEST]} … ({len(text):,} characters, whole in the saved log)"
    )


class LostTrackError(Exception):
    """The node or its Docker engine did not answer this time."""


def state_of(shell: Shell, container: str, cancel: threading.Event | None = None) -> str | None:
    """The answer of ``docker inspect`` that ``diagnosis.ending`` reads; None when there is no such container.

    Raises LostTrackError when Docker does not answer.
    """
    done = shell.run(
        Command.of("docker", "container", "inspect", "--format", STATE, container, timeout=30), cancel=cancel
    )
    if done.status == 0:
        return done.text
    _demand_absent(done)
    return None


def _demand_absent(done: Completed) -> None:
    """Fine for an unknown container. Raises LostTrackError for any other failure."""
    said = done.err.decode(errors="replace")
    if "no such container" not in said.lower():
        raise LostTrackError(" ".join(said.split()) or f"docker ended with status {done.status}")


class Watch:
    """One watched container. Its threads end with the container, with ``close``, or when track of it is lost."""

    def __init__(
        self,
        world: World,
        node: str,
        container: str,
        *,
        log: LogFile,
        news: News,
        gate: str,
        whole: bool,
        guard: int,
    ) -> None:
        self.node, self.container = node, container
        self.ended: Ending | None = None
        self.gate_seen = False
        self.last_heard = time.monotonic()
        self._shell, self._log, self._news = world.shell(node), log, news
        self._gate = re.compile(gate) if gate else None
        self._tail = () if whole else ("--tail", str(KEPT))
        self._lines: deque[tuple[str, str]] = deque(maxlen=KEPT)
        self._stamp = ""
        self._limit = guard
        self._starved: tuple[int, int] | None = None  # bytes that were available, and the limit
        self._closing = threading.Event()
        self._follower = threading.Thread(target=self._follow, name=f"logs {node}", daemon=True)
        self._waiter = threading.Thread(target=self._await, name=f"wait {node}", daemon=True)

    def begin(self) -> Watch:
        self._follower.start()
        self._waiter.start()
        return self

    def lines(self, count: int) -> tuple[str, ...]:
        """The last log lines, without Docker's times but in their order (standard error comes by another way)."""
        with self._news.lock:
            kept = sorted(self._lines, key=lambda line: line[0])
        return tuple(text for _, text in kept[-count:])

    def guard(self, limit: int) -> None:
        """From now on, kill the container when less than ``limit`` bytes of memory are available on its node; 0 for no longer."""
        self._limit = limit

    def leave(self) -> None:
        """Tell both threads to end; the container goes on."""
        self._closing.set()

    def close(self) -> None:
        """End both threads; a node that does not answer is not waited for."""
        self.leave()
        for thread in (self._follower, self._waiter):
            thread.join(LEAVE)
        self._log.close()

    def look(self) -> Ending | None:
        """Ask Docker now, without waiting for news; None while the container serves or when it cannot be told."""
        if self.ended is None:
            try:
                self._end(state_of(self._shell, self.container, self._closing))
            except (LostTrackError, SparkyardError, ValueError):
                return None
        return self.ended

    def _await(self) -> None:
        self._persist(self._await_once)

    def _await_once(self) -> None:
        self._end(state_of(self._shell, self.container, self._closing))
        while self.ended is None:
            done = self._wait()
            if done is not None and done.status != 0:
                _demand_absent(done)
            self._end(state_of(self._shell, self.container, self._closing))

    def _wait(self) -> Completed | None:
        """Wait for its end, under the guard if there is one; None when that was changed meanwhile."""
        words, limit = Command.of("docker", "wait", self.container), self._limit
        changed = EndSignal(lambda: self._closing.is_set() or self._limit != limit)
        try:
            if not limit:
                return self._shell.run(words, cancel=changed)
            return self._shell.run(
                watched(words, limit, self.container), on_line=partial(self._hear_low, limit), cancel=changed
            )
        except Interrupted:
            if self._closing.is_set():
                raise
            return None

    def _hear_low(self, limit: int, line: str) -> None:
        if (low := told_low(line)) is not None:
            self._starved = self._starved or (low, limit)
        elif self._starved and (said := told_kept(line)) is not None:
            what = not_killed(*self._starved, said)
            self._set(Ending(self.node, self.container, what, starved=True, lines=self.lines(KEPT)))

    def _follow(self) -> None:
        self._persist(self._follow_once)

    def _follow_once(self) -> None:
        since = ("--since", self._stamp) if self._stamp else self._tail
        words = ("docker", "logs", "--follow", "--timestamps", *since, self.container)
        done = self._shell.run(Command.of(*words), on_line=self._hear, cancel=self._closing)
        if done.status != 0:
            _demand_absent(done)

    def _persist(self, once: Callable[[], None]) -> None:
        """Do it until it ends by itself; after ``TRIES`` lost connections in a row the rank counts as lost."""
        reason = ""
        for attempt in range(TRIES):
            if attempt and self._closing.wait(PAUSE):
                return
            try:
                once()
            except Interrupted:
                return
            except (LostTrackError, SparkyardError, ValueError) as error:
                reason = str(error)
            else:
                return
        self._set(Ending(self.node, self.container, f"{UNWATCHED}: {reason}", lines=self.lines(LAST_LINES)))

    def _hear(self, line: str) -> None:
        stamp, whole = split_stamp(line)
        text = cut(whole)
        with self._news.lock:
            if (stamp, text) in self._lines:  # after a lost connection ``--since`` gives the last lines again
                return
            self._log.add(line)
            stamp = stamp or self._stamp
            self._stamp = max(stamp, self._stamp)
            self._lines.append((stamp, text))
            self.last_heard = time.monotonic()
            if self._gate is not None and self._gate.search(whole):
                self.gate_seen = True
            self._news.tell()

    def _end(self, state: str | None) -> None:
        """Record the end, once the log has arrived."""
        found = ending(self.node, self.container, state)
        if found is None:
            return
        if self._follower.is_alive() and self._follower is not threading.current_thread():
            self._follower.join(DRAIN)
        if self._starved and found.exit_code == KILLED:
            found = replace(found, what=killed(*self._starved), starved=True)
        self._set(replace(found, killer=self._killer(found), lines=self.lines(KEPT)))

    def _killer(self, found: Ending) -> str:
        if found.exit_code != KILLED or found.oom_killed or found.starved:
            return ""
        try:
            done = self._shell.run(Command.of("sh", "-c", MEMORY_GUARDS, timeout=10), cancel=self._closing)
        except SparkyardError:
            return ""
        return guard_of(done.text)

    def _set(self, found: Ending) -> None:
        with self._news.lock:
            self.ended = self.ended or found
            self._news.tell()


class Watches:
    """Every watched container of a run. Thread-safe. The engine makes one a run and closes it when the run ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.news = News()
        self._all: dict[tuple[str, str], Watch] = {}

    def start(
        self, world: World, node: str, container: str, gate: str = "", *, whole: bool = True, guard: int = 0
    ) -> Watch:
        """Watch a running container; an earlier watch of that name is closed.

        ``gate`` is a regex looked for in its log. Without ``whole`` the log begins with its last lines: one that has served for
        days may be large. ``guard``: see ``Watch.guard``.
        """
        self.release(node, container)
        log = LogFile(self._logs, node, container, world.secrets)
        watch = Watch(world, node, container, log=log, news=self.news, gate=gate, whole=whole, guard=guard)
        with self.news.lock:
            self._all[node, container] = watch
        return watch.begin()

    def watched(self, node: str, container: str) -> bool:
        with self.news.lock:
            return (node, container) in self._all

    def release(self, node: str, container: str) -> None:
        """Watch it no more: its end is wanted."""
        with self.news.lock:
            watch = self._all.pop((node, container), None)
        if watch is not None:
            watch.close()

    def guard(self, limit: int) -> None:
        """From now on, every watched container is killed when less memory is available on its node; 0 for no longer."""
        for watch in self._present():
            watch.guard(limit)

    def all(self) -> tuple[Watch, ...]:
        """Every watched container, in the order in which the watching began."""
        return self._present()

    def died(self) -> Ending | None:
        """The first rank known to have ended."""
        return next((watch.ended for watch in self._present() if watch.ended), None)

    def silence(self) -> float:
        """Seconds since any rank wrote a log line (or the watching began); 0 when nothing is watched."""
        heard = [watch.last_heard for watch in self._present()]
        return time.monotonic() - max(heard) if heard else 0.0

    def last_lines(self, count: int = OTHER_LINES) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(node, container, last lines) of every watched rank."""
        return tuple((watch.node, watch.container, watch.lines(count)) for watch in self._present())

    def demand_all_alive(self, log_silence: float = 0.0) -> None:
        """Raises StepFailed when a rank has ended, the dead one first, or when all were silent for too long (0: no limit)."""
        if self.died():
            raise self._death()
        if log_silence and self._present() and self.silence() > log_silence:
            text, next_step, details = stall(log_silence, self.last_lines(LAST_LINES))
            raise StepFailed(text, next_step=next_step, details=details)

    def close(self) -> None:
        """End all watching; the containers go on."""
        with self.news.lock:
            watches = list(self._all.values())
            self._all.clear()
        for watch in watches:
            watch.leave()
        for watch in watches:
            watch.close()

    def _present(self) -> tuple[Watch, ...]:
        with self.news.lock:
            return tuple(self._all.values())

    def _death(self) -> StepFailed:
        endings = [end for watch in self._present() if (end := watch.look())]
        gone = {(end.node, end.container) for end in endings}
        others = [other for other in self.last_lines() if other[:2] not in gone]
        text, next_step, details = report(endings, others)
        return StepFailed(text, node=in_order(endings)[0].node, next_step=next_step, details=details)
