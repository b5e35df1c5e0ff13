"""How fast a node proves files, beside `openssl dgst -sha256` on one core. Ratios within one run; medians of five after a warm-up.

    python benchmarks/hashing.py [MIB_PER_FILE] [FILES]

Budget: at least 0.95 of OpenSSL a core; a proven checkpoint is proven again in a second.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sparkyard.actions import Prove
from sparkyard.executors.prove import command
from sparkyard.guard import node_script
from sparkyard.model import RemoteFile

ROUNDS = 5


def median(run: Callable[[], None]) -> float:
    """Seconds."""
    run()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def words(*given: str, stdin: bytes = b"", cores: int | None = None) -> Callable[[], None]:
    pinned = ("taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))) if cores else ()
    return lambda: subprocess.run([*pinned, *given], input=stdin, check=True, capture_output=True) and None


def main() -> None:
    size, count = int((sys.argv[1:2] or ["256"])[0]) << 20, int((sys.argv[2:3] or ["4"])[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "files"
        folder.mkdir()
        files = []
        for number in range(count):
            content = os.urandom(1 << 20) * (size >> 20)
            (folder / f"f{number}").write_bytes(content)
            files.append(RemoteFile(f"f{number}", size, sha256=hashlib.sha256(content).hexdigest()))
        paths = [str(folder / file.path) for file in files]
        proof = Prove(
            str(folder),
            tuple(files),
            f"{name}/ledger",
            held=tuple(files),
            seal=f"{name}/seal",
            seal_text="{}",
        )
        ours = command(proof)
        mib = size * count / (1 << 20)
        openssl = median(words("openssl", "dgst", "-sha256", *paths, cores=1))
        one = median(words(*ours.words, stdin=ours.stdin, cores=1))
        every = median(words(*ours.words, stdin=ours.stdin))
        sums = median(words("sha256sum", *paths, cores=1))
        asked = f'{node_script("tree.sh")}\nask_tree "$1" "$2" "$3"'
        again = median(words("sh", "-c", asked, "sh", str(folder), f"{name}/ledger", f"{name}/seal"))
    cores = len(os.sched_getaffinity(0))
    print(f"{count} files, {mib:.0f} MiB, {cores} cores")
    print(f"openssl, one core    {mib / openssl:7.0f} MiB/s   1.00")
    print(f"sparkyard, one core  {mib / one:7.0f} MiB/s   {openssl / one:.2f}")
    print(f"sparkyard, all cores {mib / every:7.0f} MiB/s   {openssl / every:.2f}")
    print(f"sha256sum, one core  {mib / sums:7.0f} MiB/s   {openssl / sums:.2f}")
    print(f"proven again by the ledger: {again * 1000:.0f} ms")


if __name__ == "__main__":
    main()
