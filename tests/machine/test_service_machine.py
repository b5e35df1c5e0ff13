"""Starting, watching and stopping containers of a real Docker engine."""

import re
import stat
import threading

import pytest

from sparkyard.actions import StartContainer, StopContainer, WaitReady
from sparkyard.command import Command
from sparkyard.errors import Interrupted, StepFailed
from sparkyard.executors.ready import wait_ready
from sparkyard.executors.service import start_container, stop_container
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings
from tests.machine.docker_engine import running
from tests.machine.typed import until
from tests.ports import free_port

pytestmark = pytest.mark.machine
IMAGE = "sparkyard-test:1"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with running(tmp_path_factory.mktemp("engine")) as docker:
        docker.add_image(IMAGE)
        yield docker


@pytest.fixture
def place(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    around = surroundings(tmp_path)
    yield around
    around.close()
    engine.away()


@pytest.fixture
def said():
    return []


@pytest.fixture
def world(place, said):
    step = Step("service", "x", "spark-1", "x", lambda _: Verdict("ok"))
    return StepWorld(place, step, lambda event: said.append(event.message), {})


def start(script, name="lane-0", label="sparkyard.lane=lab", image=IMAGE, options=(), **gate):
    words = (
        "docker",
        "run",
        "--detach",
        "--pull",
        "never",
        "--network",
        "host",
        "--name",
        name,
        "--label",
        label,
    )
    return StartContainer(name, Command((*words, *options, image, "/bin/sh", "-c", script)), **gate)


def logged(place, name="spark-1-lane-0.log"):
    return (place.run_folder / "logs" / name).read_text()


def when_heard(world, do, *lines):
    """Do something once all these lines have come from watched containers: then every one of them is known to be there."""

    def heard():
        return {line for _, _, kept in world.watches.last_lines(100) for line in kept} >= set(lines)

    def wait():
        until(heard)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_gate_in_the_log(world, place, said):
    action = start(
        "echo boot; echo serving at 8000; exec sleep 60", gate_log=r"serving at \d+", gate_timeout=300
    )
    start_container(action, "spark-1", world)
    assert re.fullmatch(r"log line /serving at \\d\+/ seen after [\d.]+ s", said[-1])
    assert re.search(r"^\S+Z boot\n\S+Z serving at 8000$", logged(place), re.MULTILINE)
    assert stat.S_IMODE((place.run_folder / "logs" / "spark-1-lane-0.log").stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_gate_that_is_a_port(world, said, host):
    port = free_port()
    action = start(f"exec httpd -f -p 127.0.0.1:{port}", gate_port=(host, port), gate_timeout=300)
    start_container(action, "spark-1", world)
    assert said[-1].startswith(f"port {port} is open after ")


def test_a_gate_for_all_addresses(world):
    port = free_port()
    start_container(
        start(f"exec httpd -f -p {port}", gate_port=("127.0.0.1", port), gate_timeout=300), "spark-1", world
    )


def test_a_port_of_another_address_is_not_the_gate(world):
    port = free_port()
    serve = f"echo up; exec httpd -f -p 127.0.0.1:{port}"
    start_container(start(serve, "lane-1", gate_port=("127.0.0.1", port), gate_timeout=300), "spark-1", world)
    when_heard(world, lambda: None, "up").join()
    action = start("exec sleep 60", gate_port=("127.0.0.2", port), gate_timeout=1.0)
    with pytest.raises(
        StepFailed, match=rf"expected a socket that listens on 127\.0\.0\.2:{port}"
    ) as failure:
        start_container(action, "spark-1", world)
    assert "  up" in failure.value.details


def test_a_gate_that_never_comes_leaves_no_waiting_behind(world, engine):
    port = free_port()
    with pytest.raises(StepFailed, match="no sign of lane-0 within 0"):
        start_container(
            start("exec sleep 60", gate_port=("127.0.0.1", port), gate_timeout=0.5), "spark-1", world
        )
    until(lambda: f":{port:04X}" not in engine.clients())


def test_a_rank_that_dies_is_named_with_its_last_lines(world):
    script = "for i in $(seq 30); do echo line $i; done; echo DistStoreError; exit 7"
    with pytest.raises(StepFailed) as failure:
        start_container(start(script, gate_log="never", gate_timeout=300), "spark-1", world)
    error = failure.value
    assert (error.node, error.message) == (
        "spark-1",
        "the rank on spark-1 (container lane-0) ended with exit code 7",
    )
    assert error.details[-2:] != ()
    assert "  line 30" in error.details
    assert "  line 11" not in error.details
    assert any("ORD-01" in line for line in error.details)


def test_a_worker_that_dies_ends_the_wait_for_the_head(world, engine):
    start_container(start("echo worker here; exec sleep 60", "lane-1"), "spark-2", world)
    killer = when_heard(world, lambda: engine.docker("kill", "lane-1"), "worker here", "head waits")
    with pytest.raises(StepFailed) as failure:
        start_container(
            start("echo head waits; exec sleep 60", gate_log="never", gate_timeout=300), "spark-1", world
        )
    killer.join()
    error = failure.value
    assert (error.node, error.message) == (
        "spark-2",
        "the rank on spark-2 (container lane-1) ended with exit code 137 (SIGKILL)",
    )
    assert error.details[:2] == ("last lines of spark-2 (lane-1):", "  worker here")
    assert error.details[-2:] == ("last lines of spark-1 (lane-0), still running:", "  head waits")


def test_lines_of_both_outputs_are_shown_in_the_order_of_their_times(world, place):
    script = "for i in $(seq 9); do echo out $i; echo err $i >&2; sleep 0.01; done; exit 1"
    with pytest.raises(StepFailed) as failure:
        start_container(start(script, gate_log="never", gate_timeout=300), "spark-1", world)
    shown = [line.strip() for line in failure.value.details if re.match(r"  (out|err) ", line)]
    assert shown == [line.split(" ", 1)[1] for line in sorted(logged(place).splitlines())]
    assert len(shown) == 18


def test_an_engine_that_ends_with_status_0_failed(world):  # T55
    with pytest.raises(StepFailed, match="ended by itself"):
        start_container(start("echo EngineDeadError", gate_log="never", gate_timeout=300), "spark-1", world)


def test_a_rank_that_somebody_removes(world, engine):
    start_container(start("exec sleep 60"), "spark-1", world)
    engine.docker("rm", "--force", "lane-0")
    with pytest.raises(StepFailed, match=r"is gone: somebody removed it|SIGKILL"):
        wait_ready(WaitReady("http://127.0.0.1:9", "/health", {}, 300, 0), "spark-1", world)


def test_silence_of_all_ranks(world):
    first = start("echo once; exec sleep 60", "lane-1", gate_log="once", gate_timeout=300)
    start_container(first, "spark-2", world)
    with pytest.raises(StepFailed, match=r"no rank wrote a log line for 0\.5 s") as failure:
        start_container(
            start("exec sleep 60", gate_log="never", gate_timeout=300, log_silence=0.5),
            "spark-1",
            world,
        )
    assert "  once" in failure.value.details


def test_readiness_watches_ranks_that_an_earlier_run_started(world, engine):
    engine.docker(
        "run", "--detach", "--network", "host", "--name", "lane-9", IMAGE, "/bin/sh", "-c", "exit 5"
    )
    action = WaitReady("http://127.0.0.1:9", "/health", {}, 300, 0, containers=(("spark-2", "lane-9"),))
    with pytest.raises(
        StepFailed, match=r"the rank on spark-2 \(container lane-9\) ended with exit code 5"
    ) as failure:
        wait_ready(action, "spark-1", world)
    assert failure.value.node == "spark-2"


def test_an_interrupt_while_waiting_leaves_the_container(world, place, engine):
    stopper = when_heard(world, place.stop.set, "on")
    with pytest.raises(Interrupted):
        start_container(start("echo on; exec sleep 60", gate_log="never", gate_timeout=300), "spark-1", world)
    stopper.join()
    assert engine.containers() == ["lane-0"]


def test_a_name_that_is_taken(world, engine):  # T59
    engine.docker("create", "--name", "lane-0", IMAGE, "/bin/true")
    with pytest.raises(
        StepFailed, match=r"the name lane-0 is taken by another container \(docker run: status 125\)"
    ):
        start_container(start("exec sleep 60"), "spark-1", world)
    assert engine.containers() == ["lane-0"]


def test_an_image_that_is_not_there(world, engine):
    with pytest.raises(StepFailed, match="the image of lane-0 is not on this node"):
        start_container(start("exec sleep 60", image="gone:1"), "spark-1", world)
    assert engine.containers() == []


def test_a_program_that_is_not_in_the_image(world, engine):
    action = StartContainer(
        "lane-0",
        Command.of(
            "docker",
            "run",
            "--detach",
            "--network",
            "host",
            "--name",
            "lane-0",
            "--label",
            "sparkyard.lane=lab",
            IMAGE,
            "serve",
        ),
    )
    with pytest.raises(StepFailed, match="has no such program") as failure:
        start_container(action, "spark-1", world)
    assert "removed the container lane-0 that it left" in failure.value.details
    assert engine.containers() == []


def test_what_docker_run_left_without_our_label_stays(world, engine):
    action = StartContainer(
        "lane-0",
        Command.of("docker", "run", "--detach", "--network", "host", "--name", "lane-0", IMAGE, "serve"),
    )
    with pytest.raises(StepFailed):
        start_container(action, "spark-1", world)
    assert engine.containers() == ["lane-0"]


def test_stop_saves_the_log_and_can_be_done_twice(world, place, engine, said):
    script = "trap 'echo goodbye; exit 0' TERM; echo hello; while true; do sleep 0.1; done"
    start_container(start(script, gate_log="hello", gate_timeout=300), "spark-1", world)
    stop_container(StopContainer("lane-0", 60), "spark-1", world)
    assert engine.containers() == []
    assert re.search(r"Z hello\n.*Z goodbye\n", logged(place))
    assert '"ExitCode":0' in logged(place, "spark-1-lane-0.state.json")
    stop_container(StopContainer("lane-0", 60), "spark-1", world)
    assert not any("killed" in line for line in said)
    world.watches.demand_all_alive()


def test_a_container_that_ignores_term_is_killed_and_that_is_said(world, engine, said):  # REV-08
    start_container(
        start("trap '' TERM; echo on; while true; do sleep 0.1; done", gate_log="on", gate_timeout=300),
        "spark-1",
        world,
    )
    stop_container(StopContainer("lane-0", 1), "spark-1", world)
    assert said[-1] == "lane-0 did not end within 1 s and was killed"
    assert engine.containers() == []


def test_a_container_without_our_label_is_left_alone(world, engine):  # T88
    engine.docker("run", "--detach", "--network", "host", "--name", "lane-0", IMAGE, "/bin/sleep", "60")
    with pytest.raises(StepFailed, match=r"has no label sparkyard\.lane: it is not sparkyard's"):
        stop_container(StopContainer("lane-0", 1), "spark-1", world)
    assert engine.docker("inspect", "--format", "{{.State.Running}}", "lane-0") == "true"


def test_a_dead_and_a_never_started_container_are_stopped_too(world, engine):
    for name, verb in (("lane-0", "create"), ("lane-1", "run")):
        engine.docker(
            verb, "--network", "host", "--name", name, "--label", "sparkyard.lane=lab", IMAGE, "/bin/true"
        )
        stop_container(StopContainer(name, 1), "spark-1", world)
    assert engine.containers() == []


def test_closing_ends_every_watching_process_and_no_container(world, place, engine):
    start_container(start("echo on; exec sleep 60", gate_log="on", gate_timeout=300), "spark-1", world)
    place.close()
    until(lambda: not re.search(r"docker (logs|wait) .*lane-0", engine.clients()))
    assert engine.containers() == ["lane-0"]
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith(("logs", "wait"))])
