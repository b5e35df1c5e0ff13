"""Raw answers of nodes, as the facts script sends them: the inputs of docs' failure modes, one value changed at a time."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparkyard import facts
from sparkyard.model import Node
from sparkyard.plan import Answers, Question
from sparkyard.system import SYSTEM
from tests.unit import sample

LINK_LOCAL = "fe80:0000:0000:0000:0000:0000:0000:0001"
GPU = "GPU 0: NVIDIA GB10 (UUID: GPU-00000000-0000-0000-0000-000000000000)"
HEX = "a" * 64


def mapped(address: str) -> str:
    """The IPv4-mapped GID of an address, as sysfs writes it."""
    high, low = (bytes(int(n) for n in address.split("."))[at : at + 2].hex() for at in (0, 2))
    return f"0000:0000:0000:0000:0000:ffff:{high}:{low}"


def hca(name: str, netdev: str, state: str, gids: Sequence[tuple[str, str]]) -> tuple[list[str], str]:
    """The sysfs lines of an RDMA device, and its netdev line."""
    port = f"/sys/class/infiniband/{name}/ports/1"
    lines = [f"{port}/state:{state}", f"{port}/rate:200 Gb/sec (2X NDR)"]
    for index, (gid, kind) in enumerate(gids):
        lines += [
            f"{port}/gids/{index}:{gid}",
            f"{port}/gid_attrs/types/{index}:{kind}",
            f"{port}/gid_attrs/ndevs/{index}:{netdev}",
        ]
    return lines, f"/sys/class/infiniband/{name}/device/net/{netdev}"


def gids(address: str, pairs: int = 1) -> list[tuple[str, str]]:
    """``pairs`` link-local pairs, then the IPv4 pair: RoCE v1 and v2 each."""
    both = ("IB/RoCE v1", "RoCE v2")
    local = [(LINK_LOCAL, kind) for _ in range(pairs) for kind in both]
    return [*local, *((mapped(address), kind) for kind in both)] if address else local


def devices(
    node: Node, up: str, *, pairs: int = 1, address: str | None = None
) -> tuple[list[str], list[str]]:
    """The four RDMA devices of a Spark; those whose port is ``up`` are ACTIVE with the node's address."""
    lines: list[str] = []
    netdevs: list[str] = []
    for domain, short in (("rocep1s0", "enp1s0"), ("roceP2p1s0", "enP2p1s0")):
        for port in ("f0", "f1"):
            live = port == up
            given = gids(node.link.address if address is None else address, pairs) if live else []
            state = "4: ACTIVE" if live else "1: DOWN"
            more, netdev = hca(f"{domain}{port}", f"{short}{port}np{port[1]}", state, given)
            lines += more
            netdevs.append(netdev)
    return lines, netdevs


def interface(name: str, *addresses: str, mtu: int = 9000, state: str = "UP") -> dict[str, Any]:
    info = [
        {"family": "inet", "local": a.split("/")[0], "prefixlen": int(a.split("/")[1])} for a in addresses
    ]
    return {"ifname": name, "mtu": mtu, "operstate": state, "addr_info": info}


def system_text(node: Node, **changes: Any) -> str:
    """The answer of ``ask_system`` on a healthy Spark; keyword arguments replace one part each."""
    up = node.link.interface[6:8]
    lines, netdevs = changes.get("devices", devices(node, up))
    memory = {"MemTotal": 125_000_000, "MemAvailable": 110_000_000, "CmaTotal": 65_536, "CmaFree": 1_000}
    memory |= changes.get("memory", {})
    files = [
        f"/proc/sys/kernel/hostname:{node.name}",
        f"/proc/sys/kernel/osrelease:{changes.get('kernel', '6.17.0-1014-nvidia')}",
        "/proc/sys/kernel/random/boot_id:00000000-1111-2222-3333-444444444444",
        "/proc/uptime:1000.50 2000.00",
        *(f"/proc/meminfo:{name}:  {value} kB" for name, value in memory.items()),
        f"/proc/cmdline:BOOT_IMAGE=/vmlinuz root=UUID=1 {changes.get('cmdline', 'quiet')}",
        "/sys/devices/system/cpu/online:0-19",
        *lines,
    ]
    links = changes.get(
        "addresses",
        [
            interface("lo", "127.0.0.1/8", mtu=65536),
            interface(node.link.interface, f"{node.link.address}/24"),
        ],
    )
    docker = changes.get(
        "docker",
        {
            "version": "29.1.0",
            "runtimes": {"nvidia": {}, "runc": {}},
            "errors": None,
            "driver": "overlayfs",
            "root": "/var/lib/docker",
        },
    )
    parts = {
        "files": files,
        "netdevs": netdevs,
        "machine": [changes.get("machine", "aarch64")],
        "user": ["uid=1000(spark) gid=1000(spark) groups=1000(spark),999(docker)"],
        "tools": ["/usr/bin/docker", "/usr/sbin/ip"],
        "addresses": [json.dumps(links)],
        "listening": changes.get(
            "listening", ['LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=1,fd=3))']
        ),
        "grub": changes.get("grub", []),
        "gpus": changes.get("gpus", [GPU]),
        "compute": changes.get("compute", []),
        "docker": [json.dumps(docker)] if docker else [],
    }
    statuses: Mapping[str, int] = changes.get("statuses", {})
    return "".join(
        f"@@ {name}\n" + "\n".join(body) + f"\n\n@@ = {statuses.get(name, 0)}\n"
        for name, body in parts.items()
    )


def document(node: Node, given: Mapping[Question, tuple[int, str, str]], home: str = "/home/spark") -> bytes:
    """The whole JSON document for some answers: (status, out, err) each."""

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    entries = [
        {"id": n, "out": encoded(out), "status": status, "err": encoded(err)}
        for n, (status, out, err) in enumerate(given.values())
    ]
    return json.dumps(
        {"version": 1, "node": node.name, "home": home, "answers": entries, "end": True}
    ).encode()


def answers(
    node: Node, given: Mapping[Question, tuple[int, str, str]] | None = None, errors: str = "", **changes: Any
) -> Answers:
    """The parsed answers of a node: its system, no containers, and whatever is given."""
    whole: dict[Question, tuple[int, str, str]] = {
        SYSTEM: (0, system_text(node, **changes), errors),
        facts.CONTAINERS: (0, "", ""),
    }
    whole |= given or {}
    return facts.parse(node, tuple(whole), document(node, whole))


def containers(*details: Mapping[str, Any]) -> tuple[int, str, str]:
    """The answer of ``ask_containers``. Details: name, state, image, labels, and whatever of State is to be set."""
    listed: list[str] = []
    inspected: list[str] = []
    for number, detail in enumerate(details):
        labels = detail.get("labels", {})
        id_ = f"{number:064x}"
        state = {"Status": detail.get("state", "running"), "ExitCode": 0, "StartedAt": "2026-11-01T10:00:00Z"}
        listed.append(
            f"{id_}|{state['Status']}|{detail['name']}|{detail.get('image', 'i')}|{labels.get('sparkyard.lane', '')}"
        )
        if labels.get("sparkyard.lane"):
            told = {
                "id": id_,
                "name": f"/{detail['name']}",
                "state": state | dict(detail.get("more", {})),
                "restarts": detail.get("restarts", 0),
                "labels": labels,
                "image": detail.get("image", "i"),
                "image_id": "sha256:1",
            }
            inspected.append(json.dumps(told))
    return 0, "\n".join([*listed, *inspected]) + "\n", ""


def image(**changes: Any) -> tuple[int, str, str]:
    """The answer of ``ask_image``."""
    told = {
        "id": "sha256:1",
        "labels": None,
        "layers": ["sha256:l1"],
        "architecture": "arm64",
        "digests": [],
        "size": 1,
    }
    return 0, json.dumps(told | changes), ""


NO_IMAGE = (1, "\n", "Error: No such image: x")
HEAD, WORKER = sample.node(0), sample.node(1)
