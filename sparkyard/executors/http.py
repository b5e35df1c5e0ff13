"""Sends requests to a lane's API with whole time limits. Proxies of the environment are not used: the API is on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from sparkyard.replies import Assembly, Reply

CONNECT = 5.0
"""Seconds for a connection to an address of this machine."""


def client(url: str, api_key: str) -> httpx2.Client:
    """A client for the API at ``url``; thread-safe."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx2.Client(base_url=url, headers=headers, trust_env=False)


def ask(
    api: httpx2.Client,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    timeout: float,
    stream: bool = False,
) -> Reply:
    """Send one request and read its whole reply within ``timeout`` seconds. Never raises for what the server does."""
    began = time.monotonic()
    limits = httpx2.Timeout(timeout, connect=min(CONNECT, timeout))
    try:
        with api.stream(method, path, json=body, timeout=limits) as response:
            reply = _read_stream if stream and response.status_code == 200 else _read_whole
            return reply(response, began, began + timeout)
    except httpx2.ConnectTimeout:
        return _unheard("no connection to the port: it does not answer", began)
    except (httpx2.TimeoutException, TimeoutError):
        return Reply(
            seconds=time.monotonic() - began, unheard=f"no whole answer within {timeout:g} s", late=True
        )
    except httpx2.ConnectError as error:
        return _unheard(f"no connection to {api.base_url}: {error}", began)
    except httpx2.HTTPError as error:
        return _unheard(f"the answer was cut short: {error or type(error).__name__}", began)


def _unheard(why: str, began: float) -> Reply:
    return Reply(seconds=time.monotonic() - began, unheard=why)


def _read_whole(response: httpx2.Response, began: float, deadline: float) -> Reply:
    received = bytearray()
    for part in response.iter_bytes():
        received += part
        _on_time(deadline)
    text = received.decode(errors="replace")
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return Reply(response.status_code, document, time.monotonic() - began, text=text)


def _read_stream(response: httpx2.Response, began: float, deadline: float) -> Reply:
    assembly = Assembly()
    unheard = ""
    try:
        for line in response.iter_lines():
            assembly.feed(line, time.monotonic() - began)
            _on_time(deadline)
    except ValueError as error:
        unheard = f"the stream holds something that is not JSON: {error}"
    except httpx2.RemoteProtocolError as error:
        unheard = f"the stream was cut short after {assembly.chunks} chunks: {error}"
    if not unheard and not assembly.whole and assembly.error is None:
        unheard = f"the stream ended after {assembly.chunks} chunks without [DONE]"
    return Reply(response.status_code, assembly.document(), time.monotonic() - began, unheard=unheard)


def _on_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError
