"""The lab's cables: a switch namespace with two bridges, and three legs to each node."""

from __future__ import annotations

from pathlib import Path

from sparkyard.lab.places import CDN_ADDRESS, FABRIC_LEGS, HUB_ADDRESS, LEGS, Leg, NodePlace, Place
from sparkyard.lab.processes import netns_exists, run


def ip(netns: str, *lines: str) -> None:
    """Lines for `ip` in one namespace, in one process."""
    run(["ip", "-n", netns, "-batch", "-"], stdin="\n".join(lines) + "\n")


def links(netns: str) -> set[str]:
    """Names of the interfaces in a namespace."""
    lines = run(["ip", "-n", netns, "-o", "link", "show"]).splitlines()
    return {line.split(": ")[1].split("@")[0] for line in lines}


def add_netns(name: str) -> None:
    """A namespace of that name; what a killed `ip netns add` left behind is cleared first."""
    if netns_exists(name):
        return
    Path("/run/netns", name).unlink(missing_ok=True)
    run(["ip", "netns", "add", name])


def raise_switch(place: Place) -> None:
    """The namespace with both bridges. Bridges on the host would meet the host's iptables."""
    add_netns(place.switch)
    have = links(place.switch)
    bridges = {leg.bridge: leg.mtu for leg in LEGS}
    ip(place.switch, *(f"link add {name} type bridge" for name in bridges if name not in have))
    ip(
        place.switch,
        "link set lo up",
        *(f"link set {name} mtu {mtu} up" for name, mtu in bridges.items()),
        *(f"addr replace {address}/24 dev mgmt" for address in (HUB_ADDRESS, CDN_ADDRESS)),
    )


def _add_leg(node: NodePlace, leg: Leg) -> str:
    return (
        f"link add {leg.port}{node.number} mtu {leg.mtu} type veth "
        f"peer name {leg.interface} mtu {leg.mtu} netns {node.netns}"
    )


def wire(node: NodePlace) -> None:
    """The node's namespace and its legs; also mends legs that were cut."""
    add_netns(node.netns)
    have = links(node.lab.switch)
    ip(node.lab.switch, *(_add_leg(node, leg) for leg in LEGS if f"{leg.port}{node.number}" not in have))
    ip(node.lab.switch, *(f"link set {leg.port}{node.number} master {leg.bridge} up" for leg in LEGS))
    inside = [f"link set {leg.interface} up" for leg in LEGS]
    addresses = [f"addr replace {leg.network}.{node.number}/24 dev {leg.interface}" for leg in LEGS]
    ip(node.netns, "link set lo up", *inside, *addresses)


def remove_netns(name: str) -> None:
    """Its interfaces first: another process's view of the mounts may keep the namespace itself alive a while."""
    if netns_exists(name):
        ip(name, *(f"link del {link}" for link in _removable(name)))
        run(["ip", "netns", "del", name])
    Path("/run/netns", name).unlink(missing_ok=True)


def _removable(netns: str) -> list[str]:
    """Interfaces made by the lab; loopback and the kernel's own tunnel stubs cannot be deleted."""
    made = {leg.interface for leg in LEGS} | {leg.bridge for leg in LEGS}
    ports = {f"{leg.port}{number}" for leg in LEGS for number in range(1, 5)}
    return sorted(links(netns) & (made | ports))


def set_links(node: NodePlace, *, up: bool, legs: tuple[Leg, ...] = FABRIC_LEGS) -> None:
    """Pull or plug the node's cables at the switch."""
    state = "up" if up else "down"
    ip(node.lab.switch, *(f"link set {leg.port}{node.number} {state}" for leg in legs))


def set_rate(node: NodePlace, rate: str | None, legs: tuple[Leg, ...] = FABRIC_LEGS) -> None:
    """Limit the legs both ways (``800mbit``), or lift the limit with None."""
    ends = [(node.lab.switch, f"{leg.port}{node.number}") for leg in legs]
    ends += [(node.netns, leg.interface) for leg in legs]
    for netns, device in ends:
        if rate is None:
            _lift(netns, device)
        else:
            limit = ["tbf", "rate", rate, "burst", "1mb", "latency", "50ms"]
            run(["tc", "-n", netns, "qdisc", "replace", "dev", device, "root", *limit])


def _lift(netns: str, device: str) -> None:
    if "tbf" in run(["tc", "-n", netns, "qdisc", "show", "dev", device]):
        run(["tc", "-n", netns, "qdisc", "del", "dev", device, "root"])
