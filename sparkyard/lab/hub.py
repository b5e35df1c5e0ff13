"""A small hub that speaks the Hugging Face API for the real client, from folders, with faults on demand.

In a test: ``with Hub(folder) as hub: HfApi(endpoint=hub.url)…``. As a process: ``python -m sparkyard.lab.hub --folder …``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from sparkyard.lab.hub_answers import Refusal, parse_range
from sparkyard.lab.hub_faults import Faults, Request, matches
from sparkyard.lab.hub_files import Entry, Repositories, Snapshot, as_commits, as_info, as_refs, to_json

PIECE = 256 * 1024
PAGE = 1000
CONTROL = {"/lab/faults", "/lab/requests", "/lab/health"}


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: HubServer
    entry: Request | None = None
    """The record of the request that is being answered."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests are recorded, not printed."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815 (their names there)

    def _answer(self) -> None:
        self.entry = None
        path = self._place()
        if path in CONTROL:
            self._control(path)
            return
        try:
            self._refuse_by_fault(path)
            self._route(path, parse_qs(urlsplit(self.path).query))
        except Refusal as refusal:
            self._send(refusal.status, to_json({"error": str(refusal)}), refusal.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        if self.entry is None:
            self._record(0)

    def _place(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _record(self, status: int) -> None:
        """Note the request before its answer leaves: who has the answer finds it in the record."""
        path = self._place()
        if path not in CONTROL:
            said = self.headers.get("Range", ""), status, 0, "Authorization" in self.headers
            self.entry = Request(self.command, path, *said)
            self.faults.record(self.entry)

    def _write(self, body: bytes) -> None:
        """Bytes of an answer's body, counted before they leave."""
        if self.entry is not None:
            self.entry.sent += len(body)
        self.wfile.write(body)

    @property
    def faults(self) -> Faults:
        return self.server.faults

    def _refuse_by_fault(self, path: str) -> None:
        now = self.faults.now
        if now.offline:
            self.close_connection = True
            raise ConnectionResetError
        signed = path.startswith("/cdn/")  # its links carry their own right, and must not be given the token
        wrong = now.token and not signed and self.headers.get("Authorization") != f"Bearer {now.token}"
        if now.denied or wrong:
            raise Refusal(401, "", "Invalid credentials in Authorization header")
        if self.faults.take("busy", path):
            raise Refusal(429, "", "Too many requests", {"Retry-After": f"{now.retry_after:g}"})
        if self.faults.take("errors", path):
            raise Refusal(500, "", "Internal error, on demand")

    def _route(self, path: str, query: dict[str, list[str]]) -> None:
        words = path.strip("/").split("/")
        if words[0] == "cdn" and len(words) == 2:
            self._cdn(words[1])
        elif words[:2] == ["api", "models"] and len(words) >= 4:
            self._api(self._find("/".join(words[2:4])), words[4:], query)
        elif len(words) >= 5 and words[2] == "resolve":
            self._resolve(self._find("/".join(words[:2])), words[3], "/".join(words[4:]))
        else:
            raise Refusal(404, "", f"no such page: {path}")

    def _find(self, name: str) -> Snapshot:
        snapshot = self.server.repositories.snapshot(name)
        if snapshot is None:
            raise Refusal(404, "RepoNotFound", "Repository not found")
        if name in self.faults.now.gated:
            raise Refusal(
                403,
                "GatedRepo",
                f"Access to model {name} is restricted and you are not in the authorized list.",
            )
        return snapshot

    def _check_revision(self, snapshot: Snapshot, revision: str) -> None:
        short = self.faults.now.prefixes and len(revision) >= 7 and snapshot.commit.startswith(revision)
        if revision not in {"main", "refs/heads/main", snapshot.commit} and not short:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    def _api(self, snapshot: Snapshot, words: list[str], query: dict[str, list[str]]) -> None:
        kind = words[0] if words else "revision"
        if len(words) > 1:
            self._check_revision(snapshot, words[1])
        if kind == "revision":
            self._send_json(as_info(snapshot))
        elif kind == "refs":
            self._send_json(as_refs(snapshot))
        elif kind == "commits":
            self._send_json(as_commits(snapshot))
        elif kind == "tree":
            self._tree(snapshot, "/".join(words[2:]), query)
        else:
            raise Refusal(404, "", f"the lab's hub does not know {kind}")

    def _tree(self, snapshot: Snapshot, below: str, query: dict[str, list[str]]) -> None:
        rows = snapshot.tree(below, recursive=query.get("recursive", ["false"])[0].lower() in {"true", "1"})
        if not rows and below:
            raise Refusal(404, "EntryNotFound", f"{below} does not exist")
        start = int(query.get("cursor", ["0"])[0])
        page = int(query.get("limit", [str(self.server.page)])[0])
        headers = {}
        if start + page < len(rows):
            kept = "&".join(f"{key}={value[0]}" for key, value in query.items() if key != "cursor")
            base = f"http://{self.headers.get('Host', '')}{urlsplit(self.path).path}"
            headers["Link"] = f'<{base}?{kept}&cursor={start + page}>; rel="next"'
        self._send_json(rows[start : start + page], headers)

    def _resolve(self, snapshot: Snapshot, revision: str, path: str) -> None:
        self._check_revision(snapshot, revision)
        entry = snapshot.entries.get(path)
        commit = {"X-Repo-Commit": snapshot.commit}
        if entry is None:
            raise Refusal(404, "EntryNotFound", "Entry not found", commit)
        if not entry.lfs:
            self._send_file(entry, commit)
            return
        place = f"{self.server.cdn}/cdn/{entry.sha256}"
        linked = {"X-Linked-Size": str(entry.size), "X-Linked-Etag": f'"{entry.sha256}"', "Location": place}
        self._send(302, b"", {**commit, **linked, "ETag": f'"{entry.oid}"'})

    def _cdn(self, sha256: str) -> None:
        entry = self.server.repositories.by_sha256(sha256)
        if entry is None:
            raise Refusal(404, "", "no such object")
        self._send_file(entry, {})

    def _send_file(self, entry: Entry, headers: dict[str, str]) -> None:
        size = entry.size // 2 if matches(entry.path, self.faults.now.truncated) else entry.size
        span = parse_range(self.headers.get("Range", ""), size)
        start, end = span or (0, size - 1)
        headers = {**headers, "ETag": f'"{entry.etag}"', "Accept-Ranges": "bytes"}
        if span:
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        self._begin(
            206 if span else 200, end - start + 1, {"Content-Type": "application/octet-stream", **headers}
        )
        if self.command == "GET":
            self._send_body(entry, start, end - start + 1)

    def _send_body(self, entry: Entry, start: int, count: int) -> None:
        path = self._place()
        rate = self.faults.now.rate if self.faults.applies(path) else 0
        limit = self.faults.now.drop_after
        drop = count > limit and self.faults.take("drops", path)
        began, sent = time.monotonic(), 0
        for piece in self._pieces(entry, start, limit if drop else count, rate):
            self._write(piece)
            sent += len(piece)
            if rate:
                time.sleep(max(0.0, began + sent / rate - time.monotonic()))
        if drop:
            self.wfile.flush()
            self.close_connection = True

    def _pieces(self, entry: Entry, start: int, count: int, rate: int) -> Iterator[bytes]:
        wrong = matches(entry.path, self.faults.now.wrong)
        step = min(PIECE, max(1, rate // 20)) if rate else PIECE
        with entry.file.open("rb") as content:
            content.seek(start)
            while count > 0 and (piece := content.read(min(step, count))):
                count -= len(piece)
                yield bytes(byte ^ 1 for byte in piece[:1]) + piece[1:] if wrong else piece

    def _send_json(self, value: Any, headers: dict[str, str] | None = None) -> None:
        self._send(200, to_json(value), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self._begin(status, len(body), headers)
        if self.command != "HEAD":
            self._write(body)

    def _begin(self, status: int, length: int, headers: dict[str, str]) -> None:
        self._record(status)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _control(self, path: str) -> None:
        """The lab's own paths: faults (GET, POST, DELETE), requests (GET, DELETE), health."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            answer = self._control_answer(path, body)
        except (ValueError, TypeError) as fault:
            self._send(400, to_json({"error": str(fault)}), {})
            return
        self._send_json(answer)

    def _control_answer(self, path: str, body: bytes) -> Any:
        if path == "/lab/faults":
            if self.command == "DELETE":
                self.faults.clear()
            elif self.command == "POST":
                self.faults.set(**json.loads(body))
            return self.faults.as_json()
        if path == "/lab/requests":
            seen = [dataclasses.asdict(request) for request in self.faults.requests]
            if self.command == "DELETE":
                self.faults.forget()
            return seen
        return {"ok": True}


class HubServer(ThreadingHTTPServer):
    """The listening side, on TCP."""

    daemon_threads = True
    block_on_close = False
    repositories: Repositories
    faults: Faults
    page: int
    cdn: str


class ControlServer(socketserver.ThreadingUnixStreamServer):
    """The same answers on a socket file, for those outside the lab's network."""

    daemon_threads = True
    block_on_close = False
    repositories: Repositories
    faults: Faults
    page: int
    cdn: str


class Hub:
    """A hub over folders of repositories. Its faults and its record are attributes."""

    def __init__(
        self,
        *folders: Path,
        address: str = "127.0.0.1",
        cdn_address: str = "127.0.0.2",
        port: int = 0,
        page: int = PAGE,
    ) -> None:
        self.faults = Faults()
        self.repositories = Repositories(folders)
        self._server = HubServer((address, port), Handler)
        # Another host, as on the real hub: the client reads metadata off a redirect only where it leaves the hub.
        cdn = HubServer((cdn_address, port), Handler)
        self._page, self._cdn = page, f"http://{cdn_address}:{cdn.server_address[1]}"
        self._servers: list[socketserver.BaseServer] = []
        self._adopt(self._server)
        self._adopt(cdn)

    def _adopt(self, server: HubServer | ControlServer) -> None:
        server.repositories, server.faults, server.page = self.repositories, self.faults, self._page
        server.cdn = self._cdn
        self._servers.append(server)

    @property
    def url(self) -> str:
        """What HF_ENDPOINT should say."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def requests(self) -> list[Request]:
        """What was asked so far, the control paths left out."""
        return self.faults.requests

    def listen_also(self, socket_file: Path) -> None:
        """Answer on a socket file too."""
        socket_file.unlink(missing_ok=True)
        self._adopt(ControlServer(str(socket_file), Handler))

    def start(self) -> str:
        """Serve from threads; the URL."""
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self.url

    def stop(self) -> None:
        """Stop listening; open answers end by themselves."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def main(words: Sequence[str] | None = None) -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(prog="python -m sparkyard.lab.hub", description=__doc__)
    parser.add_argument("--folder", type=Path, action="append", required=True)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--cdn-address", default="127.0.0.2", help="where large files are redirected to")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--socket", type=Path)
    given = parser.parse_args(words)
    hub = Hub(*given.folder, address=given.address, cdn_address=given.cdn_address, port=given.port)
    if given.socket:
        hub.listen_also(given.socket)
    print(hub.start(), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
