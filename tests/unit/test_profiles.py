"""Profiles: before the defaults, behind a person; refused with file and line; and mounts that only some settings have."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkyard.errors import ConfigError
from sparkyard.load import explain, find_recipes, load_all, load_recipe
from sparkyard.model import Lane
from sparkyard.render import render_lane
from tests.unit import sample

ROOT = Path(__file__).resolve().parents[2]
HOSTS = """all:
  hosts:
    spark-1:
      ansible_connection: local
      rank: 0
      link: {address: 10.0.0.1, interface: enp1s0f1np1, hcas: [rocep1s0f1]}
  vars:
    lanes:
      T: {%s}
"""
CHOSEN = {"kind": "chosen", "why": "test"}
PROFILES = {
    "published": {"about": "as published", "source": CHOSEN, "settings": {"port": 8888, "context": 8192}},
    "long": {"about": "long", "source": CHOSEN, "settings": {"context": 1048576}},
}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """A project with the tiny recipe, which has profiles, and an inventory of one node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe = folder / "recipes" / "tiny"
        shutil.copytree(sample.RECIPES / "tiny", self.recipe)
        self.data = sample.recipe_data()
        self.data["profiles"] = PROFILES
        sources = dict.fromkeys(("nodes", "image.build.*", "env.*", "files.*", "services.*", "order", "ports.*", "ready.*", "stop.*", "limits.*", "verify.*"), CHOSEN)  # fmt: skip
        self.data["sources"] = sources
        self.data["image"]["build"]["memory"] = self.data["limits"]["memory"] = 1 << 30
        self.data["settings"]["port"] |= {"minimum": 1024, "maximum": 65535}

    def write(self, **changes: Any) -> None:
        text = yaml.safe_dump({**self.data, **changes}, sort_keys=False)
        (self.recipe / "recipe.yml").write_text(text)

    def line(self, words: str) -> int:
        lines = (self.recipe / "recipe.yml").read_text().splitlines()
        return next(n for n, line in enumerate(lines, 1) if words in line)

    def inventory(self, settings: str = "") -> Path:
        """An inventory of one node with these settings of the lane, in line 9 of its file."""
        folder = self.folder / "inventory"
        folder.mkdir(exist_ok=True)
        (folder / "hosts.yml").write_text(HOSTS % settings)
        return folder

    def lane(
        self, settings: str = "", environ: dict[str, str] | None = None, sets: tuple[str, ...] = ()
    ) -> Lane:
        recipes = find_recipes(self.folder, [])
        return load_all(self.inventory(settings), recipes, "T", environ=environ or {}, sets=sets)


def values(lane: Lane) -> tuple[Any, Any]:
    return lane.settings["port"].value, lane.settings["context"].value


@pytest.mark.parametrize(
    ("settings", "environ", "sets", "expected"),
    [
        ("", {}, (), (8000, 4096)),
        ("profile: published", {}, (), (8888, 8192)),
        ("profile: published, context: 5000", {}, (), (8888, 5000)),
        ("profile: published", {"SPARKYARD_PROFILE": "long"}, (), (8000, 1048576)),
        ("profile: published", {"SPARKYARD_PROFILE": "long"}, ("profile=published",), (8888, 8192)),
        ("profile: published", {}, ("profile=",), (8000, 4096)),
        ("profile: published", {"SPARKYARD_PORT": "9000"}, ("context=6000",), (9000, 6000)),
    ],
)
def test_a_profile_stands_before_the_defaults_and_behind_a_person(place, settings, environ, sets, expected):
    place.write()
    assert values(place.lane(settings, environ, sets)) == expected


def test_config_names_the_profile_its_file_and_its_line(place):
    place.write()
    rows = {row.key: row for row in explain(place.lane("profile: published", sets=("port=9000",)))}
    file = place.recipe / "recipe.yml"
    assert rows["profile"].value == "published"
    assert rows["profile"].origin.endswith("hosts.yml:9")
    assert rows["context"].origin == f"profile published ({file}:{place.line('context: 8192')})"
    assert rows["port"].origin == "--set"
    assert "profile" not in {row.key for row in explain(place.lane())}


@pytest.mark.parametrize(
    ("settings", "environ", "sets", "message"),
    [
        ("profile: publised", {}, (), 'hosts.yml:9: lanes.T.profile: "publised" is not a known profile (did you mean published?)'),
        ("profile: 3", {}, (), "hosts.yml:9: lanes.T.profile: the name of a profile is expected, found the number 3"),
        ("", {"SPARKYARD_PROFILE": "fast"}, (), "environment: SPARKYARD_PROFILE: \"fast\" is not a known profile"),
        ("", {}, ("profile=fast",), '--set: profile: "fast" is not a known profile'),
    ],
)  # fmt: skip
def test_an_unknown_profile_is_refused_where_it_was_chosen(place, settings, environ, sets, message):
    place.write()
    with pytest.raises(ConfigError) as failure:
        place.lane(settings, environ, sets)
    assert message in str(failure.value)


def test_a_recipe_without_profiles_takes_none(place):
    place.write(profiles={})
    assert values(place.lane(environ={"SPARKYARD_PROFILE": "long"})) == (8000, 4096)
    with pytest.raises(ConfigError, match=r"--set: profile: not a known setting: this lane has no profiles"):
        place.lane(sets=("profile=long",))
    with pytest.raises(
        ConfigError, match=r"hosts.yml:9: lanes.T.profile: not a known setting: this lane has no"
    ):
        place.lane("profile: long")


def faults_of(place: Place, **changes: Any) -> str:
    place.write(**changes)
    with pytest.raises(ConfigError) as failure:
        load_recipe(place.recipe)
    return str(failure.value)


def test_a_profile_with_an_unknown_setting_or_a_wrong_value_is_refused_with_its_line(place):
    wrong = {"portt": 1, "context": "long", "port": 80, "api_key": "sk"}
    found = faults_of(place, profiles={"odd": {"about": "x", "source": CHOSEN, "settings": wrong}})
    lines = {name: place.line(f"      {name}: ") for name in ("portt", "context")}
    assert (
        f"recipe.yml:{lines['portt']}: profiles.odd.settings.portt: not a known setting (did you mean port?)"
        in found
    )
    assert (
        f"recipe.yml:{lines['context']}: profiles.odd.settings.context: a whole number is expected" in found
    )
    assert "profiles.odd.settings.port: at least 1024 is expected, found 80" in found
    assert "profiles.odd.settings.api_key: a secret is set by a person, never by a profile" in found


def test_a_published_line_of_nothing_is_refused(place):
    one = {"name": "line", "source": CHOSEN, "of": "services.engin", "text": "x", "profile": "publish"}
    two = {"name": "line", "source": CHOSEN, "of": "services.engine", "text": "x", "rank": 4}
    found = faults_of(place, published=[one, two])
    assert "published.0.of: not a known container (did you mean services.engine?)" in found
    assert 'published.0.profile: "publish" is not a known profile (did you mean published?)' in found
    assert '.name: "line" is the name of published.0 too' in found
    assert "published.1.rank: services.engine has no rank 4: it runs on all" in found


def test_a_setting_must_not_be_called_profile(place):
    place.data["settings"]["profile"] = {"default": "x", "about": "x", "source": CHOSEN}
    assert "settings.profile: profile is a variable of the inventory" in faults_of(place)


# mounts


def mounted(data: dict[str, Any], **settings: Any) -> list[str]:
    words = render_lane(sample.lane(1, data, **settings), {}).containers[0].words
    return [word for flag, word in pairwise(words) if flag == "--mount"]


def test_a_mount_is_there_only_where_its_condition_holds():
    data = sample.recipe_data()
    data["services"]["engine"]["mounts"] = [
        {"source": "/srv/long", "target": "/store", "when": "lane.context > 5000"},
        {"source": "/srv/short", "target": "/store", "when": "lane.context <= 5000"},
        {"source": "/srv/x", "target": "/x"},
    ]
    always = "type=bind,source=/srv/x,target=/x,readonly"
    assert mounted(data) == ["type=bind,source=/srv/short,target=/store,readonly", always]
    assert mounted(data, context=8192) == ["type=bind,source=/srv/long,target=/store,readonly", always]


def test_two_mounts_on_one_target_are_refused_also_when_conditions_meet():
    data = sample.recipe_data()
    mounts = [{"source": f"/srv/{n}", "target": "/store", "when": "lane.context > 1"} for n in range(2)]
    data["services"]["engine"]["mounts"] = mounts
    with pytest.raises(ConfigError, match=r"mounts\.1: /store is the target of two mounts"):
        mounted(data)


def test_a_condition_over_a_name_that_is_not_there_is_told_when_the_recipe_is_read(place):
    place.data["services"]["engine"]["mounts"][0]["when"] = "lane.contxt > 3"
    assert "services.engine.mounts.0.when: lane.contxt is not known (did you mean context?)" in faults_of(
        place
    )
