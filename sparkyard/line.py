"""One line as typed: loads and checks everything, takes the locks, walks the plan of each task, and ends with one recap."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkyard import load, selection, state
from sparkyard.cli import project_folder
from sparkyard.errors import SparkyardError, SystemRefused, Unreachable, UsageError, worst
from sparkyard.events import Event
from sparkyard.model import Inventory, Lane, Manifest
from sparkyard.options import STAY, UNLOCKED, Options, parse_wait
from sparkyard.recap import counters, shipped
from sparkyard.report import JsonView, MultiView, error_events, human_view
from sparkyard.reporting.broken_pipe import complain
from sparkyard.signals import Signals

if TYPE_CHECKING:
    from sparkyard.engine import Engine
    from sparkyard.known_hosts import Keys
    from sparkyard.lock import Lock
    from sparkyard.locks import Locks
    from sparkyard.plan import Plan
    from sparkyard.recording import Recording
    from sparkyard.rendered import RenderedLane
    from sparkyard.step_world import Surroundings

# ruff: noqa: PLC0415  (a line of a lab begins twice, and the first time it only needs to know where its head is)


class LineEnded(SparkyardError):
    """A task failed and has said so; the tasks after it are not run."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status = status


class Line:
    """Everything that the tasks of one line share.

    Args:
        options: the shared flags.
        verbs: the names of its tasks, in order.
    """

    def __init__(self, options: Options, verbs: Sequence[str]) -> None:
        self.options = options
        self.lock_wait = parse_wait(options.lock_wait)
        self.nouns = selection.chosen_nouns(options.only)
        self.verbs = tuple(verbs)
        self.project = project_folder()
        self.began = time.monotonic()
        self.statuses: list[int] = []
        self.events: list[Event] = []
        self._locked: dict[str, Lock] = {}
        self._recording: Recording | None = None
        self._spare: tempfile.TemporaryDirectory[str] | None = None
        self._signals = Signals(self._end_cleanly)

    # what is loaded

    @cached_property
    def folder(self) -> Path:
        """The inventory's folder."""
        return load.find_inventory(self.options.inventory, self.project, os.environ)

    @cached_property
    def inventory(self) -> Inventory:
        """The inventory alone, for verbs that need no lane."""
        return load.load_inventory(self.folder, environ=os.environ, sets=self.options.set)

    @cached_property
    def lane(self) -> Lane:
        """The lane that was asked for, or the inventory's."""
        return self.lane_named(self.options.lane)

    def lane_named(self, name: str | None, sets: Sequence[str] | None = None) -> Lane:
        """A lane of this inventory; ``sets`` in place of ``--set`` for one that was not typed. Raises ConfigError with every fault."""
        from sparkyard.lanes import lane_named

        return lane_named(self, name, self.options.set if sets is None else sets)

    def locked(self, lane: Lane) -> Lock:
        """What the lane's pins are: from the lock, or asked for, shown and kept when there is none yet."""
        from sparkyard.locking import ensured

        if lane.name not in self._locked:
            self.enter()  # the hub may be reachable only from the head
            self._locked[lane.name] = ensured(self, lane)
        return self._locked[lane.name]

    def learnt(self, lane: Lane) -> None:
        """The lane's lock has more in it than this line has read: it is read again when it is asked for."""
        self._locked.pop(lane.name, None)

    def manifests(self, lane: Lane) -> Mapping[str, Manifest]:
        """The files of the lane's checkpoints, locked."""
        return self.locked(lane).manifests

    def rendered(self, lane: Lane) -> RenderedLane:
        """The lane as it shall be on its nodes; what is not locked yet stays a mark."""
        from sparkyard.render import render_lane
        from sparkyard.resolve import known_lock

        return render_lane(lane, {}, self._locked.get(lane.name) or known_lock(lane))

    @cached_property
    def folders(self) -> state.Folders:
        return state.folders()

    @cached_property
    def keys(self) -> Keys:
        from sparkyard.known_hosts import Keys

        return Keys(self.folders.state)

    def begin(self) -> None:
        """In the lab, enter node 1 before more is imported; faults of the inventory are told later, all at once."""
        if any(verb not in STAY for verb in self.verbs):
            with contextlib.suppress(UsageError):
                if self.inventory.lab:
                    self.enter()

    def enter(self) -> None:
        """Be where rank 0 is: in the lab, enter node 1's namespaces. Raises UsageError when its link address is not of this machine."""
        from sparkyard.place import enter_lab, must_be_head

        if self.inventory.lab:
            enter_lab(self.inventory)
        must_be_head(self.inventory)

    @cached_property
    def around(self) -> Surroundings:
        self.enter()
        from sparkyard.step_world import Surroundings

        return Surroundings(self.inventory, self.folders.state, self.spare_folder, self.keys)

    @property
    def spare_folder(self) -> Path:
        """A temporary folder, for lines that keep no record."""
        if self._spare is None:
            self._spare = tempfile.TemporaryDirectory(prefix="sparkyard-")
        return Path(self._spare.name)

    # what is told

    @cached_property
    def view(self) -> MultiView:
        first = (
            JsonView(sys.stdout)
            if self.options.json
            else human_view(sys.stdout, verbose=self.options.verbose)
        )
        return MultiView([first], on_gone=self._reader_gone)

    def emit(self, event: Event) -> None:
        """Show an event and keep what the recap counts."""
        if event.type != "step-output":
            self.events.append(event)
        self.view.handle(event)

    def say(self, message: str, **data: Any) -> None:
        self.emit(Event("finding", message, data=data))

    # what is run

    def run(self, plan: Plan, secrets: Sequence[str] = (), rendered: RenderedLane | None = None) -> None:
        """Walk the plan of one task. Raises LineEnded when it failed.

        ``rendered`` is given by verbs that start ranks: what each was started with goes into the run record.
        """
        chosen = selection.chosen_nodes(self.inventory, self.options.limit)
        plan = plan.chosen(chosen, self.nouns)
        if not plan.steps:
            self.say(f"nothing of {plan.verb} is left by --limit and --only")
        if self.inventory.stand_in:
            from sparkyard.place import must_be_lab

            must_be_lab(self.around, plan.nodes())
        quiet = plan.verb in UNLOCKED or self.options.check
        if not quiet:
            self._open_record(plan, secrets)
        self.around.secrets = tuple(dict.fromkeys((*self.around.secrets, *secrets)))
        self.view.mask(self.around.secrets)
        self._start_event(plan)
        if not quiet:
            self._lock(plan)
        before = len(self.events)
        status = self.engine.run(plan)
        self.statuses.append(status)
        acted = any(event.type == "step-changed" for event in self.events[before:])
        if rendered is not None and acted:
            self._record_ranks(rendered)
        if status not in (0, 6):
            raise LineEnded(status)

    def _lock(self, plan: Plan) -> None:
        """Lock the plan's nodes. A node that does not answer ends the task, unless the plan goes on without it."""
        lost = self.locks.take([self.around.shell(node) for node in plan.nodes()])
        if lost and not plan.partial:
            from sparkyard.verdicts import error_data

            for error in lost:
                self.emit(Event("node-unreachable", error.message, error.node, data=error_data(error)))
            raise LineEnded(Unreachable.status)

    @cached_property
    def locks(self) -> Locks:
        from sparkyard.locks import Locks

        typed = " ".join((Path(sys.argv[0]).name, *self.verbs))
        return Locks(typed, self.lock_wait, self._lock_lost, self.around.stop)

    @cached_property
    def engine(self) -> Engine:
        from sparkyard.engine import Engine, Mode

        return Engine(self.around, self.emit, Mode(self.options.check, self.options.diff), self._confirm)

    def _start_event(self, plan: Plan) -> None:
        told: dict[str, Any] = {"verb": plan.verb, "lane": plan.lane, "nodes": list(plan.nodes())}
        told |= {"check": self.options.check, "stand_in": self.inventory.stand_in}
        self.emit(Event("run-start", data=told))

    def _open_record(self, plan: Plan, secrets: Sequence[str]) -> None:
        if self._recording is None:
            from sparkyard.recording import Recording

            stand_in = self.inventory.stand_in
            self._recording = Recording(self.folders.runs, self.verbs, plan, stand_in, self._record_lost)
            self.view.add(self._recording.view)
            self.around.run_folder = self._recording.folder  # what was asked before had a temporary one
        self._recording.mask(secrets)

    def _record_ranks(self, rendered: RenderedLane) -> None:
        """Keep what every rank was started with, as Docker tells it."""
        from sparkyard.ranks import ranks_of

        assert self._recording is not None
        self._recording.ranks(ranks_of(self.around, rendered))

    def _record_lost(self, error: OSError) -> None:
        self.statuses.append(SystemRefused.status)
        self.say(f"the run record is incomplete, the run goes on: {SystemRefused.of(error).message}")

    def _confirm(self, destroyed: list[str]) -> bool:
        """Ask before something is destroyed, with the locks released while a person thinks."""
        if self.options.yes:
            return True
        if self.options.json or not sys.stdin.isatty():
            hint = "type the same line with --yes if that is wanted"
            raise UsageError("; ".join(destroyed), next_step=hint)
        held = self.locks.release()
        told = "this would be destroyed or interrupted:"
        self.view.handle(Event("finding", told, data={"details": destroyed}))
        answer = self.typed("Type yes to go on: ")
        if lost := self.locks.take(held):
            raise lost[0]
        return answer == "yes"

    def typed(self, question: str) -> str:
        """The person's answer."""
        with self._signals.asking():
            return input(question).strip()

    # how it ends

    def finish(self) -> int:
        """The recap and the exit status of a line whose tasks have all run."""
        if any(event.type == "run-start" for event in self.events):
            self._recap(worst(self.statuses))
        self.view.close()  # what it kept back may be what fails to be shown
        return worst(self.statuses)

    def fail(self, error: SparkyardError) -> int:
        """Show an error that ended the line; returns its exit status."""
        self.statuses.append(error.status)
        if not isinstance(error, LineEnded):
            self._show_error(error)
        return self.finish() or error.status

    def _show_error(self, error: SparkyardError) -> None:
        started = any(event.type == "run-start" for event in self.events)
        if self.options.json:
            for event in error_events(error):
                if not (started and event.type == "recap"):
                    self.emit(event)
        else:
            self.view.close()
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            complain(f"error: {error}\n")

    def _recap(self, status: int) -> None:
        data: dict[str, Any] = {
            "status": status,
            "nodes": counters(self.events),
            "seconds": round(time.monotonic() - self.began, 3),
            "check": self.options.check,
            "stand_in": self.inventory.stand_in,
        }
        if images := shipped(self.events):
            data["shipped"] = images
        if self._recording is not None:
            data["record"] = str(self._recording.folder)
            self._recording.end(status)
            data["status"] = worst(self.statuses)
        self.emit(Event("recap", data=data))

    def close(self) -> None:
        """Release everything; never raises."""
        if "locks" in self.__dict__:
            self.locks.release()
        if "around" in self.__dict__:
            self.around.close()
        if "view" in self.__dict__:
            self.view.close()
        if self._spare is not None:
            self._spare.cleanup()

    # what ends it early

    def _end_cleanly(self) -> bool:
        """After the first Ctrl-C: ask what runs to end; False when nothing runs that could."""
        if "around" not in self.__dict__:
            return False
        self.around.interrupted.set()
        self.around.stop.set()
        return True

    def _lock_lost(self, node: str) -> None:
        self.say(f"the lock on {node} was lost; ending", details=[])
        self.statuses.append(4)
        self.around.stop.set()

    def _reader_gone(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):  # a full disk, not a reader who had enough
            self.statuses.append(SystemRefused.status)
            complain(f"error: standard output: {SystemRefused.of(error)}\n")
        self._end_cleanly()
