"""A real sshd on a loopback address of its own, with its own host key."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkyard.model import Link, Node
from tests.ports import free_port


@dataclass
class Sshd:
    folder: Path
    address: str
    port: int

    @property
    def host_key(self) -> Path:
        return self.folder / "hostkey"

    @property
    def client_key(self) -> Path:
        return self.folder / "id"

    def connections(self) -> int:
        return (self.folder / "log").read_text().count("Accepted publickey")

    def node(self, name: str = "spark-2", rank: int = 1) -> Node:
        link = Link(self.address, "lo", ())
        root = str(self.folder / "root")
        return Node(
            name,
            rank,
            False,
            self.address,
            link,
            root,
            f"{root}/models",
            self.port,
            "root",
            str(self.client_key),
        )


def make_key(path: Path) -> None:
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@contextlib.contextmanager
def running(folder: Path, address: str = "127.0.0.2", set_env: str = "") -> Iterator[Sshd]:
    """An sshd that takes only our key. sshd re-executes itself, hence absolute paths."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    for name in ("hostkey", "id"):
        make_key(folder / name)
    Path("/run/sshd").mkdir(exist_ok=True)
    options = {
        "Port": port,
        "ListenAddress": address,
        "HostKey": folder / "hostkey",
        "AuthorizedKeysFile": folder / "id.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        **({"SetEnv": set_env} if set_env else {}),
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or "sshd"
    process = subprocess.Popen([sshd, "-D", "-f", "/dev/null", "-E", str(folder / "log"), *words])
    try:
        _await(address, port, process)
        yield Sshd(folder, address, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _await(address: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError("sshd ended")
        try:
            socket.create_connection((address, port), timeout=10).close()
        except OSError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        else:
            return
    raise RuntimeError("sshd does not listen")
