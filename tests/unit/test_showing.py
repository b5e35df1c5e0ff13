"""What ``invoke show`` says of a lane: the golden text at 80 columns, every source once, changes named, secrets masked.

After a wanted change: ``SPARKYARD_GOLDEN=write pytest tests/unit/test_showing.py``, and read the difference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkyard import provenance, showing, showing_jobs
from sparkyard.command import MASK
from sparkyard.load import draft_all, find_recipes, load_all, load_recipe
from sparkyard.lock import Lock, Locked, LockedGit, LockedImage
from sparkyard.model import Lane, Manifest, RemoteFile
from sparkyard.recipe import PatchSpec
from sparkyard.render import render_lane
from sparkyard.rendered_job import RenderedRoom
from tests.unit.offline import shown as text

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent
KEY = "sk-sixteen-or-more"


def lane(*sets: str, name: str = "A") -> Lane:
    recipes = find_recipes(ROOT, [])
    return load_all(ROOT / "inventory" / "two-spark", recipes, name, environ={}, sets=list(sets))


def rows(sections: tuple[showing.Section, ...], title: str) -> dict[str, dict[str, Any]]:
    (found,) = [section for section in sections if section.title.startswith(title)]
    return {row["name"]: row for row in found.rows}


def shown(here: Lane, lock: Lock | None = None, parity: str = "") -> tuple[showing.Section, ...]:
    lock = lock or Lock()
    return showing.sections(here, render_lane(here, lock.manifests, lock), lock, parity)


@pytest.mark.parametrize(
    ("name", "make"),
    [("show-a.txt", shown), ("sources-a.txt", showing.sources)],
)
def test_the_text_at_80_columns_is_as_it_was_reviewed(name, make):
    found = text(make(lane()))
    if os.environ.get("SPARKYARD_GOLDEN") == "write":
        (GOLDEN / name).write_text(found)
    assert found == (GOLDEN / name).read_text()
    assert max(map(len, found.splitlines())) <= 80


@pytest.mark.parametrize("name", ["A", "kit", "lab"])
def test_sources_list_every_value_once_with_kind_and_citation(name):
    here = lane(name=name)
    found = [row for section in showing.sources(here) for row in section.rows]
    keys = [row["key"] for row in found]
    assert len(set(keys)) == len(keys)
    assert set(keys) >= {value.key for value in provenance.pinned(here.recipe)}
    assert all(row["kind"] and row["from"] for row in found)
    assert all(
        section.title == f"{row['kind']}: {row['from']}"
        for section in showing.sources(here)
        for row in section.rows
    )


@pytest.mark.parametrize("name", ["A", "kit", "lab"])
def test_every_lane_can_be_shown(name):
    titles = [section.title for section in shown(lane(name=name))]
    assert titles[:3] == ["what runs where", "pins", "settings"]
    assert ("exceptions to sparkyard's own rules" in titles) == (name == "kit")


def test_a_changed_setting_says_who_set_it_and_a_secret_stays_one():
    settings = rows(shown(lane("context=65536", f"api_key={KEY}")), "settings")
    assert settings["context"]["source"] == "set by --set"
    assert settings["parallel"]["source"] == "published"
    assert settings["api_key"]["value"] == MASK
    assert KEY not in text(shown(lane(f"api_key={KEY}")))


def test_the_other_weights_have_pins_of_their_own():
    pins = rows(shown(lane("weights=mia", "model_name=DeepSeek-V4.1-Flash")), "pins")
    assert (
        pins["weights-mia"]["value"]
        == "Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw @ 64ba41b6c916a587db06eae2e19b7845f7be6e6b"
    )
    assert "weights-1017" not in pins


def test_what_is_locked_is_shown_in_full():
    here = lane()
    commit, digest = "afc7aa0a" + "1" * 32, "sha256:" + "2" * 64
    files = (RemoteFile("a", 10**9, "3" * 64), RemoteFile("chat_template.jinja", 5, "4" * 64))
    url = "https://github.com/Elevatormusic/TensorFold"
    lock = Lock(
        {"weights-1017": Locked("afc7aa0a", Manifest("r/r", commit, files))},
        {"image.build.git.tensorfold": LockedGit(url, "fd2365042f56", "fd2365042f56" + "5" * 28)},
        {"image.build.base": LockedImage("nvcr.io/nvidia/pytorch:26.07-py3", digest)},
    )
    pins = rows(shown(here, lock), "pins")
    assert pins["weights-1017"]["value"].endswith(f"@ {commit}, 2 files, 1.0 GB")
    assert pins["engram-1017"]["value"].endswith("@ 1bae0e10, unlocked")
    assert pins["image"]["value"].endswith(f", {digest}")
    assert pins["tensorfold"]["value"].endswith("@ fd2365042f56" + "5" * 28)


def test_settings_that_begin_a_new_folder_are_named():
    folders = rows(shown(lane()), "folders that outlive")
    assert folders["spill"]["about"].endswith(
        "begins anew when a change is made to weights, prefill_chunk, replay, replay_floor"
    )
    assert folders["rank-cache"]["value"] == "up to 110 GB"


def test_every_privileged_option_is_listed():
    found = " ".join(rows(shown(lane()), "what the containers may do"))
    for option in (
        "--gpus all",
        "--network host",
        "--ipc host",
        "--device /dev/infiniband",
        "--cap-add IPC_LOCK",
    ):
        assert option in found


def test_parity_is_unproven_until_it_was_proven():
    here = lane()
    git = {
        "url": "https://example.org/kit",
        "commit": "6f7d1590",
        "source": {"kind": "chosen", "why": "test"},
    }
    patch = PatchSpec.model_validate(
        {
            "git": git,
            "file": "t.jinja",
            "edits": [],
            "path": "/t",
            "source": {"kind": "chosen", "why": "test"},
        }
    )
    changed = here.recipe.model_copy(update={"patches": {"template": patch}})
    one = Lane("A", changed, here.recipe_folder, here.inventory, here.nodes, here.settings)
    assert rows(shown(one), "chat template")["template"]["value"] == "parity unproven"
    assert rows(shown(one, parity="parity proven"), "chat template")["template"]["value"] == "parity proven"


def test_room_that_the_lock_must_tell_first_is_not_shown_as_nothing():
    """Lane B's packs are as large as the checkpoint's tables, which the lock knows."""
    here = load_all(ROOT / "inventory" / "four-spark", find_recipes(ROOT, []), "B", environ={}, sets=[])
    jobs = rows(shown(here), "jobs")
    assert {jobs[node.name]["value"] for node in here.nodes} == {"not locked yet"}


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((None, 7), "at least 7 B (7 bytes)"), ((3, 4), "7 B (7 bytes)"), ((None,), "not locked yet")],
)
def test_room_of_several_jobs(sizes, words):
    here = load_all(ROOT / "inventory" / "four-spark", find_recipes(ROOT, []), "B", environ={}, sets=[])
    made = render_lane(here, {})
    room = tuple(RenderedRoom("spark-1", "/x", size) for size in sizes)
    several = replace(made, jobs=(replace(made.jobs[0], room=room),))
    told = {row["name"]: row["value"] for row in showing_jobs.rows(several)}
    assert told["spark-1"] == words


def test_an_option_with_a_condition_is_told_in_words():
    here = load_all(ROOT / "inventory" / "four-spark", find_recipes(ROOT, []), "B", environ={}, sets=[])
    may = rows(shown(here), "what the containers may do")
    assert "--privileged (only when lane.privileged)" in may
    assert not any("{%" in name for name in may)


@pytest.mark.parametrize("name", ["A", "A4", "B", "C", "D", "boot10", "kit", "lab"])
def test_no_name_stands_twice_in_a_row_of_show(name):
    """What several services and jobs have alike was told once for each of them; a word was told by its bare number."""
    values = provenance.pinned(load_recipe(find_recipes(ROOT, [])[name]))
    for row in (*showing._chosen(values), *showing._privileged(values)):
        names = row["name"].split(", ")
        assert len(set(names)) == len(names), row
        assert not any(each.isdigit() for each in names), row


def test_a_secret_that_nobody_set_is_not_called_set():
    settings = rows(shown(four("D")), "settings")
    assert settings["agent_token"]["source"] == "published"
    assert settings["join_code"]["source"] == "chosen"
    assert settings["join_code"]["value"] == "<generated: join_code>"
    assert rows(shown(four("D", "join_code=a-code-of-ours")), "settings")["join_code"]["source"].startswith(
        "set by"
    )


def test_conditions_of_a_figure_stand_alone():
    """`invoke lanes` puts them below those of other lanes, where "as above" is another lane's."""
    for name, folder in find_recipes(ROOT, []).items():
        for figure in load_recipe(folder).expect:
            assert "above" not in figure.conditions, (name, figure.what)


def four(name: str, *sets: str) -> Lane:
    recipes = find_recipes(ROOT, [])
    cabled = ROOT / "inventory" / "four-spark"
    found, _ = draft_all(cabled, recipes, name, environ={}, sets=list(sets))
    assert found is not None
    return found
