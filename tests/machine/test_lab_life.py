"""A lab comes up, heals, and leaves no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sparkyard import lab
from sparkyard.lab import faults
from sparkyard.lab.errors import LabError
from sparkyard.lab.processes import cgroup_folders
from tests.machine.typed import until

pytestmark = pytest.mark.machine

UP = "from sparkyard import lab; lab.up(2, print, base=False)"


def traces(folder: Path) -> dict[str, object]:
    """All that a lab could leave on this machine."""
    place = lab.here()
    commands = [read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    return {
        "processes": [command for command in commands if str(folder).encode() in command],
        "namespaces": sorted(Path("/run/netns").glob(f"*{place.id}*")),
        "interfaces": sorted(Path("/sys/class/net").iterdir()),
        "mounts": [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if place.id in line or str(folder) in line],
        "cgroups": cgroup_folders(place.cgroup),
        "folder": folder.exists(),
        "devices": Path("/dev/infiniband").exists(),
    }  # fmt: skip


def pids() -> list[int]:
    state = lab.status()
    assert state is not None
    return [node.pid for node in state.nodes]


def quiet(_: str) -> None:
    """Progress that nobody reads."""


def test_up_twice_changes_nothing_and_down_leaves_nothing(other_lab: Path) -> None:
    before = traces(other_lab)
    first = lab.up(2, quiet, base=False)
    said: list[str] = []
    second = lab.up(2, said.append, base=False)
    assert first.ready
    assert second == first
    assert len(said) == 1, said
    subprocess.run(
        lab.enter_words("spark-1", ["docker", "run", "-d", "--network", "none", "sparkyard-lab/busybox-base", "sleep", f"98765.{os.getpid()}"]),
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    mark = f"\x0098765.{os.getpid()}\0".encode()
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in read(path)]
    lab.down(quiet)
    lab.down(quiet)
    assert traces(other_lab) == before
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in read(path)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    "mark", ["sparkyard-lab", "nodes/spark-1/log/node.log", "nodes/spark-2/log/dockerd.log", "hub.log"]
)
def test_up_after_a_killed_up_heals(other_lab: Path, mark: str) -> None:
    run_up_until(other_lab / mark)
    state = lab.up(2, quiet, base=False)
    assert state.ready
    assert all(pids())


def run_up_until(mark: Path) -> None:
    """Start an `up` and SIGKILL it as soon as a file appears."""
    with subprocess.Popen([sys.executable, "-c", UP], stdout=subprocess.DEVNULL) as process:
        until(lambda: mark.exists() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_down_after_a_killed_up_leaves_nothing(other_lab: Path) -> None:
    before = traces(other_lab)
    run_up_until(other_lab / "nodes/spark-1/log/dockerd.log")
    lab.down(quiet)
    until(lambda: not traces(other_lab)["processes"])  # one that was just being started ends by itself
    assert traces(other_lab) == before


def test_dead_nodes_and_engines_come_back(other_lab: Path) -> None:
    del other_lab
    lab.up(2, quiet, base=False)
    first = pids()
    faults.kill_node("spark-2")
    state = lab.status()
    assert state is not None
    assert (state.node("spark-2").pid, state.node("spark-1").pid) == (0, first[0])
    assert lab.up(2, quiet, base=False).ready
    assert pids()[0] == first[0]
    faults.kill_dockerd("spark-1")
    assert lab.up(2, quiet, base=False).ready
    assert pids()[0] == first[0]


def test_a_lab_of_one_grows_and_shrinks(other_lab: Path) -> None:
    assert len(lab.up(1, quiet, base=False, trust=False).nodes) == 1
    known = other_lab / "nodes" / "spark-1" / "self" / "home" / ".ssh" / "known_hosts"
    assert not known.exists()
    state = lab.up(3, quiet, base=False)
    assert [node.name for node in state.nodes] == ["spark-1", "spark-2", "spark-3"]
    assert state.ready
    names = [name for n in (1, 2, 3) for name in (f"spark-{n}", f"198.18.1.{n}")]
    assert [line.split()[0] for line in known.read_text().splitlines()] == names
    assert "198.18.0.3" in (other_lab / "inventory" / "hosts.yml").read_text()
    assert len(lab.up(1, quiet, base=False).nodes) == 1
    assert not (other_lab / "nodes" / "spark-3").exists()


def test_a_folder_that_is_no_lab_is_left_alone(other_lab: Path) -> None:
    other_lab.mkdir(parents=True)
    (other_lab / "thesis.txt").write_text("years of work")
    with pytest.raises(lab.LabError, match="is not a lab"):
        lab.up(1, quiet, base=False)
    with pytest.raises(lab.LabError, match="is not a lab"):
        lab.down(quiet)
    assert (other_lab / "thesis.txt").exists()
    (other_lab / "thesis.txt").unlink()


def test_bad_counts_and_names(other_lab: Path) -> None:
    with pytest.raises(lab.LabError, match="1 to 4 nodes"):
        lab.up(5, quiet)
    with pytest.raises(lab.LabError, match="not up"):
        lab.shell_words("spark-1")
    with pytest.raises(KeyError):
        lab.shell_words("spark-9")
    assert not other_lab.exists()


def test_without_root_it_says_the_line_to_type(other_lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(lab.LabError, match=r"sudo .*lab\.up"):
        lab.up(1, quiet)
    monkeypatch.undo()
    assert not other_lab.exists()


@pytest.mark.parametrize(
    ("name", "says"), [("a" * 80, "too long a path"), ("with space", "has no spaces, commas")]
)
def test_a_path_that_no_lab_can_have_is_refused_before_it_is_made(monkeypatch, name, says):
    folder = Path(tempfile.gettempdir()) / f"no lab {os.getpid()}" / name
    monkeypatch.setenv("SPARKYARD_LAB", str(folder))
    with pytest.raises(LabError, match=says):
        lab.up(1, quiet)
    assert not folder.parent.exists()
