"""Folders of recipes: what is found in them, and what is said of a file that names no lane."""

from __future__ import annotations

import os

import pytest

from sparkyard.loading.marked import Faults
from sparkyard.loading.recipe_file import find_lanes, lane_of, read_recipe


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine/hello").mkdir(parents=True)
    return tmp_path / "mine"


def said(*folders) -> list[str]:
    faults = Faults()
    find_lanes(folders, faults)
    return [str(fault) for fault in faults.found]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title: x\n", "mine/hello/recipe.yml: lane: missing"),
        (
            "# mine\nlane: 5\n",
            "mine/hello/recipe.yml:2: lane: letters, digits, _ and -, with a letter first is expected, found the number 5",
        ),
        (
            "lane: [a]\n",
            "mine/hello/recipe.yml:1: lane: letters, digits, _ and -, with a letter first is expected, found a list",
        ),
    ],
)
def test_a_lane_that_is_no_name_is_told_with_what_stands_there(folder, text, says):
    (folder / "hello/recipe.yml").write_text(text)
    assert said(folder) == [says]


def test_the_recipe_itself_in_place_of_its_folder_is_told_what_was_meant(folder):
    (folder / "hello/recipe.yml").write_text("lane: hello\n")
    assert said(folder / "hello") == [
        "mine/hello: holds no recipe: */recipe.yml is looked for in it; did you mean --recipes=mine?"
    ]


def test_a_pipe_in_place_of_a_recipe_is_not_waited_for(folder):
    path = folder / "hello/recipe.yml"
    os.mkfifo(path)
    assert lane_of(path) == "hello"
    faults = Faults()
    assert read_recipe(path.parent, faults) is None
    assert [str(fault) for fault in faults.found] == [
        "mine/hello/recipe.yml: a file is expected, found something else (a pipe or a device)"
    ]
