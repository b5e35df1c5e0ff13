"""A lab of two nodes for all machine tests of a session, and one of four for those that ask for it, each in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import node as nodes_of_the_lab
from sparkyard.lab.errors import LabError, require_programs
from sparkyard.lab.state import LabState
from tests.machine.typed import Typist, end_lines, until

EXAMPLES = Path(__file__).resolve().parents[2] / "inventory"
PAIR = ("spark-1", "spark-2")
FOUR = ("spark-1", "spark-2", "spark-3", "spark-4")
DATA = "home/.local/share/sparkyard"
"""Where a node keeps what is sparkyard's, in its own folder."""
OURS = "label=sparkyard.lane"
AWAY = """
while found=$(docker ps --all --quiet "$@") && [ "$found" ]; do docker rm --force $found || sleep 0.2; done
docker ps --quiet >/dev/null
"""
"""Again and again: a container may end, or go, between the list and the removal."""
KILLED = """
while found=$(docker ps --quiet "$@") && [ "$found" ]; do docker kill $found || sleep 0.2; done
docker ps --quiet >/dev/null
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without root or without the lab's programs, say so once a test."""
    reason = "needs root" if os.geteuid() != 0 else missing_programs()
    for item in items:
        if reason and item.get_closest_marker("machine"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Before what a test's own fixtures put right: no line of it goes on."""
    end_lines()


def missing_programs() -> str:
    """What is missing, in the words that a person would see."""
    try:
        require_programs()
    except LabError as fault:
        return str(fault)
    return ""


class Lab:
    """The lab of the session, as tests speak to it."""

    def __init__(self, state: LabState) -> None:
        self.state = state
        self.folder = Path(state.folder)

    def run(
        self, node: str, *command: str, check: bool = True, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a node."""
        words = simulated.enter_words(node, command, cwd="/")
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0 or not check, (
            f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def out(self, node: str, *command: str, seconds: float = 300) -> str:
        """What a command in a node printed."""
        return self.run(node, *command, seconds=seconds).stdout.strip()

    def own(self, node: str) -> Path:
        """The node's own folder as seen from outside; in the node it is ``<lab>/self``."""
        return self.folder / "nodes" / node / "self"

    def forget(self, nodes: Sequence[str], folder: str = DATA) -> None:
        """Take the containers of every lane from the nodes, and a folder of each node's own."""
        for node in nodes:
            self.away(node)
            self.delete(node, folder)

    def delete(self, node: str, folder: str) -> None:
        """Delete a folder of a node's own, though the end of something killed may still write there."""
        path = self.own(node) / folder

        def gone() -> bool:
            shutil.rmtree(path, ignore_errors=True)
            return not path.exists()

        until(gone)

    def away(self, node: str, chosen: str = OURS) -> None:
        """Remove the containers of a filter (all, when it is empty), running or not."""
        self.run(node, "sh", "-c", AWAY, "away", *(("--filter", chosen) if chosen else ()))

    def kill(self, node: str, chosen: str) -> None:
        """Kill the containers of a filter, those that have not ended by themselves."""
        self.run(node, "sh", "-c", KILLED, "killed", "--filter", chosen)

    def processes(self, node: str, words: str) -> list[str]:
        """Command lines in a node that have these words: the process ids of all labs of this machine are the same."""
        found = []
        for pid in nodes_of_the_lab.pids(simulated.here().node(node)):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found += [line] if words in line else []
        return found

    def ship(self, image: str, nodes: Sequence[str] = ("spark-2",)) -> None:
        """Copy an image of spark-1's engine to other nodes, past sparkyard."""
        for node in nodes:
            self.run("spark-1", "sh", "-c", f"docker save {image} | ssh {node} docker load")


def with_stand_ins(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type, with a copy of the lab's own inventory for stand-ins."""
    folder = tmp_path_factory.mktemp("inventory") / "stand-in"
    shutil.copytree(lab.folder / "stand-in", folder)
    return Typist(folder)


@pytest.fixture(scope="session")
def lab_environment() -> Iterator[Path]:
    """A folder for a lab, named in the environment for as long as the session lasts."""
    patch = pytest.MonkeyPatch()
    folder = Path(tempfile.mkdtemp(prefix="sylab-"))
    patch.setenv("SPARKYARD_LAB", str(folder / "lab"))
    yield folder
    patch.undo()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def lab_of_the_session(lab_environment: Path) -> Iterator[Lab]:
    """Up once, down at the end."""
    del lab_environment
    state = simulated.up(2, print)
    yield Lab(state)
    simulated.down(print)


@pytest.fixture(scope="module")
def session_lab(lab_of_the_session: Lab) -> Lab:
    """The lab of the session for a file's own fixtures: up, whatever an earlier file did to it."""
    simulated.up(2, print)
    return lab_of_the_session


@pytest.fixture
def lab(session_lab: Lab) -> Lab:
    """Two nodes, up. A test that breaks something mends it, or leaves that to the next `up` here."""
    simulated.up(2, print)
    return session_lab


@pytest.fixture(scope="session")
def four_of_the_session() -> Iterator[Lab]:
    """A lab of four nodes: up once, down at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sylab4-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKYARD_LAB", str(folder / "lab"))
        state = simulated.up(4, print)
    yield Lab(state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKYARD_LAB", str(folder / "lab"))
        simulated.down(print)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def four_lab(four_of_the_session: Lab) -> Iterator[Lab]:
    """The lab of four nodes, up and named in the environment for as long as a file's tests last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKYARD_LAB", str(four_of_the_session.folder))
        simulated.up(4, print)
        yield four_of_the_session


@pytest.fixture(scope="module")
def typist(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type on four nodes, with the lab's own inventory for stand-ins; a file may have another one."""
    return with_stand_ins(four_lab, tmp_path_factory)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example inventory of a lab of two nodes, with no locks in it."""
    folder: Path = tmp_path_factory.mktemp("inventory") / "lab"
    shutil.copytree(EXAMPLES / "lab", folder, ignore=shutil.ignore_patterns("locks"))
    return folder


@pytest.fixture
def other_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a second lab, not up, for tests that bring it up and down; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sylab-"))
    monkeypatch.setenv("SPARKYARD_LAB", str(folder / "lab"))
    yield folder / "lab"
    simulated.down(print)
    shutil.rmtree(folder)
