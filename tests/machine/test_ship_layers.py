"""An image that was built again, on its way to three workers: only what they lack moves, whatever happened to them in between."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard import lab as simulated
from sparkyard.lab import faults
from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Said, Typist, until

pytestmark = pytest.mark.machine

NODES = ("spark-1", "spark-2", "spark-3", "spark-4")
WORKERS = NODES[1:]
NAME = "sparkyard/lab-engine"
SMALL = 3_000_000
"""More than the lab's own files and a small top layer, far less than its base."""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's recipe as lane ``ship``, whose file ``top`` is a layer of its own above the others."""
    folder = tmp_path_factory.mktemp("recipes")
    recipe = folder / "ship"
    shutil.copytree(PROJECT / "recipes" / "lab", recipe)
    text = (recipe / "recipe.yml").read_text()
    text = text.replace("lane: lab\n", "lane: ship\n").replace("context: engine}", "context: .}")
    (recipe / "recipe.yml").write_text(text)
    docker = (recipe / "Dockerfile").read_text().replace("COPY . ", "COPY engine ")
    (recipe / "Dockerfile").write_text(docker + "COPY top /top\n")
    return folder


@pytest.fixture(scope="module")
def inventory_of_four(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inventory") / "four"
    shutil.copytree(four_lab.folder / "inventory", folder)
    return folder


@pytest.fixture
def shipped(four_lab: Lab, inventory_of_four: Path, recipes: Path) -> Iterator[Shipping]:
    """A first image on all four nodes."""
    simulated.up(4, print)
    made = Shipping(four_lab, Typist(inventory_of_four), recipes)
    made.build(b"first")
    yield made
    faults.shape("spark-2", None)


class Shipping:
    """Builds the lane's image with another top, and sees what became of it."""

    def __init__(self, lab: Lab, typist: Typist, recipes: Path) -> None:
        self.lab = lab
        self.typist = typist
        self.top = recipes / "ship" / "top"
        self.line = ("build", "--lane=ship", f"--recipes={recipes}")

    def build(self, top: bytes) -> Said:
        """Build with these bytes on top."""
        self.top.write_bytes(top)
        return self.again()

    def again(self) -> Said:
        """The same line once more; every node has the same image then."""
        said = self.typist.ok(*self.line)
        ended = [
            e
            for e in said.events
            if e["type"] in ("step-ok", "step-changed") and e["step"].startswith("image:")
        ]
        names = {word for e in ended for word in e["message"].split() if word.startswith(f"{NAME}:")}
        (name,) = names
        words = ("docker", "image", "inspect", "--format", "{{.Id}}", name)
        assert len({self.lab.out(node, *words) for node in NODES}) == 1
        return said

    def forget(self, *nodes: str) -> None:
        for node in nodes:
            self.lab.run(node, "sh", "-c", "docker ps -aq | xargs -r docker rm --force")
            self.lab.run(node, "docker", "image", "prune", "--all", "--force")


def told(said: Said) -> dict[str, dict[str, int]]:
    """What the steps say was shipped, by node; the recap says the sums."""
    steps = {e["node"]: e["data"]["shipped"] for e in said.of("step-changed") if "shipped" in e["data"]}
    (recap,) = said.of("recap")
    sums = {name: sum(part[name] for part in steps.values()) for name in ("moved", "left_out")}
    assert recap["data"].get("shipped") == (sums if steps else None)
    return steps


def test_after_a_small_change_few_bytes_move_to_three_workers(shipped: Shipping) -> None:
    parts = told(shipped.build(b"second"))
    assert set(parts) == set(WORKERS)
    for part in parts.values():
        assert part["moved"] < SMALL < part["left_out"]
        assert part["layers_left_out"] == part["layers"] - 1
    again = shipped.again()
    assert again.changed() == dict.fromkeys(NODES, 0)
    assert told(again) == {}


def test_a_worker_that_lost_its_layers_is_sent_them(shipped: Shipping) -> None:
    shipped.forget("spark-3")
    alone = told(shipped.build(b"first"))  # the image that the others have
    assert set(alone) == {"spark-3"}
    assert alone["spark-3"]["moved"] > SMALL
    shipped.forget("spark-3")
    parts = told(shipped.build(b"third"))
    assert set(parts) == set(WORKERS)
    assert parts["spark-3"]["left_out"] == 0
    for part in parts.values():  # those that were ready at the same time share what the one of them lacks
        assert part["left_out"] == 0 or part["moved"] < SMALL


@pytest.mark.long
def test_killed_while_a_layer_is_on_its_way_heals(shipped: Shipping) -> None:
    shipped.top.write_bytes(os.urandom(40_000_000))
    for node in WORKERS:
        faults.shape(node, "50mbit")
    process = shipped.typist.start(*shipped.line)
    loading = ("pgrep", "-f", "docker load")
    try:
        until(
            lambda: (
                shipped.lab.run("spark-2", *loading, check=False).returncode == 0
                or process.poll() is not None
            )
        )
        assert process.poll() is None, process.communicate()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for node in WORKERS:
            faults.shape(node, None)
    parts = told(shipped.again())
    assert set(parts) == set(WORKERS)
    assert all(part["left_out"] > SMALL for part in parts.values())


@pytest.mark.long
def test_a_full_disk_of_a_worker_is_named_and_the_next_run_heals(shipped: Shipping) -> None:
    shipped.top.write_bytes(os.urandom(40_000_000))
    faults.small_disk("spark-2", 8_000_000, "docker/tmp")
    try:
        said = shipped.typist.json(*shipped.line)
    finally:
        faults.whole_disk("spark-2", "docker/tmp")
    assert said.status == 1
    assert "docker load on spark-2 failed with status 1: its disk is full" in said.failures()
    assert not any("once more" in e["message"] for e in said.of("step-output"))
    parts = told(shipped.again())
    assert parts["spark-2"]["layers_left_out"] == parts["spark-2"]["layers"] - 1
