"""Agents: each has the same token, learns its rank when it is paired, and keeps what it learnt in Flare's own folder."""

from __future__ import annotations

import argparse
import hashlib
import json
import socket
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flare_record
from rendezvous import leave, say, split

CONFIG = Path("/root/.config/flare")
TOKEN = CONFIG / "agent.token"
CLUSTER = CONFIG / "cluster.json"
NAME = "sparks"


def token() -> bytes:
    """The token; ends the program with what is wrong with it."""
    wrong = ""
    if not TOKEN.is_file():
        wrong = f"there is no {TOKEN}"
    elif stat.S_IMODE(TOKEN.stat().st_mode) != 0o600:
        wrong = f"{TOKEN} has mode {stat.S_IMODE(TOKEN.stat().st_mode):o}, expected 600"
    elif len(TOKEN.read_bytes()) < 32:
        wrong = f"{TOKEN} has {len(TOKEN.read_bytes())} bytes, expected 32 or more"
    if wrong:
        say(0, f"ERROR {wrong}")
        leave(2)
    return TOKEN.read_bytes()


def hidden(code: str) -> str:
    """A code as it may be kept."""
    return hashlib.sha256(code.encode()).hexdigest()


def proof(code: str) -> str:
    """What shows that somebody has the token and the (hidden) code, without saying them."""
    return hashlib.sha256(token() + b"\0" + code.encode()).hexdigest()


def cluster() -> dict[str, Any]:
    """What this node knows of its cluster; empty before it is paired."""
    return json.loads(CLUSTER.read_text()) if CLUSTER.is_file() else {}


def install(given: argparse.Namespace, words: Sequence[str]) -> None:
    """Listen, and answer: who is here, be paired, hold a package."""
    token()
    rank = cluster().get("rank", _rank(given.listen))
    flare_record.keep(words, "agent", rank, 4)
    listener = socket.create_server(split(given.listen))
    say(rank, f"agent listens at {given.listen}")
    while True:
        connection, _ = listener.accept()
        threading.Thread(
            target=_answer, args=(connection, hidden(given.join_code), rank), daemon=True
        ).start()


def _rank(listen: str) -> int:
    """Before it is paired: the lab's nodes have addresses that count from 1."""
    return int(split(listen)[0].rsplit(".", 1)[1]) - 1


def _answer(connection: socket.socket, code: str, rank: int) -> None:
    lines = connection.makefile("rb")
    try:
        ask = json.loads(lines.readline() or b"{}")
        answer = _answered(ask, code) if ask else {}
        connection.sendall(json.dumps(answer).encode() + b"\n")
        if ask.get("hold"):
            say(rank, f"holding a part of {ask['hold']}")
            for _ in lines:
                continue
            say(rank, "let go")
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


def _answered(ask: dict[str, Any], code: str) -> dict[str, Any]:
    if ask.get("proof") != proof(code):
        return {"refused": "another token or code"}
    if "pair" in ask:
        part = CLUSTER.with_suffix(".part")  # other threads and containers read it
        part.write_text(json.dumps(ask["pair"]) + "\n")
        part.replace(CLUSTER)
    held = "/root/.cache/flare/weights" if cluster().get("rank") else ask.get("hold", "")
    if ask.get("hold") and not Path(held).exists():
        return {"refused": "this node has no part of the package"}
    return {"ok": True, "cluster": cluster().get("name", "")}


def asked(agent: str, **ask: Any) -> tuple[socket.socket, dict[str, Any]]:
    """Ask an agent; its connection stays open. Raises OSError."""
    connection = socket.create_connection(split(agent), timeout=60)
    connection.sendall(json.dumps(ask).encode() + b"\n")
    return connection, json.loads(connection.makefile("rb").readline() or b"{}")


def pair(given: argparse.Namespace, words: Sequence[str]) -> None:
    """Make the agents a cluster, in the order in which they are named."""
    flare_record.keep(words, "pair", 0, len(given.agents))
    refused = []
    for rank, agent in enumerate(given.agents):
        member = {"name": NAME, "rank": rank, "agents": given.agents, "code": hidden(given.code)}
        try:
            connection, answer = asked(agent, proof=proof(hidden(given.code)), pair=member)
            connection.close()
        except OSError as fault:
            answer = {"refused": str(fault)}
        if not answer.get("ok"):
            refused.append(f"{agent}: {answer.get('refused', 'no answer')}")
    for line in refused:
        say(0, f"ERROR {line}")
    if refused:
        leave(2)
    say(0, f"cluster {NAME}: {len(given.agents)} agents")
