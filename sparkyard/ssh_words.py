"""The ssh program with the options that rsync and image shipping share with fabric."""

from __future__ import annotations

from pathlib import Path

from sparkyard.model import Node


def ssh_words(node: Node, known_hosts: Path) -> tuple[str, ...]:
    """ssh, strict and without questions, to a node under its one name; the address comes after these words.

    A host-key name and a login found in ``~/.ssh/config`` for the node's management host hold for its link address too.
    """
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": node.name,
        "UserKnownHostsFile": str(known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "UpdateHostKeys": "no",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "Compression": "no",
        "Ciphers": "^aes128-gcm@openssh.com",
    } | _login(node)
    return ("ssh", *(word for name, value in options.items() for word in ("-o", f"{name}={value}")))


def _login(node: Node) -> dict[str, str]:
    from fabric import Config  # noqa: PLC0415 - a third of a second

    config = Config()
    config.load_ssh_config()
    found = config.base_ssh_config.lookup(node.host)
    login = {"User": node.user or found.get("user"), "Port": str(node.port or found.get("port") or "")}
    key = node.key or next(iter(found.get("identityfile", [])), "")
    return {name: value for name, value in (login | {"IdentityFile": key}).items() if value}
