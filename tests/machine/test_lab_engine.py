"""The lab's engine in the lab: two ranks of the real one, and the scripted one that fails on demand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.machine.conftest import Lab

pytestmark = pytest.mark.machine

RECIPE = Path(__file__).parents[2] / "recipes" / "lab"
URL = "http://127.0.0.1:8000"
MEET = ("--rendezvous", "198.18.1.1:29500")
IMAGE = "lab-engine-test"


@pytest.fixture(scope="module")
def engine(session_lab: Lab) -> Lab:
    """The engine's image on both nodes, the model on spark-1."""
    words = ("docker", "build", "-q", "-t", IMAGE, "-f", f"{RECIPE}/Dockerfile", f"{RECIPE}/engine")
    session_lab.run("spark-1", *words)
    session_lab.ship(IMAGE)
    models = session_lab.own("spark-1") / "models"
    models.mkdir(exist_ok=True)
    cached = next(
        Path(session_lab.run("spark-1", "printenv", "SPARKYARD_LAB_CACHE").stdout.strip()).rglob("*.gguf")
    )
    if not (models / cached.name).exists():
        (models / cached.name).symlink_to(cached)
    return session_lab


@pytest.fixture(autouse=True)
def no_containers(engine: Lab) -> Iterator[None]:
    yield
    for node in ("spark-1", "spark-2"):
        engine.away(node, "")


def start(lab: Lab, node: str, *words: str, options: tuple[str, ...] = ()) -> None:
    mount = ("-v", f"{lab.folder}/self/models:/models:ro", "-v", "/var/cache:/var/cache:ro")
    lab.run(
        node,
        "docker",
        "run",
        "-d",
        "--name",
        "rank",
        "--network",
        "host",
        *mount,
        *options,
        IMAGE,
        "python3",
        *words,
    )


def logs(lab: Lab, node: str) -> str:
    done = lab.run(node, "docker", "logs", "rank")
    return done.stdout + done.stderr


def status(lab: Lab, node: str) -> str:
    return lab.out(node, "docker", "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", "rank")


def wait_for(what: Callable[[], bool], tell: Callable[[], str]) -> None:
    deadline = time.monotonic() + 180
    while not what():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.1)


def healthy(lab: Lab) -> bool:
    return lab.run("spark-1", "busybox", "wget", "-qO-", f"{URL}/health", check=False).returncode == 0


def chat(lab: Lab, **more: object) -> dict[str, object]:
    ask = {
        "messages": [{"role": "user", "content": "The capital of France is"}],
        "max_tokens": 8,
        "temperature": 0,
        **more,
    }
    words = (
        "busybox",
        "wget",
        "-qO-",
        "--header",
        "Content-Type: application/json",
        "--post-data",
        json.dumps(ask),
    )
    answer: dict[str, object] = json.loads(lab.out("spark-1", *words, f"{URL}/v1/chat/completions"))
    return answer


def both_ranks(lab: Lab) -> None:
    start(lab, "spark-2", "follower.py", "--rank", "1", "--ranks", "2", *MEET)
    start(lab, "spark-1", "server.py", "--model", "/models", "--alias", "gemma3-270m", "--ranks", "2", *MEET)


def test_the_real_engine_answers_across_two_nodes(engine: Lab) -> None:
    both_ranks(engine)
    wait_for(lambda: healthy(engine), lambda: logs(engine, "spark-1"))
    answer = chat(engine, stop=["\n"])
    assert "Paris" in json.dumps(answer["choices"])
    assert "all 2 ranks are here" in logs(engine, "spark-1")
    assert "joined rank 0" in logs(engine, "spark-2")
    engine.run("spark-2", "docker", "kill", "rank")
    wait_for(lambda: status(engine, "spark-1") == "exited 3", lambda: logs(engine, "spark-1"))
    assert "FATAL rank 1" in logs(engine, "spark-1")


def test_rank_0_waits_for_the_others_and_a_follower_ends_with_it(engine: Lab) -> None:
    start(engine, "spark-1", "server.py", "--model", "/models", "--ranks", "2", *MEET)
    wait_for(lambda: "waiting for 1 more" in logs(engine, "spark-1"), lambda: logs(engine, "spark-1"))
    assert not healthy(engine)
    start(engine, "spark-2", "follower.py", "--rank", "1", "--ranks", "2", *MEET)
    wait_for(lambda: "joined rank 0" in logs(engine, "spark-2"), lambda: logs(engine, "spark-2"))
    engine.run("spark-1", "docker", "kill", "rank")
    wait_for(lambda: status(engine, "spark-2") == "exited 3", lambda: logs(engine, "spark-2"))
    assert "FATAL rank 0" in logs(engine, "spark-2")


def test_a_stopped_engine_ends_at_once(engine: Lab) -> None:
    start(engine, "spark-1", "server.py", "--model", "/models", "--ranks", "2", *MEET)
    wait_for(lambda: "waiting for 1 more" in logs(engine, "spark-1"), lambda: logs(engine, "spark-1"))
    engine.run("spark-1", "docker", "stop", "--time", "120", "rank")
    assert status(engine, "spark-1") == "exited 0"


def test_wrong_ranks_are_refused(engine: Lab) -> None:
    start(engine, "spark-1", "server.py", "--model", "/models", "--ranks", "2", *MEET)
    start(engine, "spark-2", "follower.py", "--rank", "1", "--ranks", "4", *MEET)
    wait_for(lambda: status(engine, "spark-2") == "exited 2", lambda: logs(engine, "spark-2"))
    assert "was started for 4 ranks" in logs(engine, "spark-2")


def test_the_scripted_engine_takes_its_faults_from_the_environment(engine: Lab) -> None:
    faults = "--die-after 1 --exit-code 7 --boot-seconds 300 --last-words 'CUDA error: out of memory'"
    start(engine, "spark-1", "scripted.py", options=("-e", f"SCRIPT={faults}"))
    wait_for(lambda: status(engine, "spark-1") == "exited 7", lambda: logs(engine, "spark-1"))
    assert "out of memory" in logs(engine, "spark-1")


def test_the_scripted_engine_obeys_schemas_and_tools(engine: Lab) -> None:
    start(engine, "spark-1", "scripted.py")
    wait_for(lambda: healthy(engine), lambda: logs(engine, "spark-1"))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert '{\\"n\\":1}' in json.dumps(chat(engine, response_format=form)["choices"])
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    assert '"look"' in json.dumps(chat(engine, tools=[tool], tool_choice="required")["choices"])


def test_healthy_without_tokens(engine: Lab) -> None:
    start(engine, "spark-1", "scripted.py", "--no-tokens")
    wait_for(lambda: healthy(engine), lambda: logs(engine, "spark-1"))
    assert '"content": ""' in json.dumps(chat(engine)["choices"])
