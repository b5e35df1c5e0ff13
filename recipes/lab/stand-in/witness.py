"""What a rank was given, as it sees it from inside of its container."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|JOIN[-_]CODE)$|^-*CODE$", re.I)
SYSTEM = re.compile(
    r"^/(proc|sys|dev)(/|$)|^/etc/(resolv\.conf|hostname|hosts)$|^/(usr/)?sbin/docker-init$|^/$"
)
DEVICES = ("infiniband", "dri", "nvidia*")
CGROUP = {
    "memory": ("memory.max", "memory/memory.limit_in_bytes"),
    "pids": ("pids.max", "pids/pids.max"),
    "cpus": ("cpuset.cpus.effective", "cpuset/cpuset.cpus"),
}


def record(words: Sequence[str], **facts: Any) -> dict[str, Any]:
    """Everything that is worth comparing, ready for JSON."""
    return {
        **facts,
        "argv": masked(words),
        "environment": environment(os.environ),
        "mounts": mounts(Path("/proc/self/mountinfo").read_text()),
        "ulimits": ulimits(),
        "devices": devices(Path("/dev")),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "groups": sorted(os.getgroups()),
        "capabilities": capabilities(Path("/proc/self/status").read_text()),
        "cgroup": cgroup(Path("/sys/fs/cgroup")),
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "pid": os.getpid(),
        "shm_bytes": shm_bytes(),
    }


def sha256(path: Path) -> str:
    """Of a file's content; empty when there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def masked(words: Sequence[str]) -> list[str]:
    """The words; of a key that follows its flag only how long it is."""
    before = ["", *words]
    return [
        f"<hidden: {len(word)} characters>" if flag.startswith("--") and SECRET.search(flag) else word
        for flag, word in zip(before, words, strict=False)
    ]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Every variable; of secrets only how long they are."""
    return {
        name: f"<hidden: {len(value)} characters>" if SECRET.search(name) and value else value
        for name, value in sorted(given.items())
    }


def mounts(text: str) -> list[dict[str, Any]]:
    """The mounts that are not the container's own: target, source within its filesystem, and whether it can be written."""
    found = []
    for line in text.splitlines():
        fields = line.split(" ")
        target, options = fields[4], fields[5].split(",")
        if not SYSTEM.search(target):
            found.append({"target": target, "source": fields[3], "read_only": "ro" in options})
    return sorted(found, key=lambda mount: str(mount["target"]))


def ulimits() -> dict[str, list[str]]:
    """Soft and hard limits."""
    names = {"memlock": "MEMLOCK", "stack": "STACK", "nofile": "NOFILE", "core": "CORE"}
    pairs = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for name, kind in names.items()}
    return {
        name: ["unlimited" if limit == resource.RLIM_INFINITY else str(limit) for limit in pair]
        for name, pair in pairs.items()
    }


def devices(folder: Path) -> list[str]:
    """The devices that an engine may use, one path each."""
    found = [path for pattern in DEVICES for path in folder.glob(pattern)]
    inner = [path for top in found for path in ([top] if not top.is_dir() else sorted(top.iterdir()))]
    return sorted(str(path) for path in inner)


def capabilities(status: str) -> str:
    """The effective set, as hexadecimal digits."""
    return next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "")


def cgroup(folder: Path) -> dict[str, str]:
    """Limits of the container, of either version of cgroups; what is not set is left out."""
    found = {}
    for name, files in CGROUP.items():
        present = next((folder / file for file in files if (folder / file).is_file()), None)
        if present is not None:
            found[name] = present.read_text().strip()
    return found


def shm_bytes() -> int:
    """Size of /dev/shm."""
    try:
        told = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return told.f_blocks * told.f_frsize


def state_folder(found: Sequence[Mapping[str, Any]]) -> Path | None:
    """Where the record is left: STAND_IN_STATE, or the first mounted folder that can be written."""
    if given := os.environ.get("STAND_IN_STATE"):
        return Path(given)
    folders = (Path(mount["target"]) for mount in found if not mount["read_only"])
    return next((folder for folder in folders if folder.is_dir() and os.access(folder, os.W_OK)), None)


def keep(found: Mapping[str, Any], rank: int) -> str:
    """Leave the record in the state folder, for whoever looks later; the file, or empty when there is no place."""
    folder = state_folder(found["mounts"])
    if folder is None:
        return ""
    path = folder / f"stand-in.rank{rank}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    part.replace(path)
    return str(path)
