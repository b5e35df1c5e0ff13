"""Running words on this machine, and ending processes of the lab (only those, found by namespace and cgroup)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sparkyard.lab.errors import LabError, program, search_path

TICK = 0.05


def run(words: Sequence[str], *, stdin: str = "", seconds: float = 180) -> str:
    """Run to the end; what it printed, or a LabError with what it complained of."""
    first = program(words[0])
    try:
        done = subprocess.run(
            [first, *words[1:]], input=stdin, capture_output=True, text=True, timeout=seconds, check=False,
            env={**os.environ, "PATH": search_path(), "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LabError(f"no end after {seconds:.0f} s: {' '.join(words)}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-8:]
        raise LabError(f"exit {done.returncode}: {' '.join(words)}", details=said)
    return done.stdout


def start(words: Sequence[str], log: Path, env: dict[str, str] | None = None) -> None:
    """Start a process that outlives us: own session, parent is init, output to a log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        subprocess.run(
            [program("setsid"), "--fork", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
            env=env if env is not None else {**os.environ, "PATH": search_path()}, check=True,
        )  # fmt: skip


def last_lines(log: Path, count: int = 12) -> list[str]:
    """The end of a log, for an error."""
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return [f"{log} cannot be read"]


def wait_until(ready: Callable[[], bool], seconds: float, what: str, log: Path | None = None) -> None:
    """Ask until it is so, or fail with the last lines of the log of who should have made it so."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            details = [f"{log}:", *last_lines(log)] if log else []
            raise LabError(f"{what} not seen within {seconds:.0f} s", details=details)
        time.sleep(TICK)


def netns_exists(name: str) -> bool:
    """Whether the namespace is there and is one (a killed `ip netns add` leaves a plain file)."""
    return os.path.ismount(f"/run/netns/{name}")


def netns_pids(name: str) -> set[int]:
    """Processes in a network namespace."""
    if not netns_exists(name):
        return set()
    return {int(pid) for pid in run(["ip", "netns", "pids", name]).split()}


def cgroup_folders(name: str) -> list[Path]:
    """The lab's cgroup in every hierarchy of this machine (v1 has many, v2 one)."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    roots = [Path(fields[1]) for fields in mounts if fields[2] in {"cgroup", "cgroup2"}]
    return [root / name for root in roots if (root / name).is_dir()]


def cgroup_pids(name: str) -> set[int]:
    """Processes below a cgroup, in any hierarchy."""
    pids: set[int] = set()
    for folder in cgroup_folders(name):
        for part, _folders, _files in os.walk(folder):  # passes over what goes away while it looks
            with contextlib.suppress(OSError):  # gone since, or holds threads only
                pids.update(
                    int(pid) for pid in Path(part, "cgroup.procs").read_text(encoding="utf-8").split()
                )
    return pids


def remove_cgroup(name: str) -> None:
    """Remove the empty cgroups, deepest first."""
    for folder in cgroup_folders(name):
        inside = [Path(root) for root, _, _ in os.walk(folder, topdown=False)]
        for part in inside:
            with contextlib.suppress(FileNotFoundError):
                part.rmdir()


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each process that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end(find: Callable[[], set[int]], *, grace: float, what: str) -> None:
    """TERM what ``find`` finds and KILL it after ``grace`` seconds, or KILL it at once when there are none, until it finds nothing.

    It asks again each time: pids are reused.
    """
    deadline = time.monotonic() + grace
    pids = find()
    if grace > 0:
        send(pids, signal.SIGTERM)
    while pids and time.monotonic() < deadline:
        time.sleep(TICK)
        pids = find()
    deadline = time.monotonic() + 60
    while pids:
        send(pids, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"processes of {what} do not end: {sorted(pids)}")
        time.sleep(TICK)
        pids = find()
