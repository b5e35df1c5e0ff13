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
STAND_IN_HEAD = """\
# The lanes of real Sparks on simulated ones: the words are the recipes' own, what answers is a stand-in.
# `invoke lab.up` writes the like of this for its own folder into <lab>/stand-in; docs/lab.md says what is replaced.
all:
  vars:
    lane: A
    revert_to: kit
    lab: true
    stand_in: true
    hub_endpoint: {hub}
    mirrors: {{"https://github.com/": "{git}/"}}
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


def stand_in_text(nodes: Sequence[NodePlace]) -> str:
    """The same for the lanes of real Sparks, with stand-ins."""
    head = STAND_IN_HEAD.format(hub=HUB_URL, git=nodes[0].lab.git)
    return head + "".join(_host(node) for node in nodes)


def _host(node: NodePlace) -> str:
    return HOST.format(
        name=node.name,
        connection=LOCAL if node.number == 1 else REMOTE.format(address=node.management),
        rank=node.number - 1,
        fabric=node.fabric,
        interface=FABRIC,
        hcas=", ".join(HCAS),
    )
