"""The host keys that sparkyard trusts: its own file, then the person's and the machine's ``known_hosts``.

Every node has one name (HostKeyAlias), whichever of its addresses is used. ssh and rsync get one merged file of exactly these
keys, keyed by that name, so that fabric, ssh and rsync can never disagree.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkyard.errors import SystemRefused
from sparkyard.model import Node

if TYPE_CHECKING:
    import paramiko

SYSTEM = Path("/etc/ssh/ssh_known_hosts")


def fingerprint(key: Any) -> str:
    """``TYPE SHA256:…`` as ssh-keygen prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"{key.get_name()} SHA256:{digest}"


class Keys:
    """The trusted keys of the nodes.

    Args:
        folder: sparkyard's state folder; ``known_hosts`` in it is our own file, keyed by node name.
        user_files: further files, in which nodes stand under any of their addresses or their name.
    """

    def __init__(self, folder: Path, user_files: Iterable[Path] | None = None) -> None:
        self.own_file = folder / "known_hosts"
        self.merged_file = folder / "known_hosts.merged"
        self._user_files = tuple(user_files or (Path("~/.ssh/known_hosts").expanduser(), SYSTEM))

    def of(self, node: Node) -> tuple[paramiko.PKey, ...]:
        """The keys on record for a node. An entry of our own file wins over all others."""
        own = _lookup(self.own_file, (node.name,))
        return own or tuple(key for file in self._user_files for key in _lookup(file, _names(node)))

    def write_merged(self, nodes: Iterable[Node]) -> Path:
        """Write the file that ssh and rsync are given, keyed by node name; unchanged when it is right already."""
        lines = [_line(node.name, key) for node in nodes for key in self.of(node)]
        _replace(self.merged_file, "".join(lines))
        return self.merged_file

    def record(self, node: Node, keys: Iterable[paramiko.PKey]) -> None:
        """Trust exactly these keys for a node from now on."""
        old = _read(self.own_file).split("\n") if self.own_file.exists() else []
        kept = [f"{line}\n" for line in old if line and line.split(" ", 1)[0] != node.name]
        _replace(self.own_file, "".join([*kept, *(_line(node.name, key) for key in keys)]))


def _names(node: Node) -> tuple[str, ...]:
    hosts = (node.host, node.link.address)
    ported = [f"[{host}]:{node.port}" for host in hosts] if node.port not in (None, 22) else list(hosts)
    return tuple(dict.fromkeys((*ported, node.name)))


def _lookup(file: Path, names: tuple[str, ...]) -> tuple[paramiko.PKey, ...]:
    import paramiko  # noqa: PLC0415 - 200 ms

    if not file.is_file():
        return ()
    table = paramiko.HostKeys()
    for line in _read(file).splitlines():
        _add(table, line.strip())
    found = [table.lookup(name) for name in names]
    keys = {key.asbytes(): key for entry in found if entry for key in entry.values()}
    return tuple(keys.values())


def _add(table: Any, line: str) -> None:
    """Add the keys of one line, as OpenSSH does: the first of a name and type counts, a line that cannot be read does not."""
    from paramiko.hostkeys import HostKeyEntry  # noqa: PLC0415

    if not line or line.startswith("#"):
        return
    try:
        entry = HostKeyEntry.from_line(line)
    except Exception:
        return
    for name in entry.hostnames if entry else ():
        if entry.key.get_name() not in (table.lookup(name) or ()):
            table.add(name, entry.key.get_name(), entry.key)


def _read(file: Path) -> str:
    """The text of a file in which a person may have written in any encoding. Raises SystemRefused."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise SystemRefused.of(error) from error


def _line(name: str, key: paramiko.PKey) -> str:
    return f"{name} {key.get_name()} {key.get_base64()}\n"


def _replace(file: Path, text: str) -> None:
    if file.exists() and _read(file) == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
    Path(name).replace(file)
