"""An image after a small rebuild, to a worker behind a real sshd on loopback: what is lacking beside ``docker save | ssh docker load`` whole.

    sudo python benchmarks/shipping.py [MIB_BELOW] [MIB_ON_TOP]

Two Docker engines of this machine. Ratios within one run; medians of three. The worker has all but the top layer each time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sparkyard.actions_image import ShipImage
from sparkyard.command import Command
from sparkyard.executors.ship import ship_image
from sparkyard.known_hosts import Keys
from sparkyard.model import Inventory, Link, Node
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld, Surroundings
from sparkyard.trust import agreed, scan
from tests.machine import docker_engine, sshd

ROUNDS = 3
REFERENCE = "sparkyard-benchmark:1"


def rebuild(head: docker_engine.DockerEngine, mib: int) -> None:
    """Another top layer on the same base."""
    text = f"FROM base:1\nRUN head -c {mib << 20} /dev/urandom > /top\n"
    words = ("build", "--no-cache", "--network", "host", "--tag", REFERENCE, "-")
    head.docker(*words, stdin=text.encode())


def median(prepare: Callable[[], None], run: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS + 1):
        prepare()
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def surroundings(folder: Path, worker: Node) -> Surroundings:
    head = Node("spark-1", 0, True, "127.0.0.1", Link("127.0.0.1", "lo", ()), str(folder), str(folder))
    keys = Keys(folder / "own", [])
    keys.record(worker, agreed(scan(worker)))
    return Surroundings(Inventory(folder, (head, worker), {}, None, None), folder / "own", folder, keys)


def main() -> None:
    below, top = (int(word) for word in (*sys.argv[1:], *("512", "4")[len(sys.argv) - 1 :]))
    with (
        tempfile.TemporaryDirectory() as name,
        docker_engine.running(Path(name) / "head") as head,
        docker_engine.running(Path(name) / "worker") as worker,
        sshd.running(Path(name) / "sshd", set_env=f"DOCKER_HOST={worker.host}") as server,
    ):
        os.environ["DOCKER_HOST"] = head.host
        head.add_image("base:1", filler=os.urandom(1 << 20) * below)
        around = surroundings(Path(name), server.node())
        step = Step("image", "x", "spark-2", "x", lambda _: Verdict("ok"))
        world = StepWorld(around, step, lambda _event: None, {})
        ssh = (*world.ssh_words("spark-2"), server.address)
        line = f"docker save {REFERENCE} | {Command((*ssh, 'docker', 'load')).line()}"

        def whole() -> None:
            subprocess.run(["sh", "-c", line], check=True, stdout=subprocess.DEVNULL)

        def ours() -> None:
            ship_image(ShipImage(REFERENCE, server.address), "spark-2", world)

        def prepare() -> None:
            rebuild(head, top)

        rebuild(head, top)
        whole()
        plain = median(prepare, whole)
        mine = median(prepare, ours)
        told = world.results["shipped"]
        around.close()
    print(f"{below} MiB that are there, {top} MiB on top, {len(os.sched_getaffinity(0))} cores")
    print(f"docker save | ssh docker load  {plain:6.2f} s   1.00   {below + top} MiB moved and more")
    print(
        f"sparkyard, proof included      {mine:6.2f} s   {mine / plain:.2f}   {told['moved'] >> 20} MiB moved"
    )


if __name__ == "__main__":
    main()
