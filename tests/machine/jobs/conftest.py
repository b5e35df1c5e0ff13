"""What every test of jobs begins with: the image of their lane on two nodes, and nothing else of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.machine.conftest import Lab
from tests.machine.jobs.sparks import LANE, NODES, TOKEN, JobTypist, Sparks
from tests.machine.typed import PROJECT


@pytest.fixture(scope="module")
def typist(session_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> JobTypist:
    """Somebody to type; the image is built and shipped once a file."""
    folder = tmp_path_factory.mktemp("inventory") / "lab"
    shutil.copytree(PROJECT / "inventory" / "lab", folder, ignore=shutil.ignore_patterns("locks"))
    hosts = folder / "hosts.yml"
    text = hosts.read_text()
    hosts.write_text(
        text.replace("    lab: true\n", f"    lab: true\n    lanes: {{J: {{token: {TOKEN}}}}}\n")
    )
    made = JobTypist(folder)
    made.ok("build", "--only=image")
    return made


@pytest.fixture
def sparks(lab: Lab, typist: JobTypist) -> Iterator[Sparks]:
    """Nodes without anything of lane J but its image, before and after."""
    lab.forget(NODES, LANE)
    yield Sparks(lab, typist)
    lab.forget(NODES, LANE)
