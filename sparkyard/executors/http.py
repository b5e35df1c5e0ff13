"""Sends requests to a lane's API with whole time limits. Proxies of the environment are not used: the API is on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from sparkyard.replies import Assembly, Reply

CONNECT = 5.0
"""Seconds for a connection to an address of this machine."""


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is, and the key that it wants. Every request has a connection of its own, so threads may share one."""

    url: str
    key: str = ""

    def client(self) -> httpx2.Client:
        headers = {"User-Agent": "sparkyard", "Connection": "close"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return httpx2.Client(base_url=self.url, headers=headers, trust_env=False)


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
    try:
        return _exchange(api, method, path, body, began, timeout, stream)
    except httpx2.ConnectTimeout:
        return _unheard("no connection to the port: it does not answer", began)
    except (httpx2.TimeoutException, TimeoutError):
        return replace(_unheard(f"no whole answer within {timeout:g} s", began), late=True)
    except httpx2.ConnectError as error:
        return replace(_unheard(f"no connection to {api.url}: {error}", began), refused=True)
    except httpx2.HTTPError as error:
        return _unheard(f"the answer was cut short: {error or type(error).__name__}", began)
    except (ValueError, httpx2.InvalidURL):
        return _unheard("the request cannot be sent: path, key or body hold what HTTP cannot carry", began)


def _exchange(
    api: Api,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    began: float,
    timeout: float,
    stream: bool,
) -> Reply:
    limits = httpx2.Timeout(timeout, connect=min(CONNECT, timeout))
    with api.client() as client, client.stream(method, path, json=body, timeout=limits) as response:
        read = _read_stream if stream and response.status_code == 200 else _read_whole
        return read(response, began, began + timeout)


def _unheard(why: str, began: float) -> Reply:
    return Reply(seconds=time.monotonic() - began, unheard=why)


def _read_whole(response: httpx2.Response, began: float, deadline: float) -> Reply:
    text = b"".join(_in_time(response.iter_bytes(), deadline)).decode(errors="replace")
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return Reply(response.status_code, document, time.monotonic() - began, text=text)


def _read_stream(response: httpx2.Response, began: float, deadline: float) -> Reply:
    assembly = Assembly()
    unheard = ""
    try:
        for line in _in_time(response.iter_lines(), deadline):
            assembly.feed(line, time.monotonic() - began)
    except ValueError as error:
        unheard = f"the stream holds something that is not JSON: {error}"
    except httpx2.RemoteProtocolError as error:
        unheard = f"the stream was cut short after {assembly.chunks} chunks: {error}"
    if not unheard and not assembly.whole and assembly.error is None:
        unheard = f"the stream ended after {assembly.chunks} chunks without [DONE]"
    return Reply(response.status_code, assembly.document(), time.monotonic() - began, unheard=unheard)


def _in_time(parts: Iterator[Any], deadline: float) -> Iterator[Any]:
    """The parts as they come. Raises TimeoutError for one that comes after the deadline, in monotonic seconds."""
    for part in parts:
        if time.monotonic() > deadline:
            raise TimeoutError
        yield part
