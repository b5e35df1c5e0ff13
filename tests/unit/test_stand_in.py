"""Stand-ins: what of a lane is replaced and what is not, where they are allowed, and the tiny repositories behind them."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard import load
from sparkyard.errors import ConfigError, UsageError
from sparkyard.facts import FileFact
from sparkyard.lab import places, tiny_repos
from sparkyard.lab.hub_files import Repositories
from sparkyard.lab.inventory import stand_in_text
from sparkyard.model import Lane, Origin, Value
from sparkyard.render import render_lane
from sparkyard.stand_in import COMMITS, MARKER, refuse_outside, stand_in
from tests.unit import sample

REPLACED = {"image", "checkpoints", "ready", "limits"}
ROOT = Path(__file__).parents[2]
KIT = "bertholomus/DeepSeek-V4.1-Flash-TensorFold-TP4-4xGB10"
TWIN = ROOT / "tests" / "data" / "recipes" / "twin"


def twin() -> Lane:
    """A lane with the words of a real one, as the recipe has it."""
    lane = sample.lane()
    recipe = load.load_recipe(TWIN)
    values = {name: Value(setting.default, Origin("x")) for name, setting in recipe.settings.items()}
    return replace(lane, name="twin", recipe=recipe, recipe_folder=TWIN, settings=values)


def test_only_image_checkpoints_limits_and_times_are_replaced() -> None:
    real, made = twin().recipe.model_dump(), stand_in(twin()).recipe.model_dump()
    assert {name for name in real if real[name] != made[name]} == REPLACED


def test_every_word_behind_the_image_is_the_recipes_own() -> None:
    real, made = render_lane(twin(), {}), render_lane(stand_in(twin()), {})
    for before, after in zip(real.containers, made.containers, strict=True):
        assert own_words(before.words, real.image.reference) == own_words(after.words, made.image.reference)


def own_words(words: tuple[str, ...], image: str) -> list[str]:
    """Without labels, the image's name, and commits, which are the tiny repositories'."""
    kept = [word for word in words if not word.startswith("sparkyard.") and word != image]
    return [word if not word.startswith("type=bind") else word.partition(",target=")[2] for word in kept]


def test_checkpoints_keep_their_repository_and_files_and_the_length_of_their_pin() -> None:
    made = stand_in(twin()).recipe.checkpoints
    assert made["weights"].revision == COMMITS["Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw"]
    assert made["tables"].revision == COMMITS["deepseek-ai/DeepSeek-V4.1-Flash"][:8]
    assert made["tables"].files == twin().recipe.checkpoints["tables"].files
    assert made["weights"].bytes is None


def test_a_repository_without_a_stand_in_is_named() -> None:
    lane = twin()
    odd = lane.recipe.checkpoints["weights"].model_copy(update={"repo": "someone/else"})
    changed = lane.recipe.model_copy(update={"checkpoints": {"weights": odd}})
    with pytest.raises(UsageError, match="no stand-in for someone/else"):
        stand_in(replace(lane, recipe=changed))


def test_the_lab_s_own_lane_stays_as_it_is() -> None:
    lane = replace(twin(), recipe=load.load_recipe(ROOT / "recipes" / "lab"))
    assert stand_in(lane) is lane


@pytest.mark.parametrize("name", sorted(set(load.find_recipes(ROOT, [])) - {"lab"}))
def test_every_lane_renders_with_the_inventory_of_a_lab_that_is_large_enough(
    name: str, tmp_path: Path
) -> None:
    recipes = load.find_recipes(ROOT, [])
    count = load.load_recipe(recipes[name]).nodes.at_least
    place = places.Place(tmp_path / "lab", tmp_path / "cache")
    text = stand_in_text([places.NodePlace(number + 1, place) for number in range(count)])
    (tmp_path / "hosts.yml").write_text(text)
    lane = load.load_all(tmp_path, recipes, name, environ={}, sets=[])
    assert lane.build_folder == ROOT / "recipes" / "lab"
    assert render_lane(lane, {}).image.reference.startswith(f"sparkyard/{lane.recipe.image.name}:")


def test_stand_in_without_a_lab_is_refused_while_loading(tmp_path: Path) -> None:
    text = (ROOT / "inventory" / "stand-in" / "hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(text.replace("    lab: true\n", ""))
    with pytest.raises(ConfigError, match="stand_in: is only for a lab") as refused:
        load.load_inventory(tmp_path, environ={}, sets=[])
    assert refused.value.status == 2


def test_a_node_without_the_marker_is_refused() -> None:
    refuse_outside("spark-1", FileFact("regular"))
    with pytest.raises(UsageError, match=f"has no {MARKER}") as refused:
        refuse_outside("spark-2", FileFact("missing"))
    assert (refused.value.status, refused.value.node) == (2, "spark-2")


# --- tiny repositories ------------------------------------------------------------------------------------------------


def test_the_commits_are_those_of_the_lab_s_hub(tmp_path: Path) -> None:
    tiny_repos.write(tmp_path)
    hub = Repositories([tmp_path])
    told = {name: hub.snapshot(name) for name in tiny_repos.REPOSITORIES}
    assert {name: snapshot.commit for name, snapshot in told.items() if snapshot} == dict(COMMITS)
    made = {name: tiny_repos.commit(name, make()) for name, make in tiny_repos.REPOSITORIES.items()}
    assert made == dict(COMMITS)


def test_what_is_right_is_not_written_again(tmp_path: Path) -> None:
    tiny_repos.write(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    broken = files[0]
    broken.write_bytes(b"")
    strange = broken.with_name("strange")
    strange.write_bytes(b"")
    tiny_repos.write(tmp_path)
    changed = {path for path in files if path.stat().st_mtime_ns != before[path]}
    assert changed == {broken}
    assert broken.stat().st_size > 0
    assert not strange.exists()


@pytest.mark.parametrize("name", sorted(set(tiny_repos.REPOSITORIES) - {KIT}))
def test_indexes_and_headers_agree_with_the_files(name: str) -> None:
    files = tiny_repos.REPOSITORIES[name]()
    placed = json.loads(files[tiny_repos.INDEX])["weight_map"]
    shards = {path for path in files if path.endswith(".safetensors")}
    assert set(placed.values()) == shards
    for shard in shards:
        (length,) = struct.unpack("<Q", files[shard][:8])
        header = json.loads(files[shard][8 : 8 + length])
        ends = max(entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__")
        assert 8 + length + ends == len(files[shard])
        assert {key for key in header if key != "__metadata__"} == {
            t for t, where in placed.items() if where == shard
        }


def test_the_kernel_kit_is_what_its_manifest_says_and_the_stand_in_image_has_that_manifest() -> None:
    files = dict(tiny_repos.REPOSITORIES[KIT]())
    manifest = files.pop("kit/MANIFEST")
    assert (ROOT / "recipes/lab/stand-in/root/engine/kit/MANIFEST").read_bytes() == manifest
    rows = [line.split() for line in manifest.decode().splitlines() if not line.startswith("#")]
    assert len(rows) == 356
    kit = {path.removeprefix("kit/"): data for path, data in files.items() if path.startswith("kit/")}
    assert {row[-1]: (row[0], int(row[1])) for row in rows} == {
        path: (hashlib.sha256(data).hexdigest(), len(data)) for path, data in kit.items()
    }


def test_the_packs_have_the_published_numbers_of_files() -> None:
    files = {name: make() for name, make in tiny_repos.REPOSITORIES.items()}
    assert len(files["LibertAIDAI/DeepSeek-V4.1-Flash-1017-EXL3-2.9bpw"]) == 43
    assert len(files["Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw"]) == 48
    release = files["deepseek-ai/DeepSeek-V4.1-Flash-1017"]
    tables = [t for t in json.loads(release[tiny_repos.INDEX])["weight_map"] if ".engram.embed." in t]
    assert sorted(tables) == [
        f"layers.{n}.engram.embed.{part}" for n in (1, 14) for part in ("scale", "weight")
    ]
    assert "encoding/encoding.py" in release
