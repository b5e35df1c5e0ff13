"""What an engine of the lab has, told while its containers and images come and go."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkyard.lab import state

HERE = [
    {"Id": "0a", "Names": ["/rank-0"], "State": "running"},
    {"Id": "0b", "Names": None, "State": "removing"},
]
IMAGES = [
    {"Id": "1a", "RepoTags": ["b:1", "a:1"]},
    {"Id": "1b", "RepoTags": None},
    {"Id": "1c", "RepoTags": ["<none>:<none>"]},
]
LISTS = {
    "/version": {"Version": "20.10", "ApiVersion": "1.41"},
    "/containers/json": HERE,
    "/images/json": IMAGES,
}


class Engine(BaseHTTPRequestHandler):
    """An engine that lists what is gone by the time that somebody asks for it alone."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/v1.41")
        body = json.dumps(LISTS.get(path, {"message": f"no such thing: {path}"})).encode()
        self.send_response(200 if path in LISTS else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a socket file"

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "docker.sock"), Engine) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield SimpleNamespace(socket=tmp_path / "docker.sock")
        server.shutdown()


def test_what_goes_away_while_it_is_looked_at_is_no_fault(engine: Any) -> None:
    told = state._ask_engine(engine)
    assert told == {
        "engine": "20.10",
        "containers": ("rank-0 running", "0b removing"),
        "images": ("a:1", "b:1"),
    }
