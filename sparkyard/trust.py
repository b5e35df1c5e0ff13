"""Host keys: what the nodes show on each of their addresses, against what is on record."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sparkyard.errors import SparkyardError, Unreachable
from sparkyard.known_hosts import Keys, fingerprint
from sparkyard.model import Node


@dataclass(frozen=True, slots=True)
class Shown:
    """The keys that one address of a node showed; none when it did not answer."""

    node: Node
    address: str
    keys: tuple[Any, ...]


def keyscan_words(node: Node, address: str) -> tuple[str, ...]:
    """The words that ask an address for its keys; 5 s at most."""
    port = ("-p", str(node.port)) if node.port else ()
    return ("ssh-keyscan", "-T", "5", *port, address)


def scan(node: Node) -> tuple[Shown, ...]:
    """The keys that a node shows on its management and on its link address."""
    addresses = dict.fromkeys((node.host, node.link.address))
    return tuple(Shown(node, address, _scan(node, address)) for address in addresses)


def _scan(node: Node, address: str) -> tuple[Any, ...]:
    import paramiko  # noqa: PLC0415 - 200 ms

    done = subprocess.run(
        keyscan_words(node, address), capture_output=True, text=True, timeout=30, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    entries = [paramiko.hostkeys.HostKeyEntry.from_line(line) for line in lines]
    return tuple(sorted((e.key for e in entries if e), key=lambda key: str(key.get_name())))


def agreed(shown: Iterable[Shown]) -> tuple[Any, ...]:
    """The keys of a node when all its addresses show the same ones. Raises Unreachable otherwise."""
    shown = tuple(shown)
    node = shown[0].node
    silent = [each.address for each in shown if not each.keys]
    if silent:
        raise Unreachable(
            f"no host key from {', '.join(silent)}", node=node.name, next_step=f"ping {silent[0]}"
        )
    if len({tuple(key.asbytes() for key in each.keys) for each in shown}) > 1:
        raise SparkyardError(
            "its addresses show different keys: they are not the same machine; nothing was recorded",
            node=node.name,
            details=[f"{each.address}: {fingerprint(key)}" for each in shown for key in each.keys],
            next_step="correct ansible_host or link.address in the inventory",
        )
    return shown[0].keys


def verdict(keys: Keys, node: Node, shown: tuple[Any, ...]) -> str:
    """``trusted`` (all on record), ``new`` (none on record) or ``changed`` (others are on record)."""
    known = {key.asbytes() for key in keys.of(node)}
    if not known:
        return "new"
    kinds = {key.get_name() for key in keys.of(node)}
    same = [key for key in shown if key.asbytes() in known]
    wrong = [key for key in shown if key.get_name() in kinds and key.asbytes() not in known]
    return "trusted" if same and not wrong else "changed"
