"""How long a container has been running, by its node's own clock: the words that ask, and what the answer means. Pure."""

from __future__ import annotations

from datetime import datetime

from sparkyard.command import Command

_ASK = """docker container inspect --format '{{.State.Running}} {{.State.StartedAt}}' -- "$1" && date -u +%Y-%m-%dT%H:%M:%S.%NZ"""


def run_time_command(container: str) -> Command:
    return Command.of("sh", "-c", _ASK, "sh", container, timeout=30)


def run_time(answer: str) -> float:
    """Seconds that it has been running; 0 when it does not run, or the answer cannot be read: who watches it tells that."""
    words = answer.split()
    if len(words) != 3 or words[0] != "true":
        return 0.0
    try:
        started, now = (datetime.fromisoformat(word) for word in words[1:])
        return max((now - started).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
