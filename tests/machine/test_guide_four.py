"""The four-Spark guide typed from its first command to its last, in its own order, on four simulated Sparks with stand-ins."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import guide
from tests.machine.conftest import DATA, Lab
from tests.machine.test_four_life import NODES, clean
from tests.machine.test_guide import walk
from tests.machine.typed import Typist

pytestmark = pytest.mark.machine


@pytest.fixture
def reader(four_lab: Lab, tmp_path: Path) -> Iterator[Typist]:
    """Somebody who reads the guide, with the lab's inventory for stand-ins, on nodes without anything of sparkyard."""
    forget(four_lab)
    shutil.copytree(four_lab.folder / "stand-in", tmp_path / "stand-in")
    yield Typist(tmp_path / "stand-in")
    forget(four_lab)


def forget(lab: Lab) -> None:
    clean(lab)
    for node in NODES:
        lab.delete(node, DATA)


@pytest.mark.long
def test_every_command_of_the_guide_does_what_it_says(four_lab: Lab, reader: Typist) -> None:
    walk(four_lab, reader, guide.FOUR_SPARKS)
