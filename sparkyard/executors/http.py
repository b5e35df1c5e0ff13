"""Sends requests to a lane's API with whole time limits. Proxies of the environment are not used: the API is on this machine.

The standard library's client: a line with nothing to do sends two requests, and a larger one takes longer to import than to answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any
from urllib.parse import quote, urlsplit

from sparkyard.replies import Assembly, Reply

CONNECT = 5.0
"""Seconds for a connection to an address of this machine."""
PIECE = 65536
"""Bytes read at once, at most."""


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is, and the key that it wants. Every request has a connection of its own, so threads may share one."""

    url: str
    key: str = ""

    def connection(self, timeout: float) -> HTTPConnection:
        """A connection that is not open yet; ``timeout`` in seconds is for opening it."""
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=timeout)

    def target(self, path: str) -> str:
        return quote(urlsplit(self.url).path.rstrip("/") + path, safe="/?&=%:@,;+~!$'()*[]")

    def headers(self, body: bytes | None) -> dict[str, bytes]:
        found = {"Accept": b"*/*", "User-Agent": b"sparkyard", "Connection": b"close"}
        if self.key:
            found["Authorization"] = b"Bearer " + self.key.encode()
        return found if body is None else {**found, "Content-Type": b"application/json"}


def ask(
    api: Api,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    timeout: float,
    stream: bool = False,
) -> Reply:
    """Send one request and read its whole reply within ``timeout`` seconds. Never raises for what the server does."""
    began = time.monotonic()
    connection = api.connection(min(CONNECT, timeout))
    try:
        connection.connect()
    except TimeoutError:
        return _unheard("no connection to the port: it does not answer", began)
    except OSError as error:
        return replace(_unheard(f"no connection to {api.url}: {error}", began), refused=True)
    try:
        exchange = _Exchange(connection, began, began + timeout)
        response = exchange.send(method, api.target(path), body, api)
        reply = _read_stream if stream and response.status == 200 else _read_whole
        return reply(response, exchange)
    except TimeoutError:
        return Reply(
            seconds=time.monotonic() - began, unheard=f"no whole answer within {timeout:g} s", late=True
        )
    except (OSError, HTTPException) as error:
        return _unheard(f"the answer was cut short: {_said(error)}", began)
    except ValueError:
        return _unheard("the request cannot be sent: path, key or body hold what HTTP cannot carry", began)
    finally:
        connection.close()


class _Exchange:
    """One request and its reply on an open connection; every wait ends at the deadline. Times are monotonic seconds."""

    def __init__(self, connection: HTTPConnection, began: float, deadline: float) -> None:
        self._connection = connection
        self._socket = connection.sock  # the connection lets go of it when the reply begins
        self.began, self._deadline = began, deadline

    def send(self, method: str, target: str, body: Mapping[str, Any] | None, api: Api) -> HTTPResponse:
        """Send it all, and read the head of the reply."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        self._until_deadline()
        self._connection.request(method, target, content, api.headers(content))
        self._until_deadline()
        return self._connection.getresponse()

    def pieces(self, response: HTTPResponse) -> Iterator[bytes]:
        """The bytes of the reply as they come. Raises IncompleteRead for one that ends early, TimeoutError at the deadline."""
        self._until_deadline()
        while piece := response.read1(PIECE):
            yield piece
            if response.isclosed():
                return
            self._until_deadline()
        if response.length:
            raise IncompleteRead(b"", response.length)

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def _until_deadline(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def _unheard(why: str, began: float) -> Reply:
    return Reply(seconds=time.monotonic() - began, unheard=why)


def _said(error: Exception) -> str:
    if isinstance(error, IncompleteRead):
        return f"{error.expected} bytes more were promised" if error.expected else "it ended too early"
    return str(error) or type(error).__name__


def _read_whole(response: HTTPResponse, exchange: _Exchange) -> Reply:
    text = b"".join(exchange.pieces(response)).decode(errors="replace")
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return Reply(response.status, document, exchange.seconds(), text=text)


def _read_stream(response: HTTPResponse, exchange: _Exchange) -> Reply:
    assembly = Assembly()
    unheard = ""
    try:
        for line in _lines(exchange.pieces(response)):
            assembly.feed(line, exchange.seconds())
    except ValueError as error:
        unheard = f"the stream holds something that is not JSON: {error}"
    except HTTPException as error:
        unheard = f"the stream was cut short after {assembly.chunks} chunks: {_said(error)}"
    if not unheard and not assembly.whole and assembly.error is None:
        unheard = f"the stream ended after {assembly.chunks} chunks without [DONE]"
    return Reply(response.status, assembly.document(), exchange.seconds(), unheard=unheard)


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """The lines of a stream, the last one also without its end."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
