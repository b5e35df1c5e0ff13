"""What the files of lane D's machine tests share: where its things lie on a simulated Spark, and a person who knows its key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.machine.conftest import Lab
from tests.machine.typed import Typist

NODES = ("spark-1", "spark-2", "spark-3", "spark-4")
NOTHING = dict.fromkeys(NODES, 0)
DATA = "home/.local/share/sparkyard"
OWN = f"{DATA}/lanes/D"
CACHE = f"{OWN}/cache/47581cc-c16-d5-csf"
PACKAGE = f"{CACHE}/flare/runtime/dsv41-1017-csf-tp4-c16-t1e-5.safetensors"
KEY = "0123456789abcdef0123456789abcdef"
"""The development key that the lab's Ignition finds in its folder, and would else make itself."""


def somebody(lab: Lab, folder: Path) -> Typist:
    """Somebody to type, who has told an inventory in the folder which key approves the packages of these nodes."""
    shutil.copytree(lab.folder / "stand-in", folder)
    hosts = folder / "hosts.yml"
    text = hosts.read_text()
    hosts.write_text(text.replace("  vars:\n", f'  vars:\n    lanes: {{D: {{approve_key: "{KEY}"}}}}\n', 1))
    return Typist(folder)


def forget(lab: Lab) -> None:
    """Take everything of sparkyard from the nodes, and give the head's Ignition its key."""
    for node in NODES:
        containers_away(lab, node)
        lab.delete(node, DATA)
    key(lab)


def unmade(lab: Lab) -> None:
    """Take what an export left, and leave checkpoint and image."""
    for node in NODES:
        containers_away(lab, node)
        lab.delete(node, f"{OWN}/cache")
        for path in (lab.own(node) / OWN / "jobs").glob("export*"):
            path.unlink()


def containers_away(lab: Lab, node: str) -> None:
    lab.away(node)


def key(lab: Lab) -> None:
    path = lab.own("spark-1") / OWN / "config/flare/keys/local-development"
    path.parent.mkdir(parents=True)
    path.write_text(f"{KEY}\n")


def inspected(lab: Lab, node: str, container: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(lab.out(node, "docker", "inspect", container))[0]
    return told
