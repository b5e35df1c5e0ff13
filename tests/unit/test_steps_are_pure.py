"""Steps, facts and what they stand on import nothing that acts, and nothing slow."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import sparkyard.steps

MODULES = [f"sparkyard.steps.{module.name}" for module in pkgutil.iter_modules(sparkyard.steps.__path__)]
ACTING = (
    "fabric",
    "docker",
    "paramiko",
    "huggingface_hub",
    "httpx2",
    "rich",
    "subprocess",
    "sparkyard.shell",
    "sparkyard.engine",
    "sparkyard.hub",
    "sparkyard.executors",
    "sparkyard.state",
)


@pytest.mark.parametrize("module", [*MODULES, "sparkyard.facts", "sparkyard.drift", "sparkyard.rendered"])
def test_a_module_of_steps_imports_nothing_that_acts(module):
    program = f"import sys, {module}; print(*[n for n in {ACTING!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
