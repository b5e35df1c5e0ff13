"""Ports for tests are each given once, to one worker."""

from __future__ import annotations

import socket
from itertools import combinations

from tests.ports import free_port, of_worker


def test_workers_share_no_port() -> None:
    slices = [set(of_worker(worker)) for worker in ("gw0", "gw1", "gw2", "")]
    assert all(one.isdisjoint(other) for one, other in combinations(slices, 2))
    assert all(len(one) > 500 for one in slices)


def test_no_port_is_given_twice_or_while_somebody_listens_on_it() -> None:
    given = [free_port() for _ in range(50)]
    assert len(set(given)) == 50
    with socket.create_server(("127.0.0.3", given[-1] + 1)):
        assert free_port() != given[-1] + 1
