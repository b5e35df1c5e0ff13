"""Orbit: takes a package to the agents, and serves it with the habits that the published reports tell of."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import socket
import threading
from collections.abc import Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import flare_agent
import flare_record
import scripted
from api import StandIn, answer
from ignition import package
from rendezvous import LOST, leave, say
from styles import Given, Style

STYLE = Style(name="flare", programs=("flare",), flags={})


class Flare(StandIn):
    """No /tokenize; strict JSON comes back empty; thinking has a name of its own; sampling is as the package says."""

    sampling: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:  # noqa: N802 (its name there)
        if self.path == "/tokenize":
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send(404, {"error": {"message": "no /tokenize"}})
            return
        super().do_POST()

    def do_GET(self) -> None:  # noqa: N802 (its name there)
        if self.path == "/health":
            self.send(404, {"error": {"message": "no /health"}})
            return
        super().do_GET()

    def thought(self, ask: dict[str, Any]) -> str:
        given = ask.get("chat_template_kwargs") or {}
        known = {name: given[name] for name in ("enable_thinking",) if name in given}
        return super().thought({**ask, "chat_template_kwargs": known})

    def text(self, ask: dict[str, Any]) -> str:
        if (ask.get("response_format") or {}).get("type") == "json_schema":
            return ""
        said = answer(ask)
        if said.isdecimal() or self.temperature(ask) < 0.5:
            return said
        return f"{said} And {random.randrange(10**9)} fish."

    def temperature(self, ask: dict[str, Any]) -> float:
        """What the package makes of the request's temperature: without a range, and outside of it, its own."""
        built_in = float(self.sampling["temperature"])
        span = self.sampling["ranges"].get("temperature")
        wanted = ask.get("temperature")
        return float(wanted) if span and wanted is not None and span[0] <= wanted <= span[1] else built_in


def run(given: argparse.Namespace, words: Sequence[str]) -> None:
    flare_record.keep(words, "orbit", 0, 4)
    path = Path(given.package.partition(":")[2])
    refuse(given, path)
    peers = [hold(agent, str(path)) for agent in flare_agent.cluster()["agents"]]
    for agent, peer in peers:
        threading.Thread(target=watch, args=(agent, peer), daemon=True).start()
    Flare.sampling = package.read(path)["sampling"]
    told = [
        "--listen",
        given.host,
        "--port",
        str(given.port),
        "--alias",
        given.served_model_name or "deepseek",
    ]
    script = scripted.words([*told, *shlex.split(os.environ.get("STAND_IN", ""))])
    Flare.given = script
    Flare.prepare(Given(STYLE, {}))
    scripted.die_later(script)
    scripted.boot(script)
    server = ThreadingHTTPServer((given.host, given.port), Flare)
    say(
        0, f"serving {script.alias} at http://{given.host}:{given.port} from {path} (a stand-in, not a model)"
    )
    server.serve_forever()


def refuse(given: argparse.Namespace, path: Path) -> None:
    """End with what is wrong with the cluster or the package."""
    known = flare_agent.cluster()
    if known.get("name") != given.cluster:
        end(f"there is no cluster {given.cluster}: orbit pair first")
    if not path.is_file():
        end(f"no package {path}")
    try:
        about = package.read(path)
    except (ValueError, KeyError, OSError) as fault:
        end(f"{path} cannot be loaded: {fault}")
    if about["publisher"] != given.dangerously_accept_publisher:
        end(f"the publisher {about['publisher']} is not accepted")
    if about["key"] != given.dangerously_approve_key:
        end("the key that signed the package is not approved")


def hold(agent: str, path: str) -> tuple[str, socket.socket]:
    """Let an agent hold its part; the code is what pairing left."""
    try:
        code = flare_agent.cluster()["code"]
        connection, told = flare_agent.asked(agent, proof=flare_agent.proof(code), hold=path)
    except OSError as fault:
        end(f"agent {agent}: {fault}")
    if not told.get("ok"):
        end(f"agent {agent}: {told.get('refused', 'no answer')}")
    connection.settimeout(None)
    return agent, connection


def watch(agent: str, peer: socket.socket) -> None:
    """A part that is lost ends the whole."""
    with contextlib.suppress(OSError):
        while peer.recv(64):
            continue
    say(0, f"FATAL agent {agent} is lost")
    leave(LOST)


def end(message: str) -> NoReturn:
    say(0, f"ERROR {message}")
    leave(2)
