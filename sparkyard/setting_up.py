"""``invoke init`` and ``invoke trust``: what is done once, before the first lane."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkyard import load
from sparkyard import trust as hosts
from sparkyard.errors import SparkyardError, UsageError
from sparkyard.known_hosts import fingerprint
from sparkyard.line import Line
from sparkyard.model import Node
from sparkyard.selection import chosen_nodes
from sparkyard.tables import finding


def trust(line: Line, replace: bool) -> None:
    """Show the keys of every other node, and record them after a yes."""
    line.enter()
    wanted = chosen_nodes(line.inventory, line.options.limit)
    nodes = [node for node in line.inventory.nodes if node.name in wanted and not node.local]
    if not nodes:
        line.say("no other node: nothing to trust")
        return
    with ThreadPoolExecutor(len(nodes)) as pool:
        scans = list(pool.map(hosts.scan, nodes))
    found = [_look(line, node, shown) for node, shown in zip(nodes, scans, strict=True)]
    changed = [node.name for node, _keys, verdict in found if verdict == "changed"]
    if changed and not replace:
        raise SparkyardError(
            f"other keys are on record for {', '.join(changed)}; nothing was recorded",
            next_step="find out why they changed (reinstalled? another machine?), then: invoke trust --replace",
        )
    new = [(node, keys) for node, keys, verdict in found if verdict != "trusted"]
    if new and not line.options.check and _agreed(line):
        for node, keys in new:
            line.keys.record(node, keys)
        line.say(
            f"recorded the keys of {', '.join(node.name for node, _keys in new)} in {line.keys.own_file}"
        )
    elif not new:
        line.say("every node shows the key on record")
    elif line.options.check:
        line.statuses.append(6)


def _look(line: Line, node: Node, shown: tuple[hosts.Shown, ...]) -> tuple[Node, tuple[object, ...], str]:
    keys = hosts.agreed(shown)
    verdict = hosts.verdict(line.keys, node, keys)
    for each in shown:
        for key in each.keys:
            kind, _, digest = fingerprint(key).partition(" ")
            row = {
                "node": node.name,
                "address": each.address,
                "type": kind,
                "fingerprint": digest,
                "seen": verdict,
            }
            line.emit(finding("trust", row))
    return node, keys, verdict


def _agreed(line: Line) -> bool:
    if line.options.yes:
        return True
    if line.options.json or not sys.stdin.isatty():
        raise UsageError(
            "the keys above are not recorded yet",
            next_step="compare them with the nodes' own, then add --yes",
        )
    line.view.close()
    answer = input(
        "Compare them with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on each. Type yes to record: "
    )
    if answer.strip() != "yes":
        raise UsageError("not confirmed; nothing was recorded")
    return True


def init(line: Line, nodes: str, force: bool) -> None:
    """Write inventory/my from ``--set`` answers, and questions for the rest when there is somebody to ask."""
    given = dict(_pair(text) for text in line.options.set) | ({"nodes": nodes} if nodes else {})
    folder = Path(line.options.inventory) if line.options.inventory else line.project / "inventory" / "my"
    if line.options.check:
        raise UsageError("init has no --check: it writes one file, and never over another one")
    can_ask = sys.stdin.isatty() and not line.options.json and not line.options.yes
    if not (can_ask or given or line.options.yes):
        raise UsageError(
            "there is nobody to ask, and no answer was given; nothing was written",
            next_step="give answers as --set name=value, or --yes for example values to be edited",
        )
    written = load.init_inventory(folder, given, _ask if can_ask else None, replace=force)
    line.emit(finding("init", {"file": str(written), "result": "written"}))
    line.say("look it over, then: invoke trust, invoke lock, invoke download build start")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes name=value, not {text!r}")
    return name, value


def _ask(question: str, default: str) -> str:
    return input(f"{question} [{default}] " if default else f"{question} ")
