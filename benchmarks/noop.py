"""A line with nothing to do, on four lab nodes, beside an ansible-playbook that makes the same checks: ratios of one run.

Needs root, a lab (`invoke lab.up --nodes=4`) and a running lane (`invoke download build start --lane=lab`).
Prints medians of five after a warm-up, wall time and processor time of the command and its children here (what a busy machine
disturbs less), and the ratio. `--set engine=scripted` behind the file's name goes to our line: the engine's own work is left out then.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sparkyard import lab

PROJECT = Path(__file__).resolve().parent.parent
RUNS = 5


def spent() -> float:
    """Processor seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(words: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """How long a command takes that must succeed, and its processor time."""
    began, before = time.perf_counter(), spent()
    done = subprocess.run(
        words,
        cwd=PROJECT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{words}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - began, spent() - before


def median(name: str, words: list[str], environment: dict[str, str] | None = None) -> float:
    seconds(words, environment)
    taken, used = zip(*(seconds(words, environment) for _run in range(RUNS)), strict=True)
    middle, processor = statistics.median(taken), statistics.median(used)
    print(
        f"{name:<46} {middle:6.2f} s   ({min(taken):.2f} to {max(taken):.2f})   processor {processor:.2f} s"
    )
    return middle


def main() -> None:
    """Both from inside node 1, as a person on the head would type them."""
    place = lab.here()
    inventory = str(place.folder / "inventory")
    binaries = Path(sys.executable).parent
    models = f"{place.common}/home/.local/share/sparkyard/models"
    verbs = ("download", "build", "start")
    ours = [str(binaries / "invoke"), *verbs, "--lane=lab", f"--inventory={inventory}", *sys.argv[1:]]
    alias = '{"ansible_ssh_common_args": "-o HostKeyAlias={{ inventory_hostname }}"}'
    theirs = [
        str(binaries / "ansible-playbook"),
        "-i",
        f"{inventory}/hosts.yml",
        "-e",
        alias,
        "benchmarks/noop.yml",
    ]
    quiet = {
        "MODELS": models,
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
    }
    mine = median("sparkyard download build start, nothing to do", list(lab.enter_words("spark-1", ours)))
    other = median("ansible-playbook, the same checks", list(lab.enter_words("spark-1", theirs)), quiet)
    print(f"ratio {mine / other:.3f} (budget: at most 0.1)")
    bare = median("invoke --list", [str(binaries / "invoke"), "--list"])
    empty = PROJECT / "benchmarks" / "empty"
    floor = median("bare invoke --list", [str(binaries / "invoke"), "--search-root", str(empty), "--list"])
    print(f"ratio {bare / floor:.2f} (budget: at most 1.3)")


if __name__ == "__main__":
    main()
