"""The two-Spark guide typed from its first command to its last, in its own order, on two simulated Sparks with stand-ins."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import guide
from tests.machine.conftest import PAIR, Lab
from tests.machine.typed import Typist

pytestmark = pytest.mark.machine


@pytest.fixture
def reader(lab: Lab, tmp_path: Path) -> Iterator[Typist]:
    """Somebody who reads the guide, with the lab's inventory for stand-ins, on nodes without anything of sparkyard."""
    lab.forget(PAIR)
    shutil.copytree(lab.folder / "stand-in", tmp_path / "stand-in")
    yield Typist(tmp_path / "stand-in")
    lab.forget(PAIR)


def test_every_command_of_the_guide_does_what_it_says(lab: Lab, reader: Typist) -> None:
    walk(lab, reader, guide.TWO_SPARKS)


def walk(lab: Lab, reader: Typist, of: guide.Guide) -> None:
    """Type every command of a guide, in its order: status and words must be as its table says."""
    for number, command in enumerate(of.commands()):
        run = of.run_of(command)
        if run.how == "not here":
            continue
        if run.how == "inside":
            said, status = lab.run("spark-1", "sh", "-c", command).stdout, 0
        else:
            verb, *words = shlex.split(command)
            assert verb == "invoke"
            done = reader.type(*words, *run.more)
            said, status = done.stdout + done.stderr, done.returncode
        assert status == run.status, f"command {number}, {command}, ended with {status}:\n{said}"
        assert run.says in said, f"command {number}, {command}, does not say {run.says!r}:\n{said}"
        sys.stderr.write(f"guide: {command[:70]}: as it should be\n")
