"""The memory guard: its words, what is read of what it says, and what is made of it for people."""

import re

import pytest

from sparkyard import diagnosis, memory_guard
from sparkyard.command import Command
from sparkyard.diagnosis import Ending

GIB = 2**30


def test_a_command_is_watched_with_everything_that_belongs_to_it():
    command = Command(("docker", "build", "-"), (("A", "1"),), b"tar", ("hunter2",), 7.0)
    made = memory_guard.watched(command, 5 * GIB)
    script = made.words[2]
    assert made.words == (
        "sh", "-c", script, "sparkyard-memory", str(5 * 2**20), "", "docker", "build", "-",
    )  # fmt: skip
    assert "/proc/meminfo" in script
    assert (made.env, made.stdin, made.secrets, made.timeout) == (
        command.env,
        command.stdin,
        command.secrets,
        command.timeout,
    )


def test_a_limit_that_is_no_whole_kib_is_rounded_up_and_never_none():
    assert memory_guard.watched(Command.of("true"), 1, "lane-0").words[4:] == ("1", "lane-0", "true")


@pytest.mark.parametrize(
    ("line", "low", "kept"),
    [
        ("sparkyard-memory low 4194304", 4 * GIB, None),
        ("sparkyard-memory low 4194304\r", 4 * GIB, None),
        ("sparkyard-memory low 0", 0, None),
        ("sparkyard-memory kept Cannot connect to the Docker daemon ", None, "Cannot connect to the Docker daemon"),
        ("sparkyard-memory kept ", None, ""),
        ("said sparkyard-memory low 4194304", None, None),
        ("sparkyard-memory low 4194304 more", None, None),
        ("sparkyard-memory low -1", None, None),
        ("", None, None),
        ("137", None, None),
    ],
)  # fmt: skip
def test_lines_of_the_guard_are_told_from_all_others(line, low, kept):
    assert (memory_guard.told_low(line), memory_guard.told_kept(line)) == (low, kept)


def test_what_was_killed_is_the_first_cause_and_says_how_much_was_there():
    blamed = Ending("spark-1", "lane-0", "ended with exit code 1", finished="2026-01-01T00:00:00Z")
    low = memory_guard.killed(int(4.25 * GIB), 5 * GIB)
    killed = Ending("spark-2", "lane-1", low, finished="2026-01-01T00:00:09Z", exit_code=137, starved=True)
    text, next_step, details = diagnosis.report([blamed, killed], [])
    assert text == (
        "the rank on spark-2 (container lane-1) was killed by sparkyard before the node froze: "
        "4.56 GB of memory were available, the limit is 5.37 GB (limits.guard)"
    )
    assert re.match(r"free memory on spark-2 \(ps -eo .*then type the same line again$", next_step)
    assert "the rank on spark-1 (container lane-0) ended with exit code 1" in details


def test_a_container_that_docker_did_not_kill_is_told_with_docker_s_words():
    said = memory_guard.not_killed(GIB, 2 * GIB, "Cannot connect to the Docker daemon")
    assert said.startswith("could not be killed: Cannot connect to the Docker daemon; 1.07 GB")
    assert "Docker gave no reason" in memory_guard.not_killed(GIB, 2 * GIB, "")
