"""How long a container has been running, as its node tells it."""

from __future__ import annotations

import pytest

from sparkyard.run_time import run_time, run_time_command

NOW = "2026-11-30T10:00:00.500000000Z"


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (f"true 2026-11-30T08:00:00.25Z\n{NOW}\n", 7200.25),
        (f"true 2026-11-30T09:59:59.123456789Z\n{NOW}\n", 1.376544),
        (f"true 2026-11-30T11:59:59+02:00\n{NOW}\n", 1.5),
        (f"true 2026-11-30T10:00:01Z\n{NOW}\n", 0.0),  # a clock that was set back
        (f"false 2026-11-30T08:00:00Z\n{NOW}\n", 0.0),  # it has ended, in whatever time
        ("", 0.0),
        ("true yesterday\nnow\n", 0.0),
        (f"true 2026-11-30T08:00:00\n{NOW}\n", 0.0),
    ],
)
def test_it_is_read_by_the_clock_of_its_node(answer: str, seconds: float) -> None:
    assert run_time(answer) == pytest.approx(seconds, abs=1e-5)


def test_the_name_is_a_word_of_its_own() -> None:
    assert run_time_command("sparkyard-J-job-rows-0").words[-2:] == ("sh", "sparkyard-J-job-rows-0")
