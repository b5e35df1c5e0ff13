"""Asks the nodes of a job now and then how much it has written there, and tells it: bytes, rate, and of how many."""

from __future__ import annotations

import threading
import time

from sparkyard import facts
from sparkyard.actions_job import JobRank, RunJob
from sparkyard.errors import Interrupted, SparkyardError
from sparkyard.job_written import Pace, Written, shown, written_fact, written_question
from sparkyard.world import World

LOOK = 5.0
"""Seconds between two questions to a node, at the least."""
SHARE = 20
"""How many times as long as the last answer took it is waited for the next question: a disk with many files is asked less often."""
LIMIT = 30.0
"""Seconds that an answer may take; without one nothing is told this time."""
LEAVE = 3.0
"""Seconds that a measuring thread gets to end when it is told to."""


class Measuring:
    """What the ranks of a job have written since it was begun, in a background thread each. A node that does not answer is asked again."""

    def __init__(self, action: RunJob, world: World) -> None:
        self._action, self._world = action, world
        self._closing = threading.Event()
        self._paces = {rank.node: Pace() for rank in action.ranks if rank.places}
        self._threads = [
            threading.Thread(target=self._measure, args=(rank,), name=f"measure {rank.node}", daemon=True)
            for rank in action.ranks
            if rank.places
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End all measuring; a node that does not answer is not waited for."""
        self._closing.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(LEAVE)

    def _measure(self, rank: JobRank) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            written = self._written(rank)
            if written is not None and not self._closing.is_set():
                self._tell(rank, written)
            self._closing.wait(max(LOOK, SHARE * (time.monotonic() - began)))

    def _tell(self, rank: JobRank, written: Written) -> None:
        done, total = shown(rank.expected, written.content)
        rate = self._paces[rank.node].rate(done, time.monotonic())
        label = f"{self._action.job} rank {rank.rank}"
        at_most = bool(total) and rank.expected.at_most
        self._world.progress(done, total, label, node=rank.node, rate=rate, at_most=at_most)

    def _written(self, rank: JobRank) -> Written | None:
        """What the node says; None when it cannot be known this time."""
        asked = written_question(self._action.begun[rank.node], rank.places)
        shell = self._world.shell(rank.node)
        try:
            done = shell.run(facts.command((asked,), LIMIT), cancel=self._closing)
            written = written_fact(facts.parse(shell.node, (asked,), done.out), asked)
        except (Interrupted, SparkyardError):
            return None
        return None if written.closed or written.since is None else written
