"""How the lab ends processes: with a grace, or as a crash would."""

from __future__ import annotations

import signal
import subprocess
import sys

from sparkyard.lab.processes import end

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
    end(lambda: {process.pid} if process.poll() is None else set(), grace=grace, what="a test's process")
    process.stdout.close()
    return process.wait()


def test_without_a_grace_nothing_hears_a_term() -> None:
    assert [ended(0) for _ in range(5)] == [-signal.SIGKILL] * 5


def test_with_a_grace_a_process_ends_by_itself() -> None:
    assert ended(10) == 7
