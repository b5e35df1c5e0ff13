"""``invoke diff``: two lanes side by side, as text at 80 columns, as JSON and as typed; and what ``show`` says of profiles and published lines.

After a wanted change: ``SPARKYARD_GOLDEN=write pytest tests/unit/test_comparing.py``, and read the difference.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sparkyard import comparing, provenance, showing
from sparkyard.comparing import Side
from sparkyard.errors import UsageError
from sparkyard.load import find_recipes, load_all, load_recipe
from sparkyard.lock import Lock
from sparkyard.model import Lane, Origin, Value
from sparkyard.render import Rendering, render_lane
from sparkyard.showing_published import NONE
from tests.unit import offline, sample
from tests.unit.offline import shown

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "diff-tiny.txt"
CHOSEN = {"kind": "chosen", "why": "test"}
KEY = "a-long-enough-key"


def side(name: str, lane: Lane) -> Side:
    return Side(name, lane, render_lane(lane, {}))


def pair(count: int = 3) -> tuple[Side, Side]:
    """The tiny lane, and one that differs in a setting, an option, a mount, a variable of each rank, and a service of its own name."""
    data = sample.recipe_data()
    engine = data["services"].pop("engine")
    engine["options"] = [word for word in engine["options"] if word != "--gpus" and word != "all"] + [
        "--privileged"
    ]
    engine["mounts"] = [
        *engine["mounts"][:2],
        {"source": "{{ root }}/spill", "target": "/spill", "read_only": False},
    ]
    engine["env"] = {"RANK": "{{ rank }}", "WHO": "{{ node.name }}", "SAME": "1"}
    data["services"]["rank"] = engine
    data["settings"]["deep"] = {"default": True, "about": "x", "source": CHOSEN}
    one, other = (
        sample.lane(count, api_key=KEY),
        sample.lane(count, data, context=8192, streams=8, api_key=KEY),
    )
    return side("T", one), side("U@long", other)


def test_the_text_at_80_columns_is_as_it_was_reviewed():
    found = shown(comparing.sections(*pair()))
    if os.environ.get("SPARKYARD_GOLDEN") == "write":
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()
    assert max(map(len, found.splitlines())) <= 80
    assert KEY not in found


def test_a_lane_beside_itself_differs_in_nothing():
    one, _ = pair()
    for section in comparing.sections(one, one):
        assert section.title.partition(": ")[2].startswith("0 differ, ")
        assert [row["what"] for row in section.rows] == ["no difference"]


def test_rows_of_one_rank_alone_stand_apart_and_equal_entries_are_counted():
    titles = [section.title for section in comparing.sections(*pair())]
    assert titles[:2] == ["settings: 3 differ, 3 the same", "lanes: 1 differs, 9 the same"]
    assert "options of engine beside rank, on all of ranks 0, 1, 2: 2 differ, 3 the same" in titles
    assert "env of engine beside rank, on all of ranks 0, 1, 2: 2 differ, 7 the same" in titles
    assert titles[-3:] == [f"of engine beside rank, on rank {rank} alone: 1 differs" for rank in range(3)]


def test_ranks_that_one_lane_alone_has_are_shown():
    one, other = side("T", sample.lane(1)), side("T", sample.lane(2))
    (rank_1,) = [
        section for section in comparing.sections(one, other) if "nothing beside engine, on rank 1" in section.title
        and section.title.startswith("words")
    ]  # fmt: skip
    assert {row["lane"] for row in rank_1.rows} == {NONE}
    assert {row["what"]: row["with"] for row in rank_1.rows}["--headless"] == "(no value)"


def test_a_lane_with_a_profile_is_read_from_its_name():
    assert comparing.named("C") == ("C", "")
    assert comparing.named("C@switched") == ("C", "switched")
    for text in ("", "@x", "C@"):
        with pytest.raises(UsageError):
            comparing.named(text)


# as typed


def typed(*line: str) -> subprocess.CompletedProcess[str]:
    return offline.typed("diff", "--lane=A", *line, "--inventory=inventory/two-spark")


def test_two_real_lanes_are_compared_without_any_program_of_a_node():
    done = typed("--with=kit")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A beside kit" in done.stdout
    assert any(line.split() == ["what", "A", "kit"] for line in done.stdout.splitlines())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_rows_are_findings_in_json():
    done = typed("--with=kit", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    cells = {row["data"]["what"]: row["data"] for row in rows if row["data"].get("table") == "diff"}
    assert (cells["drafts"]["lane"], cells["drafts"]["with"]) == ("5", "3")
    assert cells["spill_gib"]["with"] == NONE
    assert {row["type"] for row in rows} <= {"finding", "recap"}


def test_without_a_second_lane_nothing_is_done():
    done = typed()
    assert done.returncode == 2
    assert "next: invoke diff --lane=B --with=C" in done.stderr


@pytest.mark.parametrize(
    ("with_", "words"),
    [
        ("B@nope", '--with: profile: "nope" is not a known profile'),
        ("Z", '--with: "Z" is not a known lane'),
    ],
)
def test_a_fault_of_the_second_lane_names_the_flag_that_was_typed(with_, words):
    done = typed(f"--with={with_}")
    assert done.returncode == 2
    assert words in done.stderr


# show


def offering(**changes: Any) -> Lane:
    data = sample.recipe_data()
    data["profiles"] = {"long": {"about": "for long pastes", "source": CHOSEN, "settings": {"context": 8192}}}
    data["host"] = [
        {"what": "pages of 64 KiB", "getconf": "PAGESIZE", "must": "seen == '65536'", "why": "measured so", "source": "s", "blocks": False}
    ]  # fmt: skip
    data["services"]["engine"]["log"] = [{"what": "it serves", "pattern": "serving \\d+", "source": "s"}]
    line = {
        "name": "theirs", "source": CHOSEN, "of": "services.engine", "profile": "long", "text": "serve --served-model-name big --fast",
        "differences": [{"what": "--fast", "theirs": "", "why": "not ours"}],
    }  # fmt: skip
    data["published"] = [line]
    return replace(sample.lane(2, data, api_key=KEY), **changes)


def section(lane: Lane, title: str) -> tuple[dict[str, Any], ...]:
    found = showing.sections(lane, render_lane(lane, {}), Lock())
    return next(each.rows for each in found if each.title.startswith(title))


def test_show_lists_profiles_and_says_which_is_chosen():
    (row,) = section(offering(), "profiles")
    assert (row["name"], row["value"], row["about"]) == ("long", "context 8192", "for long pastes")
    (row,) = section(offering(profile=Value("long", Origin("hosts.yml", 9))), "profiles")
    assert row["about"] == "chosen by hosts.yml:9: for long pastes"


def test_show_lists_what_hosts_must_be_and_what_logs_must_say():
    (row,) = section(offering(), "what each host must be")
    assert (row["name"], row["value"]) == ("pages of 64 KiB", "getconf PAGESIZE: seen == '65536'")
    assert (row["source"], row["about"]) == ("is only said", "measured so (s)")
    (row,) = section(offering(), "what the logs must say")
    assert (row["name"], row["value"]) == ("engine: it serves", "serving \\d+")


def test_show_lists_every_difference_from_a_published_line_with_its_reason():
    rows = section(
        offering(), "published: theirs (services.engine on rank 0, profile long): 1 the same, 3 not"
    )
    told = {row["what"]: (row["theirs"], row["ours"], row["why"]) for row in rows}
    assert told["--fast"] == ("(no value)", NONE, "not ours")
    assert told["--served-model-name"][:2] == ("big", "tiny")
    assert told["--served-model-name"][2].startswith("not declared by the recipe")
    assert told["--config"] == (NONE, '{"streams":4,"peers":1}', told["--served-model-name"][2])


def test_show_says_why_a_published_line_cannot_be_compared_here():
    lane = offering()
    lane.recipe.published[0] = lane.recipe.published[0].model_copy(update={"rank": 3})
    (row,) = section(lane, "published command lines, which cannot be compared")
    assert row["why"].startswith("services.engine does not run on rank 3 with profile long")


def test_profiles_and_published_lines_are_among_the_sources():
    keys = {row["key"] for each in showing.sources(offering_with_sources()) for row in each.rows}
    assert {"profiles.long", "published.0", "host.0", "services.engine.log.0"} <= keys


def offering_with_sources() -> Lane:
    lane = offering()
    sources = {
        lack.key: CHOSEN for lack in provenance.lacks(lane.recipe) if not lack.key.startswith("sources")
    }
    data = lane.recipe.model_dump(mode="json", exclude_unset=True) | {"sources": sources}
    return replace(lane, recipe=type(lane.recipe).model_validate(data))


# every lane that there is


RECIPES = find_recipes(ROOT, [])
FOUR = sorted(name for name, folder in RECIPES.items() if load_recipe(folder).nodes.at_least == 4)


def real(name: str) -> Side:
    """A real lane on the example inventory with a switch; its rules may want another one, which does not matter here."""
    lane = load_all(ROOT / "inventory" / "four-spark", RECIPES, name, environ={}, sets=[])
    rendered, _ = Rendering(lane, {}, Lock()).unjudged()
    return Side(name, lane, rendered)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_lane_is_shown_within_80_columns_with_all_its_profiles_and_published_lines(name):
    one = real(name)
    sections = showing.sections(one.lane, one.rendered, Lock())
    recipe = one.lane.recipe
    titles = [section.title for section in sections]
    assert sum(title.startswith("published: ") for title in titles) == len(recipe.published)
    assert ("profiles: settings with a name" in titles) == bool(recipe.profiles)
    assert ("what each host must be, and is never changed to be" in titles) == bool(recipe.host)
    assert max(map(len, shown(sections).splitlines())) <= 80


@pytest.mark.parametrize(("one", "other"), list(pairwise(FOUR)))
def test_lanes_of_four_sparks_are_compared_within_80_columns(one, other):
    sections = comparing.sections(real(one), real(other))
    assert sections[0].title.startswith("settings: ")
    assert any(section.title.startswith("words of ") for section in sections)
    assert max(map(len, shown(sections).splitlines())) <= 80
