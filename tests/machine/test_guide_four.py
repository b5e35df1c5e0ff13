"""The four-Spark guide typed from its first command to its last, in its own order, on four simulated Sparks with stand-ins."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import guide
from tests.machine.conftest import Lab
from tests.machine.test_guide import walk
from tests.machine.test_lane_d import KEY, forget
from tests.machine.typed import Typist

pytestmark = pytest.mark.machine


@pytest.fixture
def reader(four_lab: Lab, tmp_path: Path) -> Iterator[Typist]:
    """Somebody who reads the guide on nodes without anything of sparkyard, and has written the key of lane D's package into the inventory."""
    forget(four_lab)
    folder = tmp_path / "stand-in"
    shutil.copytree(four_lab.folder / "stand-in", folder)
    hosts = folder / "hosts.yml"
    hosts.write_text(
        hosts.read_text().replace("  vars:\n", f'  vars:\n    lanes: {{D: {{approve_key: "{KEY}"}}}}\n', 1)
    )
    yield Typist(folder)
    forget(four_lab)


def test_every_command_of_the_guide_does_what_it_says(four_lab: Lab, reader: Typist) -> None:
    walk(four_lab, reader, guide.FOUR_SPARKS)
