"""What the ranks of a lane were given, as their stand-ins saw it and as Docker was asked, in a form that does not change from run to run."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.machine.conftest import Lab

STATE = "home/.local/share/sparkyard/lanes"
OF_THE_IMAGE = {"HOME", "HOSTNAME", "PATH", "PYTHONDONTWRITEBYTECODE", "NVIDIA_VISIBLE_DEVICES"}
"""Variables that the image, Docker or the node set, not the recipe."""
NO_LIMIT = {"max", "9223372036854771712"}


def record(lab: Lab, node: str, lane: str, rank: int) -> dict[str, Any]:
    """The newest record of a rank, from the folder that it keeps."""
    found = list((lab.own(node) / STATE / lane).rglob(f"stand-in.rank{rank}.json"))
    newest = max(found, key=lambda path: path.stat().st_mtime_ns)
    told: dict[str, Any] = json.loads(newest.read_text())
    return told


def asked(lab: Lab, node: str, container: str) -> dict[str, Any]:
    """What Docker was asked for."""
    told: dict[str, Any] = json.loads(lab.out(node, "docker", "inspect", container))[0]["HostConfig"]
    return told


def normal(seen: dict[str, Any], host: dict[str, Any]) -> dict[str, Any]:
    """One rank, to be compared with a golden file.

    ``argv`` has a line for each flag. Home folders become ``<home>``, commits ``<commit>``; variables that the image, Docker or the
    node set are left out. ``ulimits``, ``gpus``, ``devices.asked`` and ``docker`` are from ``docker inspect``, since the lab's machine
    may not be able to grant them; all else is what the rank saw from inside. Everything that is left must be equal.
    """
    return {
        "argv": by_flag(seen["argv"]),
        "environment": {k: v for k, v in seen["environment"].items() if k not in OF_THE_IMAGE},
        "mounts": {each["target"]: source(each) for each in seen["mounts"]},
        "ulimits": {each["Name"]: f"{each['Soft']}:{each['Hard']}" for each in host["Ulimits"] or ()},
        "devices": {"asked": [device["PathOnHost"] for device in host["Devices"]], "seen": seen["devices"]},
        "gpus": ["all" if each["Count"] == -1 else each["Count"] for each in host["DeviceRequests"] or ()],
        "docker": {
            "init": host.get("Init"),
            "network": host["NetworkMode"],
            "ipc": host["IpcMode"],
            "capabilities": host["CapAdd"],
            "privileged": host["Privileged"],
            "restart": host["RestartPolicy"]["Name"],
            "log": host["LogConfig"]["Config"],
        },
        "user": f"{seen['uid']}:{seen['gid']}",
        "oom_score_adj": seen["oom_score_adj"],
        "limits": {k: v for k, v in seen["cgroup"].items() if k != "cpus" and v not in NO_LIMIT},
    }


def by_flag(words: list[str]) -> list[str]:
    """A line a flag, with its value, quoted as a shell would want it; the first line is what comes before all flags."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(word)
    return [shlex.join(line) for line in lines]


def source(mount: dict[str, Any]) -> str:
    """Where a mount comes from, and whether it can be written."""
    path = re.sub(r"^.*/self/home/", "<home>/", str(mount["source"]))
    path = re.sub(r"\b[0-9a-f]{40}\b", "<commit>", path)
    return path + ("" if mount["read_only"] else " (can be written)")


def seen(lab: Lab, nodes: Sequence[str], lane: str, service: str = "rank") -> list[dict[str, Any]]:
    """Every rank of a lane as recorded, in the form of the golden files."""
    return [
        normal(record(lab, node, lane, rank), asked(lab, node, f"sparkyard-{lane}-{service}-{rank}"))
        for rank, node in enumerate(nodes)
    ]


def compare(folder: Path, ranks: Sequence[dict[str, Any]]) -> None:
    """Every rank must be as its golden file says; with SPARKYARD_GOLDEN=write in the environment, the files are written instead."""
    for rank, found in enumerate(ranks):
        if os.environ.get("SPARKYARD_GOLDEN") == "write":
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"rank{rank}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        assert found == golden(folder, rank), json.dumps(found, indent=1)


def golden(folder: Path, rank: int) -> dict[str, Any]:
    """The expected record of a rank."""
    told: dict[str, Any] = json.loads((folder / f"rank{rank}.json").read_text())
    return told
