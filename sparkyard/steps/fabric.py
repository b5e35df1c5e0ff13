"""What the link of a node must be for ranks to meet: address, RDMA devices, jumbo frames, kernel. Pure."""

from __future__ import annotations

import ipaddress

from sparkyard.facts import PingFact
from sparkyard.model import Node
from sparkyard.network import Hca, Interface
from sparkyard.plan import Answers, Verdict
from sparkyard.system import HEADERS, System, system

JUMBO = 9000
"""Bytes of a full frame on a RoCE link."""


def link(answers: Answers, node: Node, head: bool) -> Verdict:
    """The link's address is on its interface, which is up. For rank 0: this is the machine to type on."""
    facts = system(answers)
    facts.need("addresses")
    address, name = node.link.address, node.link.interface
    holder = facts.holder(address)
    if holder is None and head:
        return Verdict(
            "blocked",
            f"rank 0 is {node.name} with {address}, and {facts.hostname} does not have that address",
            next_step=f"ssh to {node.name} and type it there",
        )
    interface = facts.interface(name)
    if interface is None or holder is None:
        seen = f"{name} has {_addresses(interface)}" if interface else f"there is no interface {name}"
        return Verdict("blocked", f"{seen}; expected {address} on {name}", next_step=_give(node, facts))
    if holder.name != name:
        return Verdict(
            "blocked",
            f"{address} is on {holder.name}; the inventory says {name}",
            next_step=f"set link.interface of {node.name} to {holder.name}",
        )
    if interface.state == "down":
        return Verdict(
            "blocked",
            f"{name} is down; expected it up",
            next_step="look at the cable, then: ip link show " + name,
        )
    return Verdict("ok", f"{address} on {name}, MTU {interface.mtu}", details=_same_subnet(facts))


def _addresses(interface: Interface) -> str:
    return ", ".join(interface.addresses) or "no address"


def _give(node: Node, facts: System) -> str:
    live = [i for hca in facts.hcas if hca.active for i in hca.interfaces]
    if live and node.link.interface not in live:
        return f"the live ports of {node.name} are {', '.join(live)}: correct link: in the inventory, or move the cable"
    return f"give {node.link.interface} its address in /etc/netplan on {node.name}, then: sudo netplan apply"


def _same_subnet(facts: System) -> tuple[str, ...]:
    """Two interfaces that are up in one network: traffic may take the wrong one."""
    seen: dict[ipaddress.IPv4Network, str] = {}
    found: list[str] = []
    for interface in facts.interfaces:
        for address in interface.addresses if interface.state != "down" else ():
            if ":" in address or address.startswith("127."):
                continue
            network = ipaddress.IPv4Interface(address).network
            if seen.setdefault(network, interface.name) != interface.name:
                found.append(
                    f"warning: {seen[network]} and {interface.name} are both in {network}; give each rail its own"
                )
    return tuple(found)


def rdma(answers: Answers, node: Node) -> Verdict:
    """Every HCA of the link is there, ACTIVE, and has an IPv4 RoCE v2 GID."""
    facts = system(answers)
    for name in node.link.hcas:
        verdict = _hca(facts.hca(name), name, node, facts)
        if verdict is not None:
            return verdict
    indexes = {name: answers.discovered.get(f"gid.{name}", "?") for name in node.link.hcas}
    words = ", ".join(f"{name} GID {index}" for name, index in indexes.items())
    if len(set(indexes.values())) > 1:
        words += "; they differ, so there is no single gid"
    return Verdict("ok", words, details=(*_lonely(facts, node), *_small(facts, node)), data={"gids": indexes})


def _hca(hca: Hca | None, name: str, node: Node, facts: System) -> Verdict | None:
    live = ", ".join(sorted(h.name for h in facts.hcas if h.active)) or "none"
    if hca is None:
        return Verdict(
            "blocked",
            f"there is no RDMA device {name}; the active ones are: {live}",
            next_step=f"correct link.hcas of {node.name} in the inventory",
        )
    if not hca.active:
        return Verdict(
            "blocked",
            f"{name} is {hca.state.partition(': ')[2] or hca.state}, expected ACTIVE; the active ones are: {live}",
            next_step=f"look at the cable of {', '.join(hca.interfaces) or name}, or correct link.hcas of {node.name}",
        )
    if hca.gid(node.link.address, node.link.interface) is None:
        where = ", ".join(hca.interfaces) or name
        return Verdict(
            "blocked",
            f"{name} has no IPv4 RoCE v2 GID: {where} has no IPv4 address, or it is the wrong device",
            next_step=f"give {where} an address in /etc/netplan on {node.name}, then: sudo netplan apply",
        )
    return None


def _lonely(facts: System, node: Node) -> tuple[str, ...]:
    """The active twins of the link's HCAs that are left out: half the bandwidth."""
    ports = {name[-2:] for name in node.link.hcas}
    twins = [h.name for h in facts.hcas if h.active and h.name[-2:] in ports and h.name not in node.link.hcas]
    return tuple(
        f"warning: {name} is active and is not in link.hcas: only one of two rails is used" for name in twins
    )


def _small(facts: System, node: Node) -> tuple[str, ...]:
    """HCAs whose interface carries small frames only, where the link's own address is on another network and proves nothing."""
    if node.link.mtu >= JUMBO:
        return ()
    found = (
        (hca.name, interface)
        for hca in facts.hcas
        if hca.name in node.link.hcas
        for interface in hca.interfaces
    )
    mtus = [(name, each) for name, interface in found if (each := facts.interface(interface))]
    return tuple(
        f"warning: MTU of {interface.name} ({name}) is {interface.mtu}; expected {JUMBO}: set mtu: {JUMBO} in /etc/netplan"
        for name, interface in mtus
        if interface.mtu < JUMBO
    )


def jumbo(fact: PingFact, facts: System, node: Node, peer: Node) -> Verdict:
    """A full frame goes there and back in one piece: of MTU 9000, unless the link of one of them is on a smaller network."""
    wanted = min(node.link.mtu, peer.link.mtu)
    interface = facts.interface(node.link.interface)
    own = (
        f"MTU of {node.link.interface} is {interface.mtu}"
        if interface
        else f"no interface {node.link.interface}"
    )
    if fact.large:
        return Verdict("ok", f"{wanted - HEADERS} bytes in one piece to {peer.link.address}")
    if fact.small:
        return Verdict(
            "blocked",
            f"{peer.name} ({peer.link.address}) answers small packets only: here the {own}; expected {wanted} at both ends",
            next_step=f"set mtu: {wanted} in /etc/netplan for {node.link.interface} here and {peer.link.interface} on "
            f"{peer.name}, and on the switch",
        )
    return Verdict(
        "blocked",
        f"{peer.name} does not answer at {peer.link.address} on the link ({own})",
        next_step=f"look at the cable and at {peer.name}: ip address show {peer.link.interface}",
    )


def kernel(answers: Answers) -> Verdict:
    """Kernel 7.0 hands memory to Kexec HandOver that RDMA cannot pin, unless ``kho=off``; CmaFree above CmaTotal shows it."""
    facts = system(answers)
    if not facts.kernel.startswith("7.0"):
        return Verdict("ok", f"kernel {facts.kernel}")
    if "kho=off" in facts.cmdline.split():
        return Verdict("ok", f"kernel {facts.kernel} with kho=off")
    if facts.memory.get("CmaFree", 0) <= facts.memory.get("CmaTotal", 0):
        warning = "warning: kernel 7.0 without kho=off; if a log says ibv_reg_mr_iova2, this is why"
        return Verdict("ok", f"kernel {facts.kernel}", details=(warning,))
    if any("kho=off" in line for line in facts.grub):
        return Verdict(
            "blocked",
            f"kho=off is configured on {answers.node} and not in effect: a reboot is pending",
            next_step=f"reboot {answers.node}",
        )
    return Verdict(
        "blocked",
        f"kernel {facts.kernel} runs with Kexec HandOver on: RDMA registration will fail under load",
        next_step=f"do one of these on {answers.node}, then reboot it",
        details=(
            "sudo apt install nvidia-spark-grub-kho (DGX OS 26.09.2 and later)",
            "or add kho=off to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo update-grub",
            "or boot the 6.17 kernel that is still installed",
        ),
    )
