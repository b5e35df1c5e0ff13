"""Talking to a running lab's hub from outside its network, over its socket file."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from sparkyard.lab.errors import LabError
from sparkyard.lab.places import Place


def ask(place: Place, method: str, path: str, body: Any = None) -> Any:
    """One request to the hub's own paths."""
    connection = http.client.HTTPConnection("hub")
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(30)
        connection.sock.connect(str(place.hub_socket))
        connection.request(method, path, body=json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        value = json.loads(answer.read())
    except (OSError, http.client.HTTPException) as fault:
        raise LabError(f"the lab's hub does not answer: {fault}", next_step="invoke lab.up") from fault
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise LabError(f"the lab's hub refused: {value.get('error')}")
    return value


def healthy(place: Place) -> bool:
    """Whether the hub answers."""
    try:
        return bool(ask(place, "GET", "/lab/health"))
    except LabError:
        return False
