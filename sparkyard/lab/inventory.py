"""The inventory of a lab, in the form that people write theirs."""

from __future__ import annotations

from collections.abc import Sequence

from sparkyard.lab.places import FABRIC, HCAS, HUB_URL, NodePlace

HEAD = """\
# Simulated Sparks on this machine: `invoke lab.up` makes them, `invoke lab.down` removes them.
all:
  vars:
    lane: lab
    lab: true
    hub_endpoint: {hub}
  children:
    sparks:
      hosts:
"""
LOCAL = "ansible_connection: local"
REMOTE = "ansible_host: {address}\n          ansible_user: root"
HOST = """\
        {name}:
          {connection}
          rank: {rank}
          link: {{address: {fabric}, interface: {interface}, hcas: [{hcas}]}}
"""


def text(nodes: Sequence[NodePlace]) -> str:
    """hosts.yml for these nodes; the first is where sparkyard runs."""
    return HEAD.format(hub=HUB_URL) + "".join(_host(node) for node in nodes)


def _host(node: NodePlace) -> str:
    return HOST.format(
        name=node.name,
        connection=LOCAL if node.number == 1 else REMOTE.format(address=node.management),
        rank=node.number - 1,
        fabric=node.fabric,
        interface=FABRIC,
        hcas=", ".join(HCAS),
    )
