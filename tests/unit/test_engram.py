"""Engram rows against published figures, and what templates make of a checkpoint's contents, locked or not."""

from __future__ import annotations

import json

import pytest

from sparkyard.engram import engram_rows, is_prime
from sparkyard.errors import ConfigError
from sparkyard.lab import tiny_repos
from sparkyard.model import Manifest, RemoteFile
from sparkyard.render import render_lane
from sparkyard.unlocked import NotLocked, Unlocked
from tests.unit import sample

RELEASE = sample.ENGRAM_CONFIG["text_config"]
"""Of deepseek-ai/DeepSeek-V4.1-Flash, below ``text_config``."""
FILES = (
    RemoteFile("config.json", 20, blob="b" * 40),
    RemoteFile("model.safetensors", 9, sha256="a" * 64),
)


def test_four_ranks_own_the_published_rows():
    first, second = engram_rows({"text_config": RELEASE}, 4)
    assert (first["layer"], second["layer"]) == (1, 14)
    assert (first["height"], second["height"]) == (384_006_168, 384_016_682)
    assert first["ranges"] == [
        [0, 96000564],
        [96000564, 192001740],
        [192001740, 288003654],
        [288003654, 384006168],
    ]
    assert second["ranges"] == [
        [0, 96003054],
        [96003054, 192007016],
        [192007016, 288011564],
        [288011564, 384016682],
    ]


def test_two_ranks_own_the_derived_rows_also_of_a_flat_config():
    first, second = engram_rows(RELEASE, 2)
    assert first["ranges"] == [[0, 192001740], [192001740, 384006168]]
    assert second["ranges"] == [[0, 192007016], [192007016, 384016682]]


def test_the_even_division_knows_no_tables():
    first, _ = engram_rows(RELEASE, 4)
    assert first["even"] == [
        [0, 96001542],
        [96001542, 192003084],
        [192003084, 288004626],
        [288004626, 384006168],
    ]


def test_a_config_that_is_not_of_the_rule_is_refused():
    with pytest.raises(ValueError, match=r"has no engram_layer_ids, .*, engram_n_heads"):
        engram_rows({"model_type": "other"}, 4)
    with pytest.raises(ValueError, match=r"is \[1, 2\], and its primes add up to \[384006168, 384016682\]"):
        engram_rows({**RELEASE, "engram_num_embeddings": [1, 2]}, 4)
    with pytest.raises(ValueError, match="24 Engram tables of a layer cannot be divided among 5 ranks"):
        engram_rows(RELEASE, 5)


def test_primes_are_primes():
    assert [n for n in range(60) if is_prime(n)] == [
        2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59,
    ]  # fmt: skip
    assert not is_prime(3_215_031_751)  # the first that fools the bases 2, 3, 5 and 7
    assert not is_prime(561)
    assert is_prime(16_000_057)


def test_the_labs_tiny_config_follows_the_rule():
    assert [layer["height"] for layer in engram_rows(tiny_repos.CONFIG, 4)] == [1552, 4488]


# in templates


def words(*templates: str, known: Manifest | None = None) -> tuple[str, ...]:
    data = sample.recipe_data()
    data["services"]["engine"]["words"] = list(templates)
    rendered = render_lane(sample.lane(4, data), {"model": known} if known else {})
    return rendered.containers_of("spark-2")[0].words[-len(templates) :]


ROWS = "{% set l = (checkpoints.model.config | engram_rows(world))[1] %}{{ l.layer }}:{{ l.ranges[rank] | join(':') }}"
BYTES = "{{ (checkpoints.model.config | engram_rows(world))[0].even[rank][1] * 264 + 4096 }}"


def test_templates_read_the_config_and_the_hashes_of_a_locked_checkpoint():
    manifest = Manifest("example/tiny", sample.COMMIT, FILES, {"text_config": RELEASE, "items": 3})
    found = words(
        ROWS,
        BYTES,
        "{{ checkpoints.model.hashes['model.safetensors'] }}",
        "{{ checkpoints.model.hashes['config.json'] }}",
        "{{ checkpoints.model.config.items }}",
        known=manifest,
    )
    assert found == (
        "14:96003054:192007016",
        str(192003084 * 264 + 4096),
        f"sha256:{'a' * 64}",
        f"blob:{'b' * 40}",
        "3",
    )


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (ROWS, "<unlocked: config>:<unlocked: config>"),
        (BYTES, "<unlocked: config>"),
        ("{{ checkpoints.model.config.text_config.engram_n_heads | int }}", "<unlocked: config>"),
        ("a{{ 1 + checkpoints.model.config.x }}b", "a<unlocked: config>b"),
        ("{{ checkpoints.model.hashes['model.safetensors.index.json'][7:] }}", "<unlocked: hashes>"),
        ("{{ checkpoints.model.config.x if checkpoints.model.config.x > 3 else 3 }}", "<unlocked: config>"),
        ("{{ checkpoints.model.config.x == 3 }}", "<unlocked: config>"),
        ("{{ checkpoints.model.config | json }}", '<unlocked: config>'),
        ("{{ checkpoints.model.shards | int + 1 }}", "<unlocked: shards>"),
        ("{{ [checkpoints.model.config.a, 4] | sum }}", "<unlocked: config>"),
        ("{{ 3 * checkpoints.model.config.a }}", "<unlocked: config>"),
    ],
)  # fmt: skip
def test_what_is_not_locked_stays_a_mark(template, text):
    assert words(template) == (text,)


def test_a_rule_over_what_is_not_locked_is_judged_once_it_is():
    data = sample.recipe_data()
    data["rules"] = [
        {
            "must": "checkpoints.model.config.heads > 3",
            "message": "{{ checkpoints.model.config.heads }} heads",
            "source": "test",
        }
    ]
    render_lane(sample.lane(2, data), {})
    manifest = Manifest("example/tiny", sample.COMMIT, FILES, {"heads": 2})
    with pytest.raises(ConfigError, match="2 heads"):
        render_lane(sample.lane(2, data), {"model": manifest})


def test_a_checkpoint_without_a_config_says_so_and_an_unknown_name_too():
    bare = Manifest("example/tiny", sample.COMMIT, FILES[1:])
    with pytest.raises(ConfigError, match=r"checkpoints\.model\.config is not known"):
        words("{{ checkpoints.model.config.x }}", known=bare)
    with pytest.raises(ConfigError, match=r"checkpoints\.model\.config\.heads is not known"):
        words(
            "{{ checkpoints.model.config.heads }}",
            known=Manifest("example/tiny", sample.COMMIT, FILES, {"n_heads": 2}),
        )
    with pytest.raises(ConfigError, match="has no engram_layer_ids"):
        words(ROWS, known=Manifest("example/tiny", sample.COMMIT, FILES, {"n_heads": 2}))


def test_an_unlocked_value_decides_nothing():
    mark = Unlocked.of("config")
    assert json.dumps([mark]) == '["<unlocked: config>"]'
    assert mark == "<unlocked: config>"
    assert {mark} == {"<unlocked: config>"}
    for question in (lambda: mark < 3, lambda: int(mark), lambda: "a" in mark, lambda: mark == 4):
        with pytest.raises(NotLocked, match="<unlocked: config>"):
            question()
