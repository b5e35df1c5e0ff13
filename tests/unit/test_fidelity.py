"""Every published command line of every recipe beside ours, word by word; and that one changed word, a missing and an idle declaration are seen.

A recipe is compared on that of the example inventories which fits its published lines best: one pair, a switch, or a ring. What it must not do on real nodes
(``rules``) is not judged here: published values may well break our rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkyard.errors import ConfigError
from sparkyard.fidelity import Comparison, comparisons, with_profile
from sparkyard.load import find_recipes, load_all
from sparkyard.model import Lane
from tests.unit import sample

ROOT = Path(__file__).resolve().parents[2]
INVENTORIES = ("two-spark", "four-spark", "four-spark-ring")
RECIPES = find_recipes(ROOT, [])
PUBLISHED = sorted(
    name
    for name, folder in RECIPES.items()
    if yaml.safe_load((folder / "recipe.yml").read_text(encoding="utf-8")).get("published")
)


def compared(name: str) -> tuple[Comparison, ...]:
    """The comparisons of a lane on the inventory that is most like the author's. Raises ConfigError where none can render it."""
    found: list[tuple[Comparison, ...]] = []
    failure: ConfigError | None = None
    for inventory in INVENTORIES:
        try:
            lane = load_all(ROOT / "inventory" / inventory, RECIPES, name, environ={}, sets=[])
            found.append(comparisons(lane))
        except ConfigError as error:
            failure = error
    if not found and failure is not None:
        raise failure
    return min(found, key=lambda each: sum(len(one.faults) for one in each))


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_line_differs_only_as_declared(name):
    found = compared(name)
    assert found
    assert [f"{one.name}: {fault}" for one in found for fault in one.faults] == []
    assert all(seen.why for one in found for seen in one.seen)
    assert all(one.equal or one.seen for one in found)


# what is seen, on the tiny lane

LINE = """\
docker run -d --name engine --restart no --gpus=all --net host --ulimit memlock=-1
  -v {{ checkpoints.model.path }}:/model:ro -v {{ root }}/profile:/profile:ro --volume {{ root }}/cache:/cache
  --device /dev/infiniband:/dev/infiniband --env RANK=1 --env NCCL_IB_HCA={{ node.link.hcas | join(',') }}
  --env NCCL_IB_GID_INDEX=<discovered: gid> -e GLOO_SOCKET_IFNAME={{ node.link.interface }} -e 'THRESHOLDS=-2 -2 1'
  -e MASTER={{ head.link.address }}:29500 -e CONTEXT=4096 -e "QUOTED=it's \\"so\\"" -e API_KEY=tiny-key
  theirs/image:latest serve --config '{"streams": 4, "peers": 1}' --served-model-name=tiny --headless
"""
CHOSEN = {"kind": "chosen", "why": "test"}


def lane(text: str, *differences: dict[str, Any], **more: Any) -> Lane:
    data = sample.recipe_data()
    data["profiles"] = {
        "published": {"about": "x", "source": CHOSEN, "settings": {"context": 4096}},
        "long": {"about": "x", "source": CHOSEN, "settings": {"context": 8192, "streams": 8}},
    }
    line = {"name": "line", "source": CHOSEN, "of": "services.engine", "rank": 1, "part": "all", "text": text}
    data["published"] = [line | {"differences": list(differences)} | more]
    return sample.lane(2, data, context=1 << 20, streams=99)


def only(here: Lane) -> Comparison:
    (found,) = comparisons(here)
    return found


def test_a_line_written_by_another_hand_is_equal_and_what_a_person_set_does_not_count():
    found = only(lane(LINE))
    assert (found.seen, found.faults) == ((), ())
    assert found.equal == 4 + 9 + 3 + 4


@pytest.mark.parametrize(
    "word",
    [
        "--gpus=all", "host", "memlock=-1", "/model:ro", "/profile:ro", "/cache\n", "/dev/infiniband:", "RANK=1", "<discovered: gid>",
        "THRESHOLDS=-2", "29500", "CONTEXT=4096", "it's", "API_KEY=tiny-key", ":latest serve", "--config", "\"streams\": 4", "-name=tiny", "--headless",
    ],
)  # fmt: skip
def test_one_changed_word_is_found_wherever_it_stands(word):
    assert LINE.count(word) == 1
    changed = word[:-1] + "x" + word[-1:] if word[-1] in ":\n>" else f"{word}x"
    found = only(lane(LINE.replace(word, changed)))
    assert found.seen
    assert found.faults
    assert all("tiny-key" not in f"{fault}{found.seen}" for fault in found.faults)


def test_one_word_more_and_one_less_are_found():
    assert only(lane(LINE.replace(" --headless", ""))).faults == (
        "--headless: published nothing, ours '': not declared in `differences`",
    )
    more = LINE.replace("--gpus=all", "--gpus=all --privileged")
    assert only(lane(more)).faults == (
        "--privileged: published '', ours nothing: not declared in `differences`",
    )


GID = {"what": "NCCL_IB_GID_INDEX", "theirs": "3", "ours": "{{ discovered.gid }}", "why": "discovered"}
OTHER = LINE.replace("<discovered: gid>", "3")


def test_a_declared_difference_is_shown_with_its_reason():
    found = only(lane(OTHER, GID))
    assert found.faults == ()
    ((what, theirs, ours, why),) = [(s.what, s.theirs, s.ours, s.why) for s in found.seen]
    assert (what, theirs, ours, why) == ("NCCL_IB_GID_INDEX", "3", "<discovered: gid>", "discovered")


def test_a_declaration_of_nothing_and_one_with_other_values_fail():
    idle = {"what": "--shm-size", "theirs": "16g", "why": "x"}
    assert only(lane(OTHER, GID, idle)).faults == (
        "--shm-size: declared as published '16g', ours nothing: there is no such difference",
    )
    assert only(lane(OTHER, {**GID, "theirs": "4"})).faults == (
        "NCCL_IB_GID_INDEX: published '3', ours '<discovered: gid>': declared as published '4', ours '<discovered: gid>'",
    )


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("words", "serve --headless --config={\\\"streams\\\":4,\\\"peers\\\":1} --served-model-name tiny"),
        ("env", ("export RANK=1 NCCL_IB_HCA={{ node.link.hcas | join(',') }} NCCL_IB_GID_INDEX={{ discovered.gid }} "
         "GLOO_SOCKET_IFNAME={{ node.link.interface }} THRESHOLDS='-2 -2 1' MASTER={{ head.link.address }}:29500 CONTEXT=4096 "
         "QUOTED='it'\"'\"'s \"so\"' API_KEY=tiny-key")),
    ],
)  # fmt: skip
def test_a_part_alone_is_compared_with_that_part(part, text):
    found = only(lane(text, part=part))
    assert (found.seen, found.faults) == ((), ())


def test_the_profile_of_the_line_counts():
    here = lane(
        'serve --headless --config \'{"streams":8,"peers":1}\' --served-model-name tiny',
        part="words",
        profile="long",
    )
    assert only(here).faults == ()
    assert with_profile(here, "long").settings["context"].value == 8192
    assert with_profile(here, "").settings["streams"].value == 4


def test_a_rule_that_a_published_value_breaks_is_no_fault_and_a_broken_text_is_one():
    here = lane(
        'serve --headless --config \'{"streams":8,"peers":1}\' --served-model-name tiny',
        part="words",
        profile="long",
    )
    here.recipe.rules.clear()
    here.recipe.rules.extend(
        type(here.recipe)
        .model_validate(
            sample.recipe_data() | {"rules": [{"must": "false", "message": "never", "source": "test"}]}
        )
        .rules
    )
    assert only(here).faults == ()
    with pytest.raises(ConfigError, match=r"published\.0\.text: is no line of a shell: No closing quotation"):
        comparisons(lane("serve 'x", part="words"))
    with pytest.raises(ConfigError, match=r"published\.0\.text: lane\.contxt is not known"):
        comparisons(lane("serve {{ lane.contxt }}", part="words"))
