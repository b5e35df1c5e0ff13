"""Cables between nodes without a switch: what one end says of a cable, the other end must say too."""

from __future__ import annotations

from collections.abc import Mapping

from sparkyard.loading.ansible import Vars
from sparkyard.loading.marked import Faults, Marked, dotted

NAME = "peer_hcas"


def check_cables(host_vars: Mapping[str, Vars], faults: Faults) -> None:
    """Every peer is another node that names this one, with as many HCAs; an HCA has one cable and belongs to the link."""
    by_rank = {variables["rank"].value: host for host, variables in host_vars.items() if "rank" in variables}
    for host, variables in host_vars.items():
        if NAME not in variables:
            continue
        for peer, hcas in variables[NAME].fields.items():
            _cable(host, peer, hcas, by_rank, host_vars, faults)
        _own_hcas(host, variables, faults)


def _cable(
    host: str,
    peer: str,
    hcas: Marked,
    by_rank: Mapping[object, str],
    host_vars: Mapping[str, Vars],
    faults: Faults,
) -> None:
    """The other end of one cable."""
    key, rank = dotted(host, NAME, peer), host_vars[host]["rank"].value if "rank" in host_vars[host] else None
    other = by_rank.get(int(peer)) if peer.isdecimal() else None
    if other is None or other == host:
        if peer.isdecimal():
            faults.at(hcas, key, f"rank {peer} is {'this node itself' if other else 'no node'}")
        return
    back = host_vars[other][NAME].fields.get(str(rank)) if NAME in host_vars[other] else None
    if back is None:
        faults.at(hcas, key, f"{other} names no cable to rank {rank}: write it at both ends")
    elif len(back.items) != len(hcas.items):
        message = (
            f"{len(hcas.items)} HCAs here and {len(back.items)} at {other}; a cable has as many at both ends"
        )
        faults.at(hcas, key, message)


def _own_hcas(host: str, variables: Vars, faults: Faults) -> None:
    """The HCAs of a node's cables: each once, and all of them in ``link.hcas``, which is what is checked for GIDs."""
    known = [item.value for item in variables["link"].fields["hcas"].items] if _has_hcas(variables) else None
    seen: dict[object, str] = {}
    for peer, hcas in variables[NAME].fields.items():
        key = dotted(host, NAME, peer)
        for name in (item.value for item in hcas.items):
            if seen.setdefault(name, peer) != peer:
                faults.at(hcas, key, f"{name} is on the cable to rank {seen[name]} too")
            if known is not None and name not in known:
                faults.at(hcas, key, f"{name} is not in link.hcas of {host}")


def _has_hcas(variables: Vars) -> bool:
    return "link" in variables and "hcas" in variables["link"].fields
