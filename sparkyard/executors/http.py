"""Sends requests to a lane's API with whole time limits. Proxies of the environment are not used: the API is on this machine."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from sparkyard.replies import Assembly, Reply, parsed

CONNECT = 5.0
"""Seconds for a connection to an address of this machine."""
LONGEST = 64 << 20
"""Bytes of an answer that are read: what is longer comes from no engine, and must not fill the memory that the engine needs."""
UNSENT = "the request cannot be sent: address, path, key or body hold what HTTP cannot carry"
SOCKETS = ("connection.connect_tcp.complete", "connection.start_tls.complete")
"""What httpx2 tells when there is a connection."""


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is, and the key that it wants. Every request has a connection of its own, so threads may share one."""

    url: str
    key: str = ""

    def client(self) -> httpx2.Client:
        headers = {b"User-Agent": b"sparkyard", b"Connection": b"close", b"Accept-Encoding": b"identity"}
        if self.key:
            headers[b"Authorization"] = b"Bearer " + self.key.encode()
        return httpx2.Client(base_url=self.url, headers=headers, trust_env=False)


class _TooLong(Exception):
    """An answer of more bytes than any engine gives."""


class _Limit:
    """A whole time limit: at its end the connection is cut, so that bytes which come one by one do not prolong it. A context manager."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(max(0.0, seconds), self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Limit:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def heed(self, name: str, info: Mapping[str, Any]) -> None:
        """Take what httpx2 tells of a request: its socket is what can be cut."""
        if name in SOCKETS:
            self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut()

    def _end(self) -> None:
        self.passed = True
        self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed meanwhile
                self._socket.shutdown(socket.SHUT_RDWR)


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
    with _Limit(timeout) as limit:
        reply = _asked(api, method, path, body, began, timeout, stream, limit)
    if limit.passed:
        return replace(_unheard(_late(timeout), began), late=True)
    return reply


def _asked(
    api: Api,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    began: float,
    timeout: float,
    stream: bool,
    limit: _Limit,
) -> Reply:
    limits = httpx2.Timeout(timeout, connect=min(CONNECT, timeout))
    told = {"trace": limit.heed}
    try:
        with (
            api.client() as client,
            client.stream(method, path, json=body, timeout=limits, extensions=told) as response,
        ):
            read = _read_stream if stream and response.status_code == 200 else _read_whole
            return read(response, began)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, _TooLong) as error:
        late = isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout)
        refused = isinstance(error, httpx2.ConnectError)
        return replace(_unheard(_why(error, api, timeout), began), late=late, refused=refused)


def _why(error: Exception, api: Api, timeout: float) -> str:
    """What happened, in words. A request that cannot be sent is not told in the error's own: they quote the key."""
    if isinstance(error, httpx2.TimeoutException):
        deaf = isinstance(error, httpx2.ConnectTimeout)
        return "no connection to the port: it does not answer" if deaf else _late(timeout)
    if isinstance(error, httpx2.ConnectError):
        return f"no connection to {api.url}: {error}"
    if isinstance(error, _TooLong):
        return f"the answer is longer than {LONGEST >> 20} MiB"
    unsent = not isinstance(error, httpx2.HTTPError)
    if unsent or isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return UNSENT
    return f"the answer was cut short: {error or type(error).__name__}"


def _late(timeout: float) -> str:
    return f"no whole answer within {timeout:g} s"


def _unheard(why: str, began: float) -> Reply:
    return Reply(seconds=time.monotonic() - began, unheard=why)


def _read_whole(response: httpx2.Response, began: float) -> Reply:
    text = b"".join(_pieces(response)).decode(errors="replace")
    try:
        document = parsed(text)
    except ValueError:
        document = None
    return Reply(response.status_code, document, time.monotonic() - began, text=text)


def _read_stream(response: httpx2.Response, began: float) -> Reply:
    assembly = Assembly()
    unheard = ""
    try:
        for line in _lines(_pieces(response)):
            assembly.feed(line, time.monotonic() - began)
    except ValueError as error:
        unheard = f"the stream holds something that is not JSON: {error}"
    except httpx2.RemoteProtocolError as error:
        unheard = f"the stream was cut short after {assembly.chunks} chunks: {error}"
    if not unheard and not assembly.whole and assembly.error is None:
        unheard = f"the stream ended after {assembly.chunks} chunks without [DONE]"
    return Reply(response.status_code, assembly.document(), time.monotonic() - began, unheard=unheard)


def _pieces(response: httpx2.Response) -> Iterator[bytes]:
    """The bytes as they come. Raises _TooLong."""
    count = 0
    for piece in response.iter_bytes():
        count += len(piece)
        if count > LONGEST:
            raise _TooLong
        yield piece


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Lines of a stream of events. They end with line feeds or carriage returns alone: other ends of lines stand within texts."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *others = piece.replace(b"\r", b"\n").split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun).decode(errors="replace")
            begun = [other]
    yield b"".join(begun).decode(errors="replace")
