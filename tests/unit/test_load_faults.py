"""Every bad inventory, setting and recipe of the tables gives exactly the message it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkyard import load
from sparkyard.errors import ConfigError
from tests.unit.bad_folders import FOLDERS
from tests.unit.bad_nodes import NODES
from tests.unit.bad_recipe_parts import PARTS
from tests.unit.bad_recipes import RECIPES
from tests.unit.bad_settings import SETTINGS
from tests.unit.projects import FILES, Case, write_project

CASES = (*FOLDERS, *NODES, *SETTINGS, *RECIPES, *PARTS)


def fault_of(case: Case, project: Path) -> ConfigError:
    write_project(project, {**FILES, **case.files}, case.edits, case.gone)
    with pytest.raises(ConfigError) as caught:
        load.load_all(
            Path("inventory/my"),
            load.find_recipes(project, [Path(folder) for folder in case.recipes]),
            case.lane,
            environ=case.environ,
            sets=case.sets,
        )
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_message(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = fault_of(case, tmp_path)
    assert str(error) == case.message
    assert error.status == 2


def test_there_are_enough_cases_and_each_has_a_name_of_its_own() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


def test_messages_are_of_a_length_that_people_read() -> None:
    lengths = sorted(len(line) for case in CASES for line in case.says)
    assert lengths[-1] <= 120
    assert lengths[len(lengths) * 9 // 10] <= 115
    assert lengths[len(lengths) // 2] <= 95


def test_the_good_project_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    lane = load.load_all(Path("inventory/my"), load.find_recipes(tmp_path, []), None, environ={}, sets=[])
    assert [node.name for node in lane.nodes] == ["spark-1", "spark-2"]


def test_a_secret_never_shows_in_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planted = "sk-planted-{{-7"
    case = Case(
        name="secrets",
        says=[],
        files={"inventory/my/host_vars/spark-1.yml": "lanes: {A: {api_key: one-planted}}\n"},
        sets=[f"api_key={planted}"],
    )
    message = str(fault_of(case, tmp_path))
    assert "planted" not in message
    assert "lanes.A.api_key: set for spark-1 but not for spark-2" in message


def test_recipe_and_inventory_alone_raise_their_own_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(
        tmp_path,
        edits=[
            ("recipes/a/recipe.yml", "grace: 10", "grace: -1"),
            ("inventory/my/hosts.yml", "rank: 1", "rank: 7"),
        ],
    )
    with pytest.raises(
        ConfigError, match=r"recipes/a/recipe.yml:54: stop.grace: more than 0 is expected, found -1"
    ):
        load.load_recipe(Path("recipes/a"))
    with pytest.raises(ConfigError, match=r"hosts.yml:15: spark-2.rank: rank 1 is missing"):
        load.load_inventory(Path("inventory/my"), environ={}, sets=[])


def test_links_that_lead_out_of_a_recipe_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("Dockerfile", "a.json.j2"):
        (tmp_path / "recipes/a" / name).rename(outside / name)
        (tmp_path / "recipes/a" / name).symlink_to(outside / name)
    with pytest.raises(ConfigError) as caught:
        load.load_recipe(Path("recipes/a"))
    assert [str(fault) for fault in caught.value.faults] == [
        "recipes/a/recipe.yml:22: image.build.dockerfile: Dockerfile is a link that leads out of a/; put the file itself there",
        "recipes/a/recipe.yml:31: files.config.template: a.json.j2 is a link that leads out of a/; put the file itself there",
    ]
