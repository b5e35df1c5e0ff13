"""How the ranks of an export meet: JSON lines over TCP; a rank that is lost ends the others."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from typing import Any

from rendezvous import LOST, NOBODY, REFUSED, leave, say, split

PATIENCE = 600.0
"""Seconds that a rank looks for rank 0: a slow machine starts four of them one after the other."""


class Peer:
    """The other end of a connection."""

    def __init__(self, rank: int, connection: socket.socket) -> None:
        self.rank, self.connection, self.lines = rank, connection, connection.makefile("rb")

    def send(self, **message: Any) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> dict[str, Any]:
        """The next message. Raises ConnectionError when the other end is gone."""
        line = self.lines.readline()
        if not line:
            raise ConnectionError(f"rank {self.rank} closed its connection")
        message: dict[str, Any] = json.loads(line)
        return message


def gather(address: str, ranks: int, same: dict[str, Any]) -> list[Peer]:
    """Rank 0: wait for all others, which must say the same of the recipe and of the number of ranks."""
    listener = socket.create_server(split(address))
    say(0, f"rendezvous at {address}, waiting for {ranks - 1} ranks")
    peers: dict[int, Peer] = {}
    while len(peers) < ranks - 1:
        connection, _ = listener.accept()
        peer = Peer(0, connection)
        try:
            hello = peer.read()
        except (OSError, ValueError):
            connection.close()  # somebody who looked whether the port is open
            continue
        peer.rank = int(hello["rank"])
        refusal = _refusal(hello, peers, same)
        if refusal:
            peer.send(refused=refusal)
            say(0, f"FATAL refused rank {peer.rank}: {refusal}")
            leave(REFUSED)
        peers[peer.rank] = peer
        say(0, f"rank {peer.rank} joined from {connection.getpeername()[0]}")
    return [peers[rank] for rank in sorted(peers)]


def _refusal(hello: dict[str, Any], peers: dict[int, Peer], same: dict[str, Any]) -> str:
    if hello["rank"] in peers:
        return f"rank {hello['rank']} is here already"
    told = hello["same"]
    wrong = [
        f"{name} is {told.get(name)} here and {value} on rank 0"
        for name, value in same.items()
        if told.get(name) != value
    ]
    return "; ".join(wrong)


def join(address: str, rank: int, same: dict[str, Any]) -> Peer:
    """Another rank: try until rank 0 answers."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            peer = Peer(0, socket.create_connection(split(address), timeout=5))
            break
        except OSError as fault:
            if time.monotonic() > ends:
                say(rank, f"FATAL no rank 0 at {address}: {fault}")
                leave(NOBODY)
            time.sleep(0.2)
    peer.connection.settimeout(None)
    peer.send(rank=rank, same=same)
    say(rank, f"joined {address}")
    return peer


def watch(rank: int, peers: list[Peer]) -> threading.Event:
    """End this rank when one of the others is lost before the event is set (by whoever is done)."""
    done = threading.Event()

    def look(peer: Peer) -> None:
        try:
            while peer.read().get("done") is None:
                continue
        except (OSError, ValueError) as fault:
            if not done.is_set():
                say(rank, f"FATAL lost rank {peer.rank}: {fault}")
                os._exit(LOST)
        done.set()

    for peer in peers:
        threading.Thread(target=look, args=(peer,), daemon=True).start()
    return done
