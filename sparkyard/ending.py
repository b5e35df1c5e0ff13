"""Waits for the end of a process of ours without looking again and again."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], object]]:
    """Something that waits for the end of a process, for some seconds at most: woken by the kernel, so that no end is seen late."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:  # a kernel before 5.3, or one that does not give it to a container

        def wait(seconds: float) -> None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)

        yield wait
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        yield lambda seconds: poll.poll(seconds * 1000)
    finally:
        os.close(handle)
