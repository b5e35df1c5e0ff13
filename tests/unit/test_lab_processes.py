"""How the lab ends processes: with a grace, or as a crash would."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable

import pytest

from sparkyard.lab import processes

HEARS_TERM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(60)
"""


def ended(grace: float) -> int:
    """The status of a process that ends with 7 when it hears TERM."""
    process = subprocess.Popen([sys.executable, "-c", HEARS_TERM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    processes.end(lambda: {process.pid} if process.poll() is None else set(), grace=grace, what="a process")
    process.stdout.close()
    return process.wait()


def test_without_a_grace_nothing_is_sent_a_term(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[signal.Signals] = []
    real = processes.send

    def send(pids: Iterable[int], number: signal.Signals) -> None:
        sent.append(number)
        real(pids, number)

    monkeypatch.setattr(processes, "send", send)
    assert ended(0) == -signal.SIGKILL
    assert set(sent) == {signal.SIGKILL}


def test_with_a_grace_a_process_ends_by_itself() -> None:
    assert ended(10) == 7
