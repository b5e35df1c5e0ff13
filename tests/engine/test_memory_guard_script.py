"""scripts/node/memory.sh as it is run on nodes: in the guard of every command, beside a stand-in for the docker client."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard.actions_image import MakeImage
from sparkyard.command import Command
from sparkyard.errors import CouldNotCheck, Interrupted, StepFailed
from sparkyard.executors.made import make_image
from sparkyard.executors.memory import available_bytes, run_watched
from sparkyard.memory_guard import told_kept, told_low, watched
from sparkyard.patience import EndSignal
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings
from tests.machine.typed import until

NEVER, ALWAYS = 1, 2**60
"""Limits in bytes: no machine has less, and none has as much."""
DOCKER = """#!/bin/sh
echo "$*" >>"$DOCKER_SAID"
case $1 in
  container) cat "$DOCKER_SAID.id" ;;
  kill) [ ! -e "$DOCKER_SAID.deaf" ] || exec sleep 600
    cat "$DOCKER_SAID.refusal" >&2 2>/dev/null && exit 1; : >"$DOCKER_SAID.killed" ;;
  wait) until [ -e "$DOCKER_SAID.killed" ]; do sleep 0.05; done; echo 137 ;;
esac
"""


def command_lines():
    """Of every process of this machine; the words of each are parted by NULs."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((place / "cmdline").read_text(errors="replace"))
    return "\n".join(found)


@pytest.fixture
def shell(tmp_path):
    around = surroundings(tmp_path)
    yield around.shell("spark-1")
    around.close()


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """The docker client of the node: says what it was asked in ``said``."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_SAID", str(tmp_path / "said"))
    (tmp_path / "said.id").write_text("0123abcd\n")
    return tmp_path / "said"


@pytest.mark.parametrize("text", ["", "lots", "1\n2\n", "-1", "٣"])
def test_memory_of_which_nobody_can_tell_is_not_taken_for_none(text):
    assert available_bytes("2048\n", "spark-1") == 2 << 20
    with pytest.raises(CouldNotCheck, match="does not say in one number"):
        available_bytes(text, "spark-1")


def test_words_with_enough_memory_are_not_disturbed(shell):
    words = ("sh", "-c", 'cat; echo "$A" "$1" >&2; exit 3', "x", "it's")
    done = shell.run(watched(Command(words, (("A", "a b"),), stdin=b"for it\n"), NEVER))
    assert (done.status, done.out, done.err) == (3, b"for it\n", b"a b it's\n")


def test_words_with_too_little_are_killed_with_what_they_started(shell, tmp_path):
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    script = 'trap "" TERM; (trap "" TERM; while :; do sleep 0.05; done) & while :; do sleep 0.05; done'
    with pytest.raises(StepFailed) as failure:
        run_watched(shell, Command.of("sh", "-c", script, mark), ALWAYS, "the build", print)
    error = failure.value
    assert error.node == "spark-1"
    assert error.message.startswith("the build was killed by sparkyard before the node froze: ")
    assert "the limit is 1152921504.61 GB (limits.guard)" in error.message
    assert error.next_step.startswith("free memory on spark-1")
    until(lambda: mark not in command_lines())


def test_a_step_of_a_project_s_own_scripts_is_killed_and_named(tmp_path):
    around = surroundings(tmp_path)
    step = Step("image", "x", "spark-1", "x", lambda _: Verdict("ok"))
    action = MakeImage(
        "sparkyard/x:1", "x:1", "mark", {}, Command.of("true"),
        (Command.of("sleep", "600"), Command.of("true")),
        str(tmp_path / "made" / "x-1"), str(tmp_path / "made" / "x-1.json"), "x-",
        guard=ALWAYS,
    )  # fmt: skip
    with pytest.raises(StepFailed, match="step 1 of 2 that makes x:1 was killed by sparkyard") as failure:
        make_image(action, "spark-1", StepWorld(around, step, lambda _event: None, {}))
    assert failure.value.details == ("killed: sleep 600",)
    around.close()


def test_what_words_say_themselves_reaches_the_reader(shell):
    heard: list[str] = []
    done = run_watched(shell, Command.of("printf", "one\\ntwo"), NEVER, "the build", heard.append)
    assert (done.status, heard) == (0, ["one", "two"])


def test_a_container_of_ours_is_killed_by_its_id(shell, docker):
    heard: list[str] = []
    done = shell.run(watched(Command.of("docker", "wait", "lane-0"), ALWAYS, "lane-0"), on_line=heard.append)
    assert done.out == b"137\n"
    assert any(told_low(line) for line in heard)
    said = docker.read_text().splitlines()
    assert said[0].startswith("container inspect --format {{if index .Config.Labels")
    assert sorted(said[1:]) == ["kill --signal KILL 0123abcd", "wait lane-0"]


def test_a_container_that_is_not_ours_is_only_waited_for(shell, docker):
    docker.with_name("said.id").write_text("\n")
    docker.with_name("said.killed").touch()
    shell.run(watched(Command.of("docker", "wait", "lane-0"), ALWAYS, "lane-0"))
    assert docker.read_text().splitlines()[1:] == ["wait lane-0"]


def test_nothing_is_waited_for_unwatched_where_docker_does_not_say_which_container_it_is(shell, docker):
    docker.with_name("said.id").unlink()
    done = shell.run(watched(Command.of("docker", "wait", "lane-0"), ALWAYS, "lane-0"))
    assert done.status != 0
    assert b"said.id" in done.err  # what Docker said
    assert "wait lane-0" not in docker.read_text()


def test_a_docker_that_does_not_answer_is_told_and_asked_again(shell, docker):
    docker.with_name("said.deaf").touch()
    heard: list[str] = []

    def hear(line):
        heard.append(line)
        if [told_kept(each) for each in heard].count("Docker did not answer within 20 s") == 2:
            docker.with_name("said.deaf").unlink(missing_ok=True)

    command = watched(Command.of("docker", "wait", "lane-0"), ALWAYS, "lane-0")
    words = tuple(word.replace("--kill-after=2 20", "--kill-after=2 0.2") for word in command.words)
    assert words != command.words
    done = shell.run(replace(command, words=words), on_line=hear)
    assert done.out == b"137\n"


def test_a_container_that_docker_does_not_kill_is_tried_again_and_told(shell, docker):
    refusal = docker.with_name("said.refusal")
    refusal.write_text("no answer\nfrom the engine\n")
    heard: list[str] = []

    def hear(line):
        heard.append(line)
        if [told_kept(each) for each in heard].count("no answer from the engine") == 2:
            refusal.unlink(missing_ok=True)

    shell.run(watched(Command.of("docker", "wait", "lane-0"), ALWAYS, "lane-0"), on_line=hear)
    assert docker.read_text().count("kill --signal KILL 0123abcd") >= 3


def test_the_watching_ends_with_the_connection_and_kills_nothing(shell, docker):
    cancel = EndSignal(lambda: docker.exists() and "wait lane-0" in docker.read_text())
    with pytest.raises(Interrupted):
        shell.run(watched(Command.of("docker", "wait", "lane-0"), NEVER, "lane-0"), cancel=cancel)
    assert "kill" not in docker.read_text().split()
    until(lambda: "sparkyard-memory\0001\0lane-0\0" not in command_lines())
