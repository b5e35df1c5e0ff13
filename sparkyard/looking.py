"""Verbs that only look: ``config``, ``logs``. They take no lock and change nothing on a node."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sparkyard import facts, load
from sparkyard.asking import ask_all
from sparkyard.command import Command
from sparkyard.errors import Interrupted, SparkyardError, UsageError, VerifyFailed
from sparkyard.events import Event
from sparkyard.facts import ContainerFact
from sparkyard.line import Line
from sparkyard.model import Lane
from sparkyard.plan import Answers
from sparkyard.selection import chosen_nodes
from sparkyard.tables import finding


def config(line: Line) -> None:
    """Show every value of the inventory, and of the lane when there is one, with its origin."""
    has_lane = line.options.lane or line.inventory.default_lane
    for row in load.explain_json(line.lane if has_lane else line.inventory):
        line.emit(finding("config", {"node": row["owner"], **row}))


Found = dict[str, tuple[ContainerFact, ...] | SparkyardError]


def containers(line: Line, nodes: Iterable[str]) -> Found:
    """Our containers on each node, or why they are not known."""
    answers = ask_all(line.around, dict.fromkeys(nodes, (facts.CONTAINERS,)))
    found: Found = {}
    for node, answer in answers.items():
        try:
            found[node] = _ours(answer)
        except SparkyardError as error:
            found[node] = error
    return found


def _ours(answer: Answers | SparkyardError) -> tuple[ContainerFact, ...]:
    if isinstance(answer, SparkyardError):
        raise answer
    return tuple(fact for fact in facts.containers(answer) if fact.lane)


def running_lanes(found: Found, *, jobs: bool = False) -> tuple[str, ...]:
    """The lanes that have a container, running or not, on any node that answered; those of jobs count only with ``jobs``."""
    facts_ = [fact for facts_ in found.values() if not isinstance(facts_, SparkyardError) for fact in facts_]
    return tuple(dict.fromkeys(fact.lane for fact in facts_ if jobs or not fact.job))


def absent(lane: Lane, found: Found) -> VerifyFailed | None:
    """Why nothing is asked of a lane's API: no rank of it runs on the head, where another lane may answer on the same port."""
    here = found.get(lane.head.name)
    if not isinstance(here, tuple):
        return None  # a node that does not answer is told by whoever asks it next
    running = dict.fromkeys(fact.lane for fact in here if fact.running and not fact.job)
    if lane.name in running:
        return None
    instead = f", {' and '.join(f'lane {name}' for name in running)} does" if running else ""
    why = f"lane {lane.name} does not run{instead}; nothing was asked"
    return VerifyFailed(why, node=lane.head.name, next_step=f"invoke start --lane={lane.name}")


def logs(line: Line, node: str, follow: bool, lines: str) -> None:
    """Show the last log lines of every container of ours, or follow them until Ctrl-C."""
    if not (lines.isascii() and lines.isdecimal()):
        raise UsageError(f"--lines takes a number, not {lines!r}")
    nodes = chosen_nodes(line.inventory, line.options.limit)
    if node:
        nodes = chosen_nodes(line.inventory, node, "--node")
    found = containers(line, nodes)
    wanted = [
        (name, fact.name, called(name, fact, facts_))
        for name, facts_ in found.items()
        if not isinstance(facts_, SparkyardError)
        for fact in facts_
        if line.options.lane in (None, fact.lane)
    ]
    for lane in running_lanes(found, jobs=True):
        with contextlib.suppress(
            SparkyardError
        ):  # logs must also show what runs of a recipe that is no longer sound
            line.view.mask(line.lane_named(lane).secrets())
    errors = [error for error in found.values() if isinstance(error, SparkyardError)]
    if wanted:
        with ThreadPoolExecutor(
            len(wanted) if follow else 1
        ) as pool:  # one after the other: no rank's lines among another's
            jobs = [pool.submit(_logs, line, *one, follow, lines) for one in wanted]
        errors += [error for job in jobs if isinstance(error := job.exception(), SparkyardError)]
    for error in errors:
        if not isinstance(error, Interrupted):
            raise error
    if not wanted:
        line.say("no container of sparkyard is there")


def called(node: str, fact: ContainerFact, beside: Sequence[ContainerFact]) -> str:
    """What stands before a container's lines: its node, and where that has several containers, what each of them is."""
    if len(beside) < 2:
        return node
    return f"{node} {f'job {fact.job}' if fact.job else fact.labels.get('sparkyard.service') or fact.name}"


def _logs(line: Line, node: str, container: str, name: str, follow: bool, lines: str) -> None:
    words = ("docker", "logs", "--tail", lines, *(("--follow",) if follow else ()), container)
    one_at_a_time = threading.Lock()

    def show(text: str) -> None:
        with one_at_a_time:
            data = {"line": text, "container": container}
            line.emit(Event("finding", f"{name} | {text}", node, data=data))

    line.around.shell(node).run(Command(words), on_line=show)
