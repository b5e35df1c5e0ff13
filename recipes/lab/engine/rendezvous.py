"""How the ranks of the lab's engine find each other and notice a loss: JSON lines over TCP, a beat a second both ways."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

BEAT = 1.0
SILENCE = 12.0
"""Seconds. A closed connection is seen at once; a cut link only by its silence, within the 15 s that a lost rank may take."""
LOST = 3
REFUSED = 2
NOBODY = 4
HUNG_UP = b'{"refused": "rank 0 hung up"}'


def say(rank: int, text: str) -> None:
    """One plain log line, written in one piece: several threads speak."""
    print(f"{time.strftime('%H:%M:%S')} rank {rank}: {text}\n", end="", flush=True)


def leave(status: int) -> NoReturn:
    """End now: the model server's own threads would keep an ordinary exit waiting."""
    sys.stdout.flush()
    os._exit(status)


def end_on_signals(rank: int) -> None:
    """As a container's first process we must ask for SIGTERM, or `docker stop` waits in vain."""

    def stop(number: int, _: Any) -> None:
        say(rank, f"{signal.Signals(number).name}, bye")
        leave(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def split(address: str) -> tuple[str, int]:
    """``198.18.1.1:29500`` as host and port."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def send(peer: socket.socket, **message: Any) -> None:
    """One message."""
    peer.sendall(json.dumps(message).encode() + b"\n")


def stay(rank: int, other: int, peer: socket.socket, lines: Any) -> None:
    """Beat and listen until the other rank is lost; then end this one."""
    threading.Thread(target=_beat, args=(peer,), daemon=True).start()
    peer.settimeout(SILENCE)
    try:
        for _ in lines:
            continue
        seen = "closed its connection"
    except TimeoutError:
        seen = f"was silent for {SILENCE:.0f} s"
    except OSError as fault:
        seen = f"was lost ({fault.strerror})"
    say(rank, f"FATAL rank {other} {seen}; a model in parts cannot go on without it")
    leave(LOST)


def _beat(peer: socket.socket) -> None:
    while True:
        try:
            send(peer, beat=True)
        except OSError:
            return
        time.sleep(BEAT)


class Rendezvous:
    """Rank 0's side: waits until all other ranks have joined.

    ``same`` are values that must be equal on every rank: a rank that says something else ends all of them.
    """

    def __init__(self, address: str, ranks: int, same: dict[str, Any] | None = None) -> None:
        self.ranks = ranks
        self.address = address
        self.same = same or {}
        self.joined: set[int] = set()
        self.changed = threading.Condition()

    def wait(self) -> None:
        """Return when all are there. Ranks that are lost later end this process."""
        if self.ranks == 1:
            return
        listener = socket.create_server(split(self.address))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        say(0, f"waiting for {self.ranks - 1} more at {self.address}")
        with self.changed:
            while len(self.joined) < self.ranks - 1:
                if not self.changed.wait(5):
                    say(0, f"still waiting: {len(self.joined)} of {self.ranks - 1} joined")
        say(0, f"all {self.ranks} ranks are here")

    def _accept(self, listener: socket.socket) -> None:
        while True:
            peer, where = listener.accept()
            threading.Thread(target=self._serve, args=(peer, where[0]), daemon=True).start()

    def _serve(self, peer: socket.socket, where: str) -> None:
        lines = peer.makefile("rb")
        try:
            peer.settimeout(SILENCE)
            hello = json.loads(lines.readline() or b"{}")
            rank = int(hello["rank"])
        except (OSError, ValueError, KeyError, TypeError):
            peer.close()  # a port scan, a probe
            return
        problem = self._problem(rank, hello)
        if problem:
            say(0, f"refused a rank: {problem}")
            send(peer, refused=problem)
            peer.close()
            if self._differences(rank, hello):
                say(0, "FATAL all ranks must be started alike")
                leave(REFUSED)
            return
        send(peer, ranks=self.ranks)
        with self.changed:
            self.joined.add(rank)
            self.changed.notify_all()
        say(0, f"rank {rank} joined from {where}")
        stay(0, rank, peer, lines)

    def _problem(self, rank: int, hello: dict[str, Any]) -> str:
        if hello.get("ranks") != self.ranks:
            return f"rank {rank} was started for {hello.get('ranks')} ranks, this one for {self.ranks}"
        if not 0 < rank < self.ranks:
            return f"there is no rank {rank} among {self.ranks}"
        if rank in self.joined:
            return f"rank {rank} is here already"
        return "; ".join(self._differences(rank, hello))

    def _differences(self, rank: int, hello: dict[str, Any]) -> list[str]:
        told = hello.get("same") or {}
        return [
            f"{name} is {told.get(name)!r} on rank {rank} and {value!r} on rank 0"
            for name, value in self.same.items()
            if told.get(name) != value
        ]


def join(
    rank: int, ranks: int, address: str, seconds: float, same: dict[str, Any] | None = None
) -> tuple[socket.socket, Any]:
    """A follower's side: try until rank 0 answers; its connection."""
    say(rank, f"looking for rank 0 at {address}")
    peer = _keep_trying(lambda: socket.create_connection(split(address), timeout=SILENCE), rank, seconds)
    lines = peer.makefile("rb")
    try:
        send(peer, rank=rank, ranks=ranks, same=same or {})
        answer = json.loads(lines.readline() or HUNG_UP)
    except (OSError, ValueError):  # it ended before it answered
        answer = json.loads(HUNG_UP)
    if "refused" in answer:
        say(rank, f"FATAL rank 0 refused: {answer['refused']}")
        leave(REFUSED)
    say(rank, f"joined rank 0 at {address} ({ranks} ranks)")
    return peer, lines


def _keep_trying(connect: Callable[[], socket.socket], rank: int, seconds: float) -> socket.socket:
    began = told = time.monotonic()
    while True:
        try:
            return connect()
        except OSError as fault:
            now = time.monotonic()
            if now - began > seconds:
                say(rank, f"FATAL no rank 0 within {seconds:.0f} s: {fault}")
                leave(NOBODY)
            if now - told > 5:
                say(rank, f"rank 0 is not there yet: {fault}")
                told = now
        time.sleep(0.2)
