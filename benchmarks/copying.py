"""A copy to a worker behind a real sshd on loopback, proof included, beside plain rsync. Ratios within one run; medians of three.

    sudo python benchmarks/copying.py [MIB_PER_FILE] [FILES]

Budget: never slower than the best rsync, although ours proves what it copied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sparkyard.actions import CopyFiles, Prove
from sparkyard.command import Command
from sparkyard.executors.copy import copy_files
from sparkyard.executors.prove import prove
from sparkyard.known_hosts import Keys
from sparkyard.model import Inventory, Link, Node, RemoteFile
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld, Surroundings
from sparkyard.trust import agreed, scan
from tests.machine import sshd as servers

ROUNDS = 3


def median(run: Callable[[Path], None], target: Path) -> float:
    """Seconds, the target folder fresh each time."""
    times = []
    for _ in range(ROUNDS + 1):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        began = time.perf_counter()
        run(target)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def make_files(folder: Path, size: int, count: int) -> tuple[RemoteFile, ...]:
    folder.mkdir()
    files = []
    for number in range(count):
        content = os.urandom(1 << 20) * (size >> 20)
        (folder / f"f{number}").write_bytes(content)
        files.append(RemoteFile(f"f{number}", size, sha256=hashlib.sha256(content).hexdigest()))
    return tuple(files)


def surroundings(folder: Path, worker: Node) -> Surroundings:
    head = Node("spark-1", 0, True, "127.0.0.1", Link("127.0.0.1", "lo", ()), str(folder), str(folder))
    keys = Keys(folder / "own", [])
    keys.record(worker, agreed(scan(worker)))
    return Surroundings(Inventory(folder, (head, worker), {}, None, None), folder / "own", folder, keys)


def main() -> None:
    size, count = int((sys.argv[1:2] or ["256"])[0]) << 20, int((sys.argv[2:3] or ["4"])[0])
    with tempfile.TemporaryDirectory() as name, servers.running(Path(name) / "sshd") as server:
        folder = Path(name)
        files = make_files(folder / "files", size, count)
        around = surroundings(folder, server.node())
        step = Step("checkpoint", "x", "spark-2", "x", lambda _: Verdict("ok"))
        world = StepWorld(around, step, lambda _event: None, {})
        ssh = Command(world.ssh_words("spark-2")).line()

        def ours(target: Path) -> None:
            source, incoming = str(folder / "files"), f"{target}/.incoming"
            copy_files(CopyFiles(source, incoming, files, server.address), "spark-2", world)
            ledger, seal = f"{name}/ledger", f"{name}/seal"
            prove(
                Prove(str(target), (), ledger, files, held=files, seal=seal, seal_text="{}"), "spark-2", world
            )

        def plain(*options: str) -> Callable[[Path], None]:
            words = ("rsync", *options, f"--rsh={ssh}", f"{folder}/files/", f"{server.address}:")
            return lambda target: subprocess.run([*words[:-1], f"{words[-1]}{target}/"], check=True) and None

        best = median(plain("-rt", "--whole-file", "--inplace"), folder / "plain")
        usual = median(plain("-a"), folder / "usual")
        mine = median(ours, folder / "ours")
        around.close()
    mib = size * count / (1 << 20)
    print(f"{count} files, {mib:.0f} MiB, {len(os.sched_getaffinity(0))} cores")
    print(f"rsync --whole-file --inplace  {mib / best:6.0f} MiB/s   1.00")
    print(f"rsync -a                      {mib / usual:6.0f} MiB/s   {best / usual:.2f}")
    print(f"sparkyard, proof included     {mib / mine:6.0f} MiB/s   {best / mine:.2f}")


if __name__ == "__main__":
    main()
