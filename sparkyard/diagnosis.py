"""Words about ranks that ended, and about ``docker run`` that refused. Pure: saved answers in, sentences out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard import memory_guard
from sparkyard.log_tokens import LOG_TOKENS, LogToken

LAST_LINES = 20
"""Log lines shown of a rank that died."""
OTHER_LINES = 5
"""Log lines shown of each other rank."""
NEVER = "0001-01-01T00:00:00Z"
"""Docker's time of things that have not happened."""
BY_ITSELF = "ended by itself"
UNWATCHED = "can no longer be watched"
READ_LOGS = "invoke logs, or read the whole log in the run record"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a watched container stands that is no longer serving.

    ``finished`` is the node's own RFC 3339 time, empty when unknown. ``killer`` names an active user-space memory guard; ``starved``
    says that our own killed it.
    """

    node: str
    container: str
    what: str
    finished: str = ""
    exit_code: int | None = None
    oom_killed: bool = False
    killer: str = ""
    starved: bool = False
    lines: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether it ended by itself with status 0, which is right for a job alone."""
        return self.what.startswith(BY_ITSELF) and self.exit_code == 0

    @property
    def lost(self) -> bool:
        """Whether nothing is known of its end: its node or its Docker engine does not answer."""
        return self.what.startswith(UNWATCHED)

    @property
    def tokens(self) -> tuple[LogToken, ...]:
        return known_tokens(self.lines)


def known_tokens(lines: Iterable[str]) -> tuple[LogToken, ...]:
    """The known tokens seen in the lines, each once, own causes before those that point at another rank."""
    text = "\n".join(lines)
    return tuple(sorted((t for t in LOG_TOKENS if t.token in text), key=lambda t: t.peer))


def ending(node: str, container: str, state: str | None, lines: Sequence[str] = ()) -> Ending | None:
    """What ``docker inspect`` says of a container that should serve; None while it does.

    Args:
        state: ``{{json .State}}`` and ``{{.RestartCount}}`` on two lines; None when there is no such container.

    Raises:
        ValueError: the answer was cut short or is not what Docker prints.
    """
    if state is None:
        return Ending(node, container, "is gone: somebody removed it", lines=tuple(lines))
    first, _, second = state.strip().partition("\n")
    seen, restarts = json.loads(first), int(second)
    if not isinstance(seen, dict) or "Status" not in seen:
        raise ValueError(f"no container state: {first[:80]}")
    what = _what(seen, restarts)
    if not what:
        return None
    finished = str(seen.get("FinishedAt", ""))
    return Ending(
        node,
        container,
        what,
        finished="" if finished == NEVER else finished,
        exit_code=int(seen.get("ExitCode", 0)),
        oom_killed=bool(seen.get("OOMKilled")),
        lines=tuple(lines),
    )


def _what(state: dict[str, Any], restarts: int) -> str:
    if restarts:
        return f"is in a crash loop: Docker restarted it {restarts} times (a single rank cannot join again)"
    reason = state.get("Error") or "Docker gives no reason"
    words = {
        "running": "",
        "removing": "",
        "created": f"was created and never started: {reason}",
        "paused": "is paused: somebody paused it",
    }
    return words[state["Status"]] if state["Status"] in words else _ended(state)


def _ended(state: dict[str, Any]) -> str:
    code = state.get("ExitCode", 0)
    if state.get("OOMKilled"):
        return f"was killed for memory (exit code {code}, OOMKilled true)"
    if code == 0:
        return f"{BY_ITSELF} (exit code 0), though it should serve"
    return f"ended with exit code {code}{_signal(code)}"


def _signal(code: int) -> str:
    names = {137: "SIGKILL", 139: "SIGSEGV", 134: "SIGABRT", 143: "SIGTERM", 135: "SIGBUS"}
    return f" ({names[code]})" if code in names else ""


def guard_of(answer: str) -> str:
    """The first active user-space memory guard in the answer of ``MEMORY_GUARDS``; empty when the kernel log has an OOM kill."""
    lines = answer.split()
    return "" if "kernel-oom" in lines else next((line for line in lines if line.endswith(".service")), "")


MEMORY_GUARDS = """
for unit in earlyoom nohang systemd-oomd anti-oom; do
  systemctl is-active --quiet "$unit" 2>/dev/null && echo "$unit.service"
done
if journalctl -k --since -10min 2>/dev/null | grep -qi 'out of memory: killed'; then echo kernel-oom; fi
exit 0
"""
"""Asks a node for active user-space memory guards, and whether the kernel's own OOM killer acted (sh)."""


def in_order(endings: Iterable[Ending]) -> tuple[Ending, ...]:
    """The endings, causes first: what our memory guard killed, and last the ranks whose log blames another one; then by time."""
    return tuple(
        sorted(endings, key=lambda e: (not e.starved, any(t.peer for t in e.tokens), e.finished or "9999"))
    )


def sentence(end: Ending) -> str:
    """One line: which container, how it ended, and what is known about why."""
    guard = ""
    if end.exit_code == 137 and not end.oom_killed:
        guard = f"; probably killed by the user-space memory guard {end.killer}" if end.killer else ""
    return f"the rank on {end.node} (container {end.container}) {end.what}{guard}"


def report(
    endings: Sequence[Ending], others: Sequence[tuple[str, str, Sequence[str]]]
) -> tuple[str, str, tuple[str, ...]]:
    """The message, next step and details for ranks that ended. ``others`` are (node, container, last lines) of the rest."""
    first, *more = in_order(endings)
    details = [
        *_block(f"last lines of {first.node} ({first.container})", first.lines, LAST_LINES),
        *_hints(first),
    ]
    for end in more:
        details += [sentence(end)]
        details += _block(f"last lines of {end.node} ({end.container})", end.lines, LAST_LINES)
        details += _hints(end)
    for node, container, lines in others:
        details += _block(f"last lines of {node} ({container}), still running", lines, OTHER_LINES)
    return sentence(first), _next_step(first), tuple(details)


def _block(title: str, lines: Sequence[str], count: int) -> list[str]:
    shown = list(lines)[-count:]
    return [f"{title}:", *(f"  {line}" for line in shown)] if shown else [f"{title}: it wrote none"]


def _hints(end: Ending) -> list[str]:
    return [f"known: “{t.token}” on {end.node}: {t.meaning} [{', '.join(t.rows)}]" for t in end.tokens]


def _next_step(end: Ending) -> str:
    if end.starved:
        return memory_guard.next_step(end.node)
    if end.killer:
        return f"exempt the engine in {end.killer} on {end.node}, or raise its threshold"
    if end.tokens:
        return end.tokens[0].next_step
    if end.oom_killed:
        return "lower the lane's memory setting, or free memory on that node"
    return READ_LOGS


def silent(seconds: float, besides: str = "and they have not ended") -> str:
    """One line about ranks that say nothing."""
    return f"no rank wrote a log line for {seconds:g} s, {besides}: it hangs, or the limit (log_silence) is too low"


def stall(
    seconds: float, others: Sequence[tuple[str, str, Sequence[str]]]
) -> tuple[str, str, tuple[str, ...]]:
    """The message, next step and details when every rank has been silent for too long."""
    details: list[str] = []
    for node, container, lines in others:
        details += _block(f"last lines of {node} ({container})", lines, LAST_LINES)
    return (
        silent(seconds, "and the API is not ready"),
        "invoke logs --follow while starting again; save stacks (py-spy) of each rank if it hangs",
        tuple(details),
    )


def run_refused(container: str, error: str) -> tuple[str, str]:
    """Message and next step for a ``docker run`` that failed before the container ran (status 125 to 127)."""
    text = " ".join(error.split())
    for pattern, message, next_step in _RUN_ERRORS:
        if found := re.search(pattern, text, re.IGNORECASE):
            parts = {"container": container, **{k: v or "" for k, v in found.groupdict().items()}}
            return message.format(**parts), next_step.format(**parts)
    return (
        f"docker run refused to start {container}",
        "read Docker's words above; invoke render shows the whole command",
    )


_RUN_ERRORS = (
    (
        r"container name \S+ is already in use",
        "the name {container} is taken by another container",
        "docker ps --all --filter name={container}, and remove it if it is not needed",
    ),
    (
        r"(?P<port>\d+)?[^:]*: address already in use|port is already allocated",
        "a port of {container} is already in use",
        "ss -Hltnp on that node shows who holds it",
    ),
    (
        r"unable to find image|no such image|pull access denied|manifest unknown|repository does not exist",
        "the image of {container} is not on this node",
        "invoke build",
    ),
    (
        r"could not select device driver",
        "Docker on this node has no NVIDIA runtime for --gpus",
        "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
    ),
    (
        r"exec format error",
        "the image of {container} is for another processor",
        "build or pull it for this node's processor",
    ),
    (
        r"invalid mount|bind source path does not exist",
        "a bind mount of {container} has no source on this node",
        "invoke download start",
    ),
    (
        r"executable file not found|no such file or directory.*exec|exec: ",
        "the image of {container} has no such program",
        "compare the words in invoke render with the image",
    ),
    (
        r"cannot connect to the docker daemon|permission denied.*docker",
        "Docker does not answer on this node",
        "docker info on that node",
    ),
)
