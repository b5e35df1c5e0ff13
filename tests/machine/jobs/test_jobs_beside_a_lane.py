"""Jobs of a start at their stage, and jobs beside a lane that serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.machine.conftest import Lab
from tests.machine.jobs.sparks import LANE, NODES, NONE, JobTypist, Sparks

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def serving(session_lab: Lab, typist: JobTypist) -> Iterator[Sparks]:
    """The lane, built and started once, for the tests beside it; each leaves it serving, or is the last."""
    session_lab.forget(NODES, LANE)
    refused = typist.json("start")
    assert refused.status == 1
    assert "invoke build --lane=J" in refused.failures()
    order = [event["step"] for event in typist.ok("build", "start").of("step-changed")]
    wanted = [
        "service:agent@spark-2",
        "service:agent@spark-1",
        "job:pair-ready@spark-1",
        "job:pair@spark-1",
        "service:server@spark-1",
    ]
    assert [step for step in order if step in wanted] == wanted
    yield Sparks(session_lab, typist)
    session_lab.forget(NODES, LANE)


def test_stages_are_started_in_their_order_and_once(serving: Sparks) -> None:
    sparks = serving
    assert sparks.typist.ok("build", "start").changed() == NONE
    assert sparks.typist.json("status").status == 0


def test_a_job_of_a_start_does_not_run_below_what_comes_after_it(serving: Sparks) -> None:
    sparks = serving
    sparks.path("spark-1", "pair/paired").unlink()
    said = sparks.typist.json("start")
    assert said.status == 1
    assert (
        "the job pair needs the lane stopped: sparkyard-J-server-0 runs, and comes after it"
        in said.failures()
    )
    assert "invoke restart --lane=J" in said.failures()
    sparks.typist.ok("restart")
    assert sparks.path("spark-1", "pair/paired").read_text() == "paired\n"


def test_a_job_that_needs_the_gpu_is_refused_beside_a_serving_lane(serving: Sparks) -> None:
    sparks = serving
    said = sparks.typist.json("build", "--set=heavy=true")
    assert said.status == 1
    assert "the job heavy needs the lane stopped: it needs the GPU, and lane J serves" in said.failures()
    assert sparks.typist.json("status").status == 0
    sparks.typist.ok("stop")
    sparks.typist.ok("build", "--set=heavy=true")
    assert sparks.sealed("heavy") == ["spark-1"]
