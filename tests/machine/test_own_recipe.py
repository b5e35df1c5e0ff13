"""The small lane of docs/recipes.md, copied from the page as it stands: its whole life with no Python, and what is said of a slip in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

NODES = ("spark-1", "spark-2")
DATA = "home/.local/share/sparkyard/lanes/hello"
FILE = re.compile(r"^`(hello/[\w./]+)`\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SLIPS = {
    "timeout: 60\n\nservices": "timeout: soon\n\nservices",
    "nodes: workers": "nodes: worker",
    "lane.greeting": "lane.greting",
}


@pytest.fixture(scope="module")
def page() -> dict[str, str]:
    """Path → text of every file of the page."""
    files = dict(FILE.findall((PROJECT / "docs/recipes.md").read_text(encoding="utf-8")))
    assert files.keys() == {"hello/recipe.yml", "hello/image/Dockerfile", "hello/image/hello.py"}
    return files


@pytest.fixture
def typist(lab: Lab) -> Iterator[Typist]:
    """Somebody to type, with the inventory that `lab.up` wrote; nothing of the lane is there before or after."""
    forget(lab)
    yield Typist(lab.folder / "inventory")
    forget(lab)


def forget(lab: Lab) -> None:
    lab.forget(NODES)
    for node in NODES:
        lab.run(node, "sh", "-c", "docker images -q sparkyard/hello | sort -u | xargs -r docker rmi --force")


def write(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_page_s_lane_runs_with_no_python(
    lab: Lab, typist: Typist, page: dict[str, str], tmp_path: Path
) -> None:
    recipes = f"--recipes={write(page, tmp_path)}"
    assert "runs rank 1 of job pack on spark-2" in typist.type("render", "--lane=hello", recipes).stdout
    first = typist.ok("download", "build", "start", "verify", "--lane=hello", recipes, "--yes")
    assert [e["data"]["answered"] for e in first.events if e["data"].get("result") == "pass"]
    packed = [lab.own(node) / DATA / "packed" / f"rank{rank}.json" for rank, node in enumerate(NODES)]
    assert [path.read_text() == packed[0].read_text() for path in packed] == [True, True]
    assert "gemma" in packed[0].read_text()
    second = typist.ok("download", "build", "start", "--lane=hello", recipes)
    assert second.changed() == {"spark-1": 0, "spark-2": 0}
    assert typist.json("status", recipes).status == 0
    assert typist.ok("stop", recipes).changed() == {"spark-1": 1, "spark-2": 1}
    packed[1].unlink()
    healed = typist.ok("build", "--lane=hello", recipes, "--yes")
    assert healed.changed()["spark-2"] > 0
    assert packed[1].exists()


@pytest.mark.parametrize(("right", "wrong"), SLIPS.items(), ids=["type", "choice", "name"])
def test_a_slip_in_it_is_told_with_file_and_line(
    lab: Lab, typist: Typist, page: dict[str, str], tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in page["hello/recipe.yml"]
    broken = page["hello/recipe.yml"].replace(right, wrong)
    recipes = write({**page, "hello/recipe.yml": broken}, tmp_path)
    said = typist.json("download", "build", "start", "--lane=hello", f"--recipes={recipes}", "--yes")
    assert said.status == 2
    lines = [n for n, text in enumerate(broken.splitlines(), 1) if wrong.splitlines()[0] in text]
    told = [(event["data"]["file"], event["data"]["lineno"]) for event in said.of("finding")]
    assert (str(recipes / "hello/recipe.yml"), lines[0]) in told
    assert all(counts == {} for counts in said.nodes.values())
    for node in NODES:
        assert not (lab.own(node) / DATA).exists()


def test_all_slips_are_told_at_once(typist: Typist, page: dict[str, str], tmp_path: Path) -> None:
    broken = page["hello/recipe.yml"]
    for right, wrong in list(SLIPS.items())[:2]:
        broken = broken.replace(right, wrong)
    recipes = write({**page, "hello/recipe.yml": broken}, tmp_path)
    told = typist.type("start", "--lane=hello", f"--recipes={recipes}")
    assert told.returncode == 2
    shown = re.findall(r"my-recipes/hello/recipe\.yml(:\d+: .*)", (PROJECT / "docs/recipes.md").read_text())
    assert len(shown) == 2
    assert [line for line in shown if line not in told.stderr] == []
