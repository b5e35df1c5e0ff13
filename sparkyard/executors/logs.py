"""Reads the whole log of a container, line by line, and judges what it says. Changes nothing and keeps no line."""

from __future__ import annotations

from collections import deque

from sparkyard.actions_log import CheckLog
from sparkyard.command import Command
from sparkyard.errors import VerifyFailed
from sparkyard.log_checks import LogReader, LogResult, worst
from sparkyard.world import World

LIMIT = 120.0
"""Seconds to read a log."""


def check_log(action: CheckLog, node: str, world: World) -> None:
    """Judge the log. Raises VerifyFailed with every check that fails or could not be made, Interrupted."""
    reader, last = LogReader(action.checks), deque[str](maxlen=3)

    def on_line(line: str) -> None:
        last.append(line)
        reader.line(line)

    command = Command.of("docker", "logs", action.container, timeout=LIMIT)
    done = world.shell(node).run(command, on_line=on_line)
    if done.status != 0:
        raise VerifyFailed(
            f"could not check the log of {action.container}",
            node=node,
            details=[*last, "the lane was left as it is"],
            next_step="invoke status",
        )
    results = reader.results()
    bad = [result for result in results if result.result != "pass"]
    answered = "; ".join(f"{r.what}: {r.result}{_words(r)}" for r in results)
    world.verdict(command.shown(), answered, worst(results), [_told(result) for result in results])
    if bad:
        raise _failed(action, node, results, bad)


def _told(result: LogResult) -> dict[str, object]:
    return {"what": result.what, "result": result.result, "found": result.found}


def _failed(
    action: CheckLog, node: str, results: tuple[LogResult, ...], bad: list[LogResult]
) -> VerifyFailed:
    right = [f"{r.what}: as wanted{_words(r)}" for r in results if r.result == "pass"]
    return VerifyFailed(
        f"the log of {action.container} does not say what it should: {'; '.join(r.fault for r in bad)}",
        node=node,
        details=[*right, "the lane serves, and was left as it is"],
        next_step=f"invoke logs --node={node}",
    )


def _words(result: LogResult) -> str:
    found = ", ".join(f"{name} {value}" for name, value in result.found.items())
    return f" ({found})" if found else ""
