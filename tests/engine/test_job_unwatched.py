"""What is told of a job that goes on and cannot be watched: which node to look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from sparkyard.diagnosis import UNWATCHED, Ending
from sparkyard.executors.job import _Run


def test_the_node_that_does_not_answer_is_named() -> None:
    """The step that runs a job stands on its first node, whichever does not answer."""
    run = cast("Any", SimpleNamespace(action=SimpleNamespace(job="rows")))
    error = _Run.unwatched(run, Ending("spark-2", "job-rows-1", f"{UNWATCHED}: gone"))
    assert error.node == "spark-2"
    assert error.message.startswith("job rows: job-rows-1 on spark-2 can no longer be watched: gone; ")
