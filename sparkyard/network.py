"""Interfaces, listening ports and RDMA devices of a node, parsed from what iproute2 and the kernel print. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.sections import Section


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface: MTU in bytes, ``operstate`` of the kernel, addresses as ``10.0.0.1/24``."""

    name: str
    mtu: int
    state: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP port that somebody listens on. ``process`` is empty for processes of other users."""

    address: str
    port: int
    process: str = ""


@dataclass(frozen=True, slots=True)
class Gid:
    """An entry of an RDMA port's GID table. ``ipv4`` is empty for addresses that are not IPv4-mapped."""

    index: int
    address: str
    kind: str
    interface: str

    @property
    def ipv4(self) -> str:
        try:
            mapped = ipaddress.IPv6Address(self.address).ipv4_mapped
        except ValueError:
            return ""
        return str(mapped) if mapped else ""


@dataclass(frozen=True, slots=True)
class Hca:
    """An RDMA device (one port of it, as all of a Spark's have), with its network interfaces."""

    name: str
    state: str
    rate: str
    interfaces: tuple[str, ...]
    gids: tuple[Gid, ...]

    @property
    def active(self) -> bool:
        return self.state.endswith("ACTIVE")

    def gid(self, address: str, interface: str) -> int | None:
        """The index of the IPv4 RoCE v2 GID: of the link's address, else of its interface, else the first one."""
        usable = [gid for gid in self.gids if gid.kind == "RoCE v2" and gid.ipv4]
        best = sorted(usable, key=lambda g: (g.ipv4 != address, g.interface != interface, g.index))
        return best[0].index if best else None


def parse_interfaces(part: Section | None, files: Mapping[str, str]) -> tuple[Interface, ...]:
    if part is not None and part.lines and part.lines[0].lstrip().startswith("["):
        return tuple(_from_ip(entry) for entry in json.loads("".join(part.lines)) if entry.get("ifname"))
    given = _from_tables(part.lines if part else ())
    mtus = re.compile(r"/sys/class/net/([^/]+)/mtu$")
    names = [(found[1], value) for path, value in files.items() if (found := mtus.match(path))]
    states = "/sys/class/net/{}/operstate"
    return tuple(
        Interface(name, int(mtu), files.get(states.format(name), ""), tuple(given.get(name, ())))
        for name, mtu in names
    )


def _from_ip(entry: Mapping[str, Any]) -> Interface:
    addresses = tuple(
        f"{a['local']}/{a.get('prefixlen', 32)}" for a in entry.get("addr_info", ()) if a.get("local")
    )
    return Interface(entry["ifname"], int(entry.get("mtu", 0)), entry.get("operstate", "").lower(), addresses)


def _from_tables(lines: Sequence[str]) -> dict[str, list[str]]:
    """Addresses by interface from the kernel's own tables: local addresses, each where its network is routed."""
    routes, local, last = list[tuple[str, ipaddress.IPv4Network]](), list[str](), ""
    for line in lines:
        path, _, value = line.partition(":")
        words = value.split()
        if path.endswith("route") and len(words) > 7 and words[0] != "Iface" and words[7] != "00000000":
            routes.append((words[0], _network(words[1], words[7])))
        elif words[:1] == ["|--"]:
            last = words[1]
        elif words[1:] == ["host", "LOCAL"] and last not in local:
            local.append(last)
    found: dict[str, list[str]] = {}
    for name, network in routes:
        found.setdefault(name, []).extend(
            f"{a}/{network.prefixlen}" for a in local if ipaddress.IPv4Address(a) in network
        )
    return found


def _network(address: str, netmask: str) -> ipaddress.IPv4Network:
    numbers = [ipaddress.IPv4Address(bytes.fromhex(text)[::-1]) for text in (address, netmask)]
    return ipaddress.IPv4Network(f"{numbers[0]}/{numbers[1]}")


def parse_listening(part: Section | None) -> tuple[Listener, ...]:
    lines = part.lines if part else ()
    return tuple(_from_ss(line) if line.startswith("LISTEN") else _from_proc(line) for line in lines)


def _from_ss(line: str) -> Listener:
    words = line.split()
    address, _, port = words[3].rpartition(":")
    process = re.search(r'users:\(\("([^"]*)",pid=(\d+)', line)
    return Listener(address.strip("[]"), int(port), f"{process[1]} (pid {process[2]})" if process else "")


def _from_proc(line: str) -> Listener:
    address, _, port = line.split()[1].partition(":")
    if len(address) == 8:
        return Listener(str(ipaddress.IPv4Address(bytes.fromhex(address)[::-1])), int(port, 16))
    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, 32, 8)]
    return Listener(str(ipaddress.IPv6Address(b"".join(words))), int(port, 16))


def parse_hcas(files: Mapping[str, str], netdevs: Sequence[str]) -> tuple[Hca, ...]:
    ports = re.compile(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/state$")
    found = [(match[1], match[2], value) for path, value in files.items() if (match := ports.match(path))]
    return tuple(_hca(name, port, state, files, netdevs) for name, port, state in found)


def _hca(name: str, port: str, state: str, files: Mapping[str, str], netdevs: Sequence[str]) -> Hca:
    folder = f"/sys/class/infiniband/{name}/ports/{port}"
    own = f"/sys/class/infiniband/{name}/device/net/"
    gids = tuple(_gids(folder, files))
    names = [path.removeprefix(own) for path in netdevs if path.startswith(own)]
    interfaces = tuple(dict.fromkeys([*names, *(gid.interface for gid in gids if gid.interface)]))
    return Hca(name, state, files.get(f"{folder}/rate", ""), interfaces, gids)


def _gids(folder: str, files: Mapping[str, str]) -> Iterator[Gid]:
    prefix = f"{folder}/gids/"
    indexes = sorted(int(path.removeprefix(prefix)) for path in files if path.startswith(prefix))
    for index in indexes:
        kind = files.get(f"{folder}/gid_attrs/types/{index}", "")
        interface = files.get(f"{folder}/gid_attrs/ndevs/{index}", "")
        yield Gid(index, files[f"{prefix}{index}"], kind, interface)
