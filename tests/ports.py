"""Ports that tests may listen on: those of a worker of pytest-xdist are no other worker's, and none is given twice."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

LOWEST, HIGHEST = 10_000, 32_000
WORKERS = 8
"""Slices of the range; without xdist the last one is taken."""


def of_worker(worker: str) -> range:
    """The ports of ``gw0``, ``gw1``, …, all below those that connections take for themselves: nobody who tries again and again meets itself."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()[0])
    size = (min(HIGHEST, first) - LOWEST) // WORKERS
    number = int(worker.removeprefix("gw")) % WORKERS if worker.startswith("gw") else WORKERS - 1
    return range(LOWEST + number * size, LOWEST + (number + 1) * size)


def _in_turn() -> Iterator[int]:
    ports = of_worker(os.environ.get("PYTEST_XDIST_WORKER", ""))
    start = random.randrange(len(ports))  # another session on this machine has its own beginning
    yield from (*ports[start:], *ports[:start])


_ports = _in_turn()


def free_port() -> int:
    """A port on which nobody listens, on no address, and which nobody else here was given."""
    for port in _ports:
        with socket.socket() as listener:
            try:
                listener.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError("every port of this worker was given to a test")
