"""A real Docker engine of its own: data, socket and processes below one folder. Images are a busybox tree; nothing is pulled."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("sh", "echo", "sleep", "cat", "httpd", "true", "seq", "kill", "head", "dd")


@dataclass(frozen=True)
class DockerEngine:
    folder: Path

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def docker(self, *words: str, stdin: bytes = b"", check: bool = True) -> str:
        env = {**os.environ, "DOCKER_HOST": self.host}
        done = subprocess.run(["docker", *words], input=stdin, env=env, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"docker {words}: {done.stderr.decode()}")
        return done.stdout.decode().strip()

    def add_image(self, name: str, *changes: str, filler: bytes = b"") -> None:
        flags = [word for change in changes for word in ("--change", change)]
        self.docker("import", *flags, "-", name, stdin=busybox_tree(filler))

    def containers(self) -> list[str]:
        return self.docker("ps", "--all", "--format", "{{.Names}}").splitlines()

    def away(self) -> None:
        """Remove every container; one may end, or go, meanwhile."""
        deadline = time.monotonic() + 120
        while found := self.containers():
            assert time.monotonic() < deadline, found
            self.docker("rm", "--force", *found, check=False)

    def clients(self) -> str:
        """Command lines of the processes of this machine that were told to speak to this engine, and to no other."""
        mark = f"DOCKER_HOST={self.host}\0".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (place / "environ").read_bytes() + b"\0":
                    found.append(
                        (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
        return "\n".join(found)


def busybox_tree(filler: bytes = b"") -> bytes:
    """A tree as tar: busybox under the names of its tools, an empty /tmp, and bytes that make it larger."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        busybox = shutil.which("busybox")
        assert busybox, "busybox-static is needed"
        tar.add(Path(busybox).resolve(), "bin/busybox")
        for tool in TOOLS:
            link = tarfile.TarInfo(f"bin/{tool}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        if filler:
            entry = tarfile.TarInfo("filler")
            entry.size = len(filler)
            tar.addfile(entry, io.BytesIO(filler))
    return buffer.getvalue()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[DockerEngine]:
    """The engine, ready; ended by its pid, its folders unmounted by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    engine = DockerEngine(folder)
    words = [
        *("unshare", "--mount"),  # its mounts go with it
        "dockerd",
        "--iptables=false",
        "--bridge=none",
        "--ip-masq=false",
        "--storage-driver=vfs",
        *("--data-root", f"{folder}/data"),
        *("--exec-root", f"{folder}/exec"),
        *("--pidfile", f"{folder}/pid"),
        *("--host", engine.host),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        _await(engine, process)
        yield engine
    finally:
        with contextlib.suppress(RuntimeError):  # it does not answer
            engine.away()
        process.send_signal(signal.SIGTERM)
        process.wait()


def _await(engine: DockerEngine, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"dockerd ended: {(engine.folder / 'log').read_text()[-2000:]}")
        try:
            engine.docker("version")
        except RuntimeError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        else:
            return
    raise RuntimeError("dockerd does not answer")
