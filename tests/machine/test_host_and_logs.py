"""Requirements of hosts and lines of logs, for real in the lab: looked at before a start, told after it, the lane goes on serving."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.machine.conftest import Lab
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

HOST = """
host:
  - {what: no kexec handover, read: /proc/cmdline, must: "'kho=off' in seen", why: test, source: test}
  - what: pages of the wanted size
    getconf: PAGESIZE
    must: seen | int == lane.pages
    why: pages are what the cache is made of
    next_step: "boot another kernel on {{ node.name }}"
    source: test
  - {what: no desktop, unit: display-manager.service, must: seen != 'active', why: test, source: test, blocks: false}
"""
LOG = r"""    log:
      - what: it listens on its port
        pattern: 'serving .* at http://[\d.]+:(?P<port>\d+)'
        must: found.port == lane.port + lane.shift
        message: "it listens on {{ found.port }}, expected {{ lane.port + lane.shift }}"
        source: test
"""
SETTINGS = """settings:
  pages: {default: 4096, about: test, source: {kind: chosen, why: test}}
  shift: {default: 0, about: test, source: {kind: chosen, why: test}}
"""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's lane with requirements and a line that its head's log must have."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PROJECT / "recipes" / "lab", folder / "asked")
    path = folder / "asked" / "recipe.yml"
    text = path.read_text().replace("lane: lab\n", "lane: asked\n").replace("settings:\n", SETTINGS, 1)
    text = text.replace("  server:\n    nodes: head\n", f"  server:\n    nodes: head\n{LOG}", 1)
    path.write_text(text + HOST)
    return folder


@pytest.fixture(scope="module")
def typist(session_lab: Lab) -> Typist:
    return Typist(session_lab.folder / "inventory")


def test_a_requirement_stops_a_start_and_a_line_of_the_log_does_not_stop_the_lane(
    lab: Lab, typist: Typist, recipes: Path
) -> None:
    line = ("--lane=asked", f"--recipes={recipes}", "--set", "engine=scripted")
    typist.ok("download", "build", *line, "--yes")
    refused = typist.json("start", *line, "--set", "pages=65536")
    assert refused.status == 1
    assert "getconf PAGESIZE is 4096; must be: seen | int == lane.pages" in refused.failures()
    assert {e["data"]["next"] for e in refused.of("step-failed")} == {
        f"boot another kernel on spark-{n}" for n in (1, 2)
    }
    assert lab.out("spark-1", "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""

    began = typist.ok("start", *line)
    (read,) = (e for e in began.of("step-ok") if e["step"].startswith("verify:log-"))
    assert read["data"]["found"] == [
        {"what": "it listens on its port", "result": "pass", "found": {"port": 8080}}
    ]
    record = Path(began.of("recap")[0]["data"]["record"])
    assert '"found"' in lab.out("spark-1", "cat", str(record / "events.jsonl"))

    running = lab.out("spark-1", "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane")
    for verb in ("start", "verify"):
        told = typist.json(verb, *line, "--set", "shift=1")
        assert told.status == 3
        assert "it listens on its port: it listens on 8080, expected 8081 (test)" in told.failures()
        assert "the lane serves, and was left as it is" in told.failures()
    assert lab.out("spark-1", "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == running
    typist.ok("verify", *line, "--only=verify")
    typist.ok("stop", *line)
