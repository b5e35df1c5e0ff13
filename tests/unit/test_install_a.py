"""The image of lane A: what its build refuses."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "recipes/a-tensorfold/image/install.py"
# not imported: a cache beside it would become part of the image's context
install = types.ModuleType("install_a")
exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), vars(install))


def test_a_package_that_changed_or_went_is_named_and_new_ones_are_welcome():
    before = {"torch": "2.9.0a0+1", "numpy": "1.26", "triton": "3.5"}
    after = {"torch": "2.9.0a0+1", "numpy": "2.0", "xgrammar": "0.2.8"}
    assert install.changes(before, before | {"xgrammar": "0.2.8"}) == []
    assert install.changes(before, after) == ["numpy: 1.26 became 2.0", "triton: 3.5 became nothing"]


def test_constraints_name_every_package_once():
    assert install.constraints({"b": "2", "a": "1+x"}) == "a==1+x\nb==2\n"


def test_it_lists_what_is_installed_here():
    done = subprocess.run([sys.executable, str(SCRIPT), "--list"], capture_output=True, text=True, check=True)
    assert "pytest==" in done.stdout
    assert dict(line.split("==", 1) for line in done.stdout.splitlines()) == install.installed()
