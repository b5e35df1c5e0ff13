"""``invoke status``: each rank as it is, whether that is what would be made today, and one real token."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import Any

from sparkyard.asking import ask_all
from sparkyard.drift import RankState, rank_states, status_questions
from sparkyard.errors import CouldNotCheck, SparkyardError
from sparkyard.events import Event
from sparkyard.facts import containers
from sparkyard.line import Line
from sparkyard.plan import Answers
from sparkyard.rendered import RenderedLane
from sparkyard.tables import finding
from sparkyard.verbs import running_lane

SHORT = 12
"""Characters that a cell of the table may have: with the other columns, what 80 columns leave."""
TOKEN_SECONDS = 30.0
"""How long ``status`` waits for its one token."""


def status(line: Line) -> None:
    """Show the running lane, or the inventory's when nothing runs; exit status 1 unless it serves as wanted."""
    lane = running_lane(line) or line.lane
    rendered = line.rendered(lane)
    line.around.secrets = (*line.around.secrets, *rendered.secrets)
    line.around.stop.clear()
    answers = _answers(line, rendered, [node.name for node in lane.nodes])
    ranks = rank_states(rendered, answers)
    several = len(ranks) > len({rank.node for rank in ranks})
    for rank in ranks:
        line.emit(row(rank, named=several))
    for event in (each for rank in ranks for each in below(rank, named=several)):
        line.emit(event)
    _tell_jobs(line, answers)
    serving = all(rank.as_wanted for rank in ranks)
    token = one_token(rendered) if any(rank.state == "running" for rank in ranks) else "nothing runs"
    line.emit(_summary(lane.name, rendered, serving and not token, token))
    if not serving or token:
        line.statuses.append(1)


def _tell_jobs(line: Line, answers: dict[str, Answers]) -> None:
    """The containers of jobs that are there: one that runs is in no hurry, one that ended was never sealed."""
    for node, answer in answers.items():
        with contextlib.suppress(CouldNotCheck):  # the rows of the ranks say why
            for fact in (each for each in containers(answer) if each.job):
                stands = f"runs since {fact.since}" if fact.running else f"is {fact.state}"
                words = f"job {fact.job} of lane {fact.lane}: {fact.name} {stands}"
                data = {"job": fact.job, "container": fact.name, "state": fact.state}
                line.emit(Event("finding", words, node, data=data))


def _answers(line: Line, rendered: RenderedLane, nodes: list[str]) -> dict[str, Answers]:
    found: dict[str, Answers] = {}
    for node, answer in ask_all(line.around, {n: status_questions(rendered, n) for n in nodes}).items():
        if isinstance(answer, SparkyardError):
            line.statuses.append(answer.status)
            data = {"details": list(answer.details), "next": answer.next_step}
            line.emit(Event("node-unreachable", answer.message, node, data=data))
        else:
            found[node] = answer
    return found


def row(rank: RankState, *, named: bool = False) -> Event:
    """A rank in one row, ``named`` after its service where a node has several. What differs stands in it where it is a few words, else below."""
    found = [*rank.trouble, *rank.drift]
    longer = f"{len(found)}, below" if len(found) > 1 else "below"
    told: dict[str, Any] = asdict(rank) | {
        "since": rank.since.split(".")[0].removesuffix("Z"),
        "drift": found or "none",
        "told": longer if _is_long(rank) else found or "none",
        "as_wanted": rank.as_wanted,
        "of": rank.service if named else "",
        "headings": {"told": "drift", "of": "service", "since": "since (UTC)"},
    }
    whole = finding("status", told | {"told": found or "none"})
    return finding("status", told, whole.message)  # nothing stands below a line of --json


def below(rank: RankState, *, named: bool = False) -> tuple[Event, ...]:
    """What differs, a line each, where a column of a table would be too narrow for it."""
    if not _is_long(rank):
        return ()
    who = f"rank {rank.rank}, {rank.service}" if named else f"rank {rank.rank}"
    return tuple(
        Event("finding", f"{who}: {text}", rank.node, data={"rank": rank.rank, "drift": text})
        for text in (*rank.trouble, *rank.drift)
    )


def _is_long(rank: RankState) -> bool:
    return len(", ".join((*rank.trouble, *rank.drift))) > SHORT


def _summary(lane: str, rendered: RenderedLane, good: bool, token: str) -> Event:
    ready = rendered.ready
    if good:
        words = f"lane {lane} serves as wanted at {ready.url}/v1: a real request was answered"
    else:
        words = f"lane {lane} does not serve as wanted" + (f": {token}" if token else ": see the ranks above")
    data = {"lane": lane, "url": ready.url, "serves_as_wanted": good, "token": token or "answered"}
    return Event("finding", words, data=data)


def one_token(rendered: RenderedLane) -> str:
    """Ask the API for one token; empty when it came, else what came instead."""
    from sparkyard.executors.http import Api, ask  # noqa: PLC0415
    from sparkyard.executors.ready import GENERATION  # noqa: PLC0415
    from sparkyard.expectations import shortened  # noqa: PLC0415
    from sparkyard.replies import generated  # noqa: PLC0415

    ready = rendered.ready
    body = {**ready.body, "max_tokens": 1, "stream": False}
    reply = ask(Api(ready.url, ready.api_key), "POST", GENERATION, body, TOKEN_SECONDS)
    if reply.status == 200 and generated(reply.document):
        return ""
    return reply.unheard or f"one token was asked for, HTTP status {reply.status}: {shortened(reply.text)}"
