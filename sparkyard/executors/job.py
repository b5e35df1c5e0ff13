"""Runs the ranks of a job to their end, and seals it: all of them, or none is taken for done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkyard.actions import StartContainer, StopContainer
from sparkyard.actions_job import JobRank, RunJob
from sparkyard.diagnosis import LAST_LINES, READ_LOGS, Ending, in_order, report, silent
from sparkyard.errors import Interrupted, SparkyardError, StepFailed, Unreachable
from sparkyard.executors.job_measure import Measuring
from sparkyard.executors.job_seal import seal_all
from sparkyard.executors.service import LOOK, PortWait, refused, stop_container
from sparkyard.executors.undisturbed import Undisturbed, at_once
from sparkyard.executors.watch import Watch, Watches
from sparkyard.run_time import run_time, run_time_command
from sparkyard.world import World

READ_RECORD = "read the whole log in the run record"
TELL = 5.0
"""Seconds between lines of its log that are told while it runs."""


def run_job(action: RunJob, node: str, world: World) -> None:
    """Run the job on every node, or wait for the ranks that run already; then look at what it left and seal it.

    Raises StepFailed when a rank ends otherwise than with status 0, at a time limit, and when a line of its log or an output is not
    as it must be; Interrupted. Its containers are then stopped within ``grace``, their logs saved, and removed.
    """
    del node
    run = _Run(action, world)
    run.measuring.begin()
    try:
        if action.attach:
            run.attach()
        else:
            run.start()
        run.wait()
        run.measuring.close()
        run.watches.close()
        seal_all(action, Undisturbed(world))
    except Unwatched:
        raise
    except BaseException:
        run.abandon()
        raise
    finally:
        run.measuring.close()
        run.watches.close()


class Unwatched(Unreachable):
    """A node does not answer while all ranks run: the job is left to go on, and the next run waits for it."""


class _Run:
    """One run of a job. Its ranks are watched apart from those that serve."""

    def __init__(self, action: RunJob, world: World) -> None:
        self.action, self.world = action, world
        self.watches = Watches(world.run_folder / "logs")
        self.measuring = Measuring(action, world)
        self.began = self.told = time.monotonic()
        self.newest: dict[str, tuple[str, ...]] = {}
        self.whole = False  # whether all ranks were started

    # the beginning

    def attach(self) -> None:
        """Watch the ranks that run already. The job's time counts from the start of the first of them."""
        self.began -= max(at_once(self.running_for, self.action.ranks))
        for rank in self.action.ranks:
            self.watch(rank)
        self.whole = True

    def running_for(self, rank: JobRank) -> float:
        return run_time(self.world.shell(rank.node).run(run_time_command(rank.container)).text)

    def start(self) -> None:
        """Start the ranks group by group; the next one waits for the gates of the one before."""
        groups = [[rank for rank in self.action.ranks if rank.rank in group] for group in self.action.order]
        for group, last in zip(groups, [*[False] * (len(groups) - 1), True], strict=True):
            for watch, rank in at_once(self.start_rank, group):
                if not last:
                    self.await_gate(rank, watch)
        self.whole = True

    def start_rank(self, rank: JobRank) -> tuple[Watch, JobRank]:
        shell = self.world.shell(rank.node)
        done = shell.run(rank.command)
        if done.status != 0:
            raise refused(StartContainer(rank.container, rank.command), done, shell)
        return self.watch(rank), rank

    def watch(self, rank: JobRank) -> Watch:
        return self.watches.start(
            self.world, rank.node, rank.container, rank.gate_log, guard=self.action.guard
        )

    def await_gate(self, rank: JobRank, watch: Watch) -> None:
        """Wait for what the next ranks wait for. Raises what ends the job early, and StepFailed when it is not seen in time."""
        if not (rank.gate_log or rank.gate_port):
            return
        with self.gate(rank, watch) as seen:
            began = time.monotonic()
            while not seen():
                if watch.ended and not seen():
                    self.demand_well()
                    raise self.unseen(rank, "it ended with status 0 before")
                if time.monotonic() - began > rank.gate_timeout:
                    raise self.unseen(rank, f"not within {rank.gate_timeout:g} s")
                self.pause()

    @contextmanager
    def gate(self, rank: JobRank, watch: Watch) -> Iterator[Callable[[], bool]]:
        if not rank.gate_port:
            yield lambda: watch.gate_seen
            return
        with PortWait(self.world.shell(rank.node), rank.gate_port, self.watches.news) as port:
            yield port.open

    def unseen(self, rank: JobRank, how: str) -> StepFailed:
        """The error of a gate that was not seen."""
        sign = f"a log line that matches /{rank.gate_log}/"
        if rank.gate_port:
            sign = f"a socket that listens on {rank.gate_port[0]}:{rank.gate_port[1]}"
        return StepFailed(
            f"job {self.action.job}: {rank.container} was to show {sign}: {how}",
            node=rank.node,
            details=self.lines(),
            next_step="read the lines above; if it only needs longer, raise the gate's timeout in the recipe",
        )

    # the end

    def wait(self) -> None:
        """Wait until every rank has ended with status 0."""
        while self.going():
            self.pause()
        self.demand_well()

    def pause(self) -> None:
        """Wait for news. Raises what ends the job early."""
        news = self.watches.news.count
        self.demand_well()
        if self.world.cancelled.is_set():
            raise self.ended()
        self.world.watches.demand_all_alive()
        self.tell()
        if self.going():
            self.watches.news.wait(LOOK, news)
        if self.going():  # looked at last: a job that was picked up may be late already, and its last lines are on their way
            self.demand_in_time()

    def going(self) -> bool:
        return not all(watch.ended for watch in self.watches.all())

    def tell(self) -> None:
        """The newest line of each rank, now and then."""
        now = time.monotonic()
        if now - self.told < TELL:
            return
        self.told = now
        for node, _container, lines in self.watches.last_lines(1):
            if lines and lines != self.newest.get(node):
                self.newest[node] = lines
                self.world.say(f"{node}: {lines[0]}")

    def ended(self) -> Interrupted | Unwatched:
        """Why the run ends: a person wants it, or a node went away with its lock, which the job of a build outlives."""
        if self.whole and self.action.lasting and not self.world.interrupted.is_set():
            return Unwatched(
                f"job {self.action.job}: this run ends; all ranks were started, and were left to go on",
                next_step="type the same line again: it waits for the job, or begins it anew",
            )
        return Interrupted(f"interrupted while job {self.action.job} ran")

    def demand_well(self) -> None:
        if any(watch.ended and not watch.ended.well for watch in self.watches.all()):
            raise self.death()

    def death(self) -> StepFailed | Unwatched:
        """What is told of the ranks that failed, the first one and its last words first."""
        endings = [end for watch in self.watches.all() if (end := watch.look()) and not end.well]
        if self.whole and all(end.lost for end in endings):
            return self.unwatched(endings[0])
        gone = {(watch.node, watch.container) for watch in self.watches.all() if watch.ended}
        others = [other for other in self.watches.last_lines() if other[:2] not in gone]
        text, next_step, details = report(endings, others)
        first: Ending = in_order(endings)[0]
        step = READ_RECORD if next_step == READ_LOGS else next_step  # its containers are removed
        return StepFailed(f"job {self.action.job}: {text}", node=first.node, next_step=step, details=details)

    def unwatched(self, end: Ending) -> Unwatched:
        return Unwatched(
            f"job {self.action.job}: {end.container} on {end.node} {end.what}; all ranks were started, and were left to go on",
            node=end.node,
            next_step="when the node answers again, type the same line: it waits for the job, or begins it anew",
        )

    def demand_in_time(self) -> None:
        """Raises StepFailed beyond the job's time limit or its limit of silence."""
        limit, silence = self.action.timeout, self.action.log_silence
        if (lasted := time.monotonic() - self.began) > limit:
            text = f"job {self.action.job} did not end within {limit:g} s: it was started {lasted:.0f} s ago"
            raise StepFailed(
                text,
                details=self.lines(),
                next_step="read the lines above; `timeout` of the job is the limit",
            )
        if silence and self.watches.silence() > silence:
            text = f"job {self.action.job}: {silent(silence)}"
            raise StepFailed(
                text,
                details=self.lines(),
                next_step="read the lines above; `log_silence` of the job is the limit",
            )

    def lines(self) -> list[str]:
        """The last lines of every rank."""
        return [
            line
            for node, container, lines in self.watches.last_lines(LAST_LINES)
            for line in (
                f"last lines of {node} ({container}):",
                *(f"  {text}" for text in lines or ("(none)",)),
            )
        ]

    def abandon(self) -> None:
        """Stop all ranks within ``grace``, their logs saved, and remove them. A node that does not answer is named and left."""
        self.measuring.close()
        self.watches.close()
        world = Undisturbed(self.world)

        def stop(rank: JobRank) -> None:
            try:
                stop_container(StopContainer(rank.container, self.action.grace), rank.node, world)
            except SparkyardError as error:
                world.say(f"{rank.container} on {rank.node} was left: {error.message}")

        at_once(stop, self.action.ranks)
