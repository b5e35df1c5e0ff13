"""Tables: nothing is cut, nothing is wider than the terminal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkyard.tables import TABLES, cell, finding, folded

CONFIG: list[dict[str, Any]] = [
    {
        "node": "spark-1",
        "key": "lanes.A.context",
        "value": 1048576,
        "origin": "inventory/two-spark/hosts.yml:12",
    },
    {"node": "spark-1", "key": "models", "value": "/" + "m" * 60, "origin": "--set"},
]


def test_a_table_folds_its_long_values_and_leaves_out_empty_columns():
    rows = [{**row, "node": ""} for row in CONFIG]
    assert folded("config", rows, 60) == [
        "key              value                    origin",
        "lanes.A.context  1048576                  inventory/two-",
        "                                          spark/hosts.yml:12",
        "models           /mmmmmmmmmmmmmmmmmmmmmm  --set",
        "                 mmmmmmmmmmmmmmmmmmmmmmm",
        "                 mmmmmmmmmmmmmmm",
    ]


def test_words_are_broken_only_where_nothing_else_is_left_and_then_behind_a_separator():
    rows: list[dict[str, object]] = [
        {"name": "rank_cache_readers", "value": 32, "source": "chosen", "about": "threads that read " * 5},
        {
            "name": "model",
            "value": "LibertAIDAI/DeepSeek-V4.1-Flash-1017",
            "source": "published",
            "about": "",
        },
    ]
    assert folded("show", rows, 70) == [
        "name                value               source     about",
        "rank_cache_readers  32                  chosen     threads that read",
        "                                                   threads that read",
        "                                                   threads that read",
        "                                                   threads that read",
        "                                                   threads that read",
        "model               LibertAIDAI/        published",
        "                    DeepSeek-V4.1-",
        "                    Flash-1017",
    ]


@given(
    st.lists(
        st.fixed_dictionaries({key: st.text("abc-/.: ", max_size=120) for key in TABLES["config"]}),
        min_size=1,
        max_size=4,
    ),
    st.integers(50, 120),
)
def test_no_character_is_lost_and_no_line_is_too_wide(rows, width):
    lines = folded("config", rows, width)
    assert max(map(len, lines)) <= width
    shown = sorted("".join(lines[1:]).replace(" ", ""))
    assert shown == sorted("".join(row[key] for row in rows for key in row).replace(" ", ""))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), (False, "false"), (0, "0"), (["a", 1], "a, 1"), ("a\x1b[2J\nb", "a [2J b")],
)
def test_cells(value, text):
    assert cell(value) == text


def test_a_row_is_a_finding_whose_data_holds_it():
    event = finding("config", CONFIG[0])
    assert (event.type, event.node) == ("finding", "spark-1")
    assert event.data == {"table": "config", **CONFIG[0]}
    assert event.message == "spark-1 lanes.A.context 1048576 inventory/two-spark/hosts.yml:12"
