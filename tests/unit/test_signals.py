"""Ctrl-C typed once and twice, as a process of its own hears it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
from sparkyard.signals import Signals
Signals(lambda: True)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("closed", [False, True], ids=["", "nobody reads its errors"])
def test_the_second_ends_it_now_and_says_what_may_go_on(closed):
    words = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        assert process.stderr.readline() == "ending cleanly; once more to end now\n"
        if closed:
            process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        if not closed:
            told = process.stderr.read()
            assert (
                told
                == "\nended now; a container that ran may go on: invoke status shows it, and the next line heals\n"
            )
