"""Merged variables to nodes, and what must hold between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from sparkyard.loading import kinds
from sparkyard.loading.ansible import Vars
from sparkyard.loading.cables import check_cables
from sparkyard.loading.marked import Faults, Marked
from sparkyard.loading.variables import LINK, SCALARS
from sparkyard.model import Link, Node, Value

_RANKS = "0 for the head, then 1, 2, …"
_LINK_HINT = {
    "address": "the IPv4 address of the RoCE link",
    "interface": "the network interface of the link, such as enp1s0f1np1",
    "hcas": "the RDMA devices of the port, such as [rocep1s0f1, roceP2p1s0f1]",
}


def build_nodes(
    marks: Mapping[str, Marked],
    host_vars: Mapping[str, Vars],
    values: Mapping[str, Mapping[str, Value]],
    environ: Mapping[str, str],
    faults: Faults,
) -> tuple[Node, ...]:
    """The nodes in rank order; those that cannot be built are left out."""
    for host, variables in host_vars.items():
        _refuse_missing(host, marks[host], variables, faults)
    _check_ranks(marks, host_vars, faults)
    _check_local(marks, host_vars, faults)
    check_cables(host_vars, faults)
    _refuse_shared(values, ("link.address",), faults)
    _refuse_shared(values, ("ansible_host", "ansible_port"), faults)
    built = [_node(host, variables, values[host], environ) for host, variables in host_vars.items()]
    return tuple(sorted((node for node in built if node), key=lambda node: node.rank))


def _refuse_missing(host: str, mark: Marked, variables: Vars, faults: Faults) -> None:
    if "rank" not in variables:
        faults.at(mark, f"{host}.rank", f"missing; give each node its place: {_RANKS}")
    link = variables.get("link")
    if link is None:
        faults.at(mark, f"{host}.link", "missing; write link: {address, interface, hcas}")
    elif link.fields:
        for name in LINK:
            if name not in link.fields:
                faults.at(link, f"{host}.link.{name}", f"missing: {_LINK_HINT[name]}")


def _whole(variables: Vars, name: str) -> int | None:
    value = variables[name].value if name in variables else None
    return value if not SCALARS[name](value) else None


def _check_ranks(marks: Mapping[str, Marked], host_vars: Mapping[str, Vars], faults: Faults) -> None:
    owners: dict[int, str] = {}
    for host, variables in host_vars.items():
        rank = _whole(variables, "rank")
        if rank is None:
            continue
        if rank in owners:
            faults.at(
                variables["rank"],
                f"{host}.rank",
                f"{rank} is the rank of {owners[rank]} too; each node has its own",
            )
        owners.setdefault(rank, host)
    if len(owners) < len(host_vars):
        return
    gaps = [rank for rank in range(len(owners)) if rank not in owners]
    if gaps:
        highest = max(owners)
        mark = host_vars[owners[highest]]["rank"]
        faults.at(mark, f"{owners[highest]}.rank", f"rank {gaps[0]} is missing; ranks are {_RANKS}")


def _check_local(marks: Mapping[str, Marked], host_vars: Mapping[str, Vars], faults: Faults) -> None:
    """Exactly one node is local, and it is rank 0: sparkyard runs on the head."""
    local = [host for host, variables in host_vars.items() if _is_local(variables)]
    head = next((host for host, variables in host_vars.items() if _whole(variables, "rank") == 0), None)
    for host in local:
        if host != head and head is not None:
            mark = host_vars[host]["ansible_connection"]
            faults.at(
                mark,
                f"{host}.ansible_connection",
                f"only rank 0 ({head}) is local: sparkyard runs on the head",
            )
    if head is not None and head not in local and "ansible_connection" not in host_vars[head]:
        faults.at(
            marks[head], f"{head}.ansible_connection", "missing; rank 0 is where sparkyard runs: write local"
        )
    elif head is not None and head not in local and host_vars[head]["ansible_connection"].value == "ssh":
        mark = host_vars[head]["ansible_connection"]
        faults.at(mark, f"{head}.ansible_connection", "rank 0 is where sparkyard runs: write local")


def _is_local(variables: Vars) -> bool:
    return "ansible_connection" in variables and variables["ansible_connection"].value == "local"


def _refuse_shared(values: Mapping[str, Mapping[str, Value]], names: tuple[str, ...], faults: Faults) -> None:
    """Refuse two nodes at one place; the first name must be set, the others are part of the place."""
    owners: dict[tuple[Any, ...], str] = {}
    for host, of_host in values.items():
        value = of_host.get(names[0])
        if value is None or not isinstance(value.value, str):
            continue
        place = tuple(str(of_host[name].value) if name in of_host else "" for name in names)
        if place in owners:
            message = f"{value.value} belongs to {owners[place]} too; each node has its own"
            faults.add(value.origin.place, value.origin.line, f"{host}.{names[0]}", message)
        owners.setdefault(place, host)


def _node(host: str, variables: Vars, values: Mapping[str, Value], environ: Mapping[str, str]) -> Node | None:
    plain = {name: marked.plain() for name, marked in variables.items()}
    rank = _whole(variables, "rank")
    link = _link(plain.get("link"))
    root, models = (values[name].value if name in values else None for name in ("root", "models"))
    if rank is None or link is None or kinds.folder(root) or kinds.folder(models):
        return None
    return Node(
        name=host,
        rank=rank,
        local=_is_local(variables),
        host=_text(plain, "ansible_host") or host,
        link=link,
        root=kinds.on_node(str(root)),
        models=kinds.on_node(str(models)),
        port=_whole(variables, "ansible_port"),
        user=_text(plain, "ansible_user"),
        key=_own_path(_text(plain, "ansible_ssh_private_key_file"), environ),
        vars=plain,
    )


def _text(plain: Mapping[str, Any], name: str) -> str | None:
    value = plain.get(name)
    return value if isinstance(value, str) else None


def _link(link: Any) -> Link | None:
    if not isinstance(link, dict) or any(name not in link for name in LINK):
        return None
    hcas = link["hcas"]
    if not isinstance(hcas, list):
        return None
    names = tuple(str(name) for name in hcas)
    mtu = {"mtu": link["mtu"]} if isinstance(link.get("mtu"), int) else {}
    return Link(str(link["address"]), str(link["interface"]), names, **mtu)


def _own_path(path: str | None, environ: Mapping[str, str]) -> str | None:
    """A path on this machine: ``~`` is the home of the person who types."""
    if path and path.startswith("~/") and environ.get("HOME"):
        return str(PurePosixPath(environ["HOME"]) / path[2:])
    return path
