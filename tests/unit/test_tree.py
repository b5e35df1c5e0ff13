"""The tree itself: nothing of one machine in it, scripts that parse, files of a size that can be read."""

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("scripts/setup", "scripts/demo", "scripts/test", ".ci/run")
FOREIGN = re.compile(
    "|".join(
        (
            r"(?<![\w.<>{}-])/(?:wor" + r"k|far" + r"m)/",
            r"py" + r"pi\.org/simple",
            r"files\.python" + r"hosted",
            r"deb\.deb" + r"ian\.org",
            r"registry\.np" + r"mjs",
            r"extra-in" + r"dex-url\s*=",
        )
    )
)


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    done = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    paths = [ROOT / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def test_the_tree_names_no_machine_and_no_index_host():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert found == []


def test_constraints_are_exact_versions_and_nothing_else():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9.-]+==[0-9][A-Za-z0-9.]*", line)] == []
    assert len(pins) > 40


def test_no_module_is_longer_than_can_be_read():
    modules = [p for p in tracked() if p.suffix == ".py" and p.is_relative_to(ROOT / "sparkyard")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}
    assert {path: length for path, length in lengths.items() if length > 350} == {}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_parse_and_can_be_run(name):
    path = ROOT / name
    assert path.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", str(path)], check=True, timeout=60)


@pytest.mark.parametrize(
    ("script", "words"), [("scripts/setup", ["--nonsense"]), ("scripts/demo", ["--nodes", "5"])]
)
def test_scripts_refuse_what_they_do_not_know_with_status_2(script, words):
    done = subprocess.run([ROOT / script, *words], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ")


def test_the_schema_ships_inside_the_package():
    schema = json.loads((ROOT / "sparkyard/schemas/events.schema.json").read_text())
    assert schema["properties"]["v"] == {"const": 1}
