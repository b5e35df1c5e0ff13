"""The kit's recipe: its settings file word for word, and what must hold of it."""

from pathlib import Path

import pytest

from sparkyard import load
from sparkyard.errors import ConfigError
from sparkyard.lock import Lock
from sparkyard.model import Manifest, RemoteFile
from sparkyard.render import render_lane

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "kit.env"
WEIGHTS, ENGRAM = "a" * 40, "b" * 40


def lane(name: str = "kit", *sets: str):
    recipes = load.find_recipes(ROOT, [])
    return load.load_all(ROOT / "inventory" / "two-spark", recipes, name, environ={}, sets=sets)


def rendered(*sets: str):
    kit = lane("kit", *sets)
    shards = [RemoteFile(f"model-{n:05d}-of-00039.safetensors", 1) for n in range(1, 40)]
    manifests = {
        "weights": Manifest(
            kit.checkpoints["weights"].repo, WEIGHTS, (RemoteFile("config.json", 1), *shards)
        ),
        "engram": Manifest(kit.checkpoints["engram"].repo, ENGRAM, (RemoteFile("config.json", 1),)),
    }
    return render_lane(kit, manifests, Lock())


def test_its_settings_file_is_this():
    (file,) = rendered("api_key=k-0123456789").files
    assert (file.node, file.mode, file.secret) == ("spark-1", 0o600, True)
    assert file.content == GOLDEN.read_text()


def test_what_the_worker_alone_knows_is_told_by_the_worker():
    (file,) = rendered().files
    lines = dict(line.split("=", 1) for line in file.content.splitlines())
    theirs = {name for name, value in lines.items() if "@spark-2>" in value}
    assert theirs == {
        "WORKER_HOME",
        "WORKER_GID",
        "WORKER_MODEL_DIR",
        "WORKER_ENGRAM_DIR",
        "WORKER_VLLM_CACHE",
    }
    assert "zurih" not in file.content


def test_the_same_files_as_lane_a_lie_in_the_same_folder():
    kit, a = lane("kit"), lane("A")
    pins = {(spec.repo, spec.revision) for spec in a.checkpoints.values()}
    assert {(spec.repo, spec.revision) for spec in kit.checkpoints.values()} <= pins


def test_the_key_is_always_there():
    assert rendered().ready.api_key == "<generated: api_key>"
    assert rendered("api_key=k-0123456789").ready.api_key == "k-0123456789"


def test_a_changed_setting_is_another_wanted_state():
    first, second = (rendered(*sets).containers[0].hash for sets in ((), ("context=300000",)))
    assert first != second


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("port=29521",), "lanes.kit.port: 29521, the port of API, is the port of rendezvous too"),
        (("chunk=1300",), "chunk (1300) must be at least 256 more than long_prefill (1280)"),
        (("chunk=1024", "long_prefill=512"), "with vision a chunk of 1024 tokens cannot hold an image"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(sets, says):
    with pytest.raises(ConfigError) as refused:
        rendered(*sets)
    assert says in str(refused.value)
