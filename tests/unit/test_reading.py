"""``render`` and ``show`` as they are typed, on a machine where no program of a node could be run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.unit import offline

ROOT = Path(__file__).resolve().parents[2]


def typed(*line: str) -> subprocess.CompletedProcess[str]:
    return offline.typed(*line, "--lane=A", "--inventory=inventory/two-spark")


def test_render_prints_every_file_the_build_and_both_ranks():
    done = typed("render")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "docker build",
        "name sparkyard-A-rank-0",
        "name sparkyard-A-rank-1",
        "spark-2/files/home/",
        "TensorFold at <unlocked: fd2365042f56>",
    ):
        assert text in done.stdout
    assert "next: invoke lock --lane=A" in done.stdout


def test_render_in_json_has_each_file_as_an_event():
    events = [json.loads(line) for line in typed("render", "--json").stdout.splitlines()]
    files = {event["data"]["path"]: event["data"]["line"] for event in events if "line" in event["data"]}
    assert set(files) >= {"image.sh", "spark-1/rank.docker.sh", "spark-2/rank.docker.sh"}
    assert files["spark-2/rank.docker.sh"].startswith("# starts rank 1")


@pytest.mark.parametrize("flags", [[], ["--sources"]])
def test_show_is_for_people_and_for_machines(flags):
    done = typed("show", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    events = [json.loads(line) for line in typed("show", *flags, "--json").stdout.splitlines()]
    rows = [event["data"] for event in events if "table" in event["data"]]
    assert {row["table"] for row in rows} == {"sources" if flags else "show"}
    assert all(row["section"] for row in rows)
