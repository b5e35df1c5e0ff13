"""Two simulated Sparks with a lane that has jobs, and somebody to type, as tests of jobs look at them."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.machine.conftest import Lab
from tests.machine.typed import LIMIT, PROJECT, Said, Typist, until

NODES = ("spark-1", "spark-2")
LANE = "home/.local/share/sparkyard/lanes/J"
TOKEN = "t0ken-that-nobody-may-read"
NONE = {"spark-1": 0, "spark-2": 0}


@dataclass(frozen=True)
class JobTypist(Typist):
    """Types lines for lane J, whose recipe lies with the tests."""

    recipes: Path = PROJECT / "tests" / "data" / "recipes"

    def words(self, *line: str) -> list[str]:
        return [*super().words(*line), "--lane=J", f"--recipes={self.recipes}"]

    def limited(self, folder: Path, seconds: int) -> JobTypist:
        """The same person with another ``timeout`` of the rows, in recipes of their own. Their image is made of a folder without the recipe,
        so that another limit makes no other image, and with it no other job.
        """
        shutil.copytree(self.recipes / "jobs", folder / "jobs" / "image")
        recipe = (folder / "jobs" / "image" / "recipe.yml").rename(folder / "jobs" / "recipe.yml")
        text = recipe.read_text().replace(
            "build: {", "build: {dockerfile: image/Dockerfile, context: image, "
        )
        text, count = re.subn(r"timeout: \d+\n    grace", f"timeout: {seconds}\n    grace", text)
        assert count == 1
        recipe.write_text(text)
        return replace(self, recipes=folder)


@dataclass(frozen=True)
class Sparks:
    """Two Sparks and somebody to type, as tests of jobs look at them."""

    lab: Lab
    typist: JobTypist

    def path(self, node: str, name: str) -> Path:
        """A file in the lane's own folder, as seen from outside."""
        return self.lab.own(node) / LANE / name

    def rows(self, rank: int) -> Path:
        return self.path(NODES[rank], f"rows/rows-{rank}.bin")

    def seal(self, node: str, job: str = "rows") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path(node, f"jobs/{job}.json").read_text())
        return found

    def sealed(self, job: str = "rows") -> list[str]:
        return [node for node in NODES if self.path(node, f"jobs/{job}.json").exists()]

    def containers(self, node: str, *more: str) -> list[str]:
        """Names of the containers of jobs, running or not."""
        words = ("docker", "ps", "--all", "--filter", "label=sparkyard.job", "--format", "{{.Names}}", *more)
        return self.lab.out(node, *words).split()

    def go(self, *nodes: str) -> None:
        """Let jobs that wait go on."""
        for node in nodes or NODES:
            (self.path(node, "rows") / "go").touch()

    def let_go(self) -> None:
        """The next ones wait again."""
        for node in NODES:
            (self.path(node, "rows") / "go").unlink(missing_ok=True)

    def waiting(self) -> bool:
        """Whether both ranks of a job wait for ``go``."""
        return all(self.rows(rank).exists() for rank in (0, 1))

    def killed(self, *line: str) -> None:
        """Type a build whose ranks wait, and kill sparkyard itself while they do."""
        process = self.typist.start("build", "--set=fault=wait", *line, "--json", start_new_session=True)
        until(self.waiting)
        process.kill()
        process.communicate(timeout=LIMIT)

    def log(self, said: Said, name: str) -> str:
        """A log in the record of a run."""
        (recap,) = said.of("recap")
        return self.lab.out("spark-1", "cat", f"{recap['data']['record']}/logs/{name}")
