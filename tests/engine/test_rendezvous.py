"""Ranks that meet: what a follower says of a rank 0 that is gone before it answers."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from pathlib import Path

from tests.ports import free_port

FOLLOWER = Path(__file__).parents[2] / "recipes" / "lab" / "engine" / "follower.py"


def test_a_rank_0_that_ends_before_it_answers_is_told_without_a_traceback() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        listener.settimeout(120)
        where = "{}:{}".format(*listener.getsockname())
        words = [sys.executable, str(FOLLOWER), "--rank", "1", "--rendezvous", where]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as follower:
            peer, _ = listener.accept()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()  # at once, as a process that ends with something unread does
            said, _ = follower.communicate(timeout=120)
    assert follower.returncode == 2
    assert said.splitlines()[-1].endswith("rank 1: FATAL rank 0 refused: rank 0 hung up")
    assert "Traceback" not in said
