"""Whatever stands in a file: it loads, or it is a ConfigError; never another exception."""

from __future__ import annotations

import contextlib
import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkyard import load
from sparkyard.errors import ConfigError
from sparkyard.loading.marked import UNREADABLE, Faults
from sparkyard.loading.scalars import is_text, read_plain
from sparkyard.loading.yaml_file import read_text
from tests.unit.projects import FILES, HOSTS, RECIPE, write_project

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

YAML_PIECES = st.sampled_from(
    [*"{}[],:-&*!|>'\"%@`#?~", "\n", "\n  ", "\n    ", ": ", "- ", "<<: ", "&a ", "*a", "---\n", "all:", "hosts:", "vars:",
     "children:", "lanes:", "rank:", "spark-1", "0123", "12:30", "off", "1e3", "{{ x }}", "!vault ", "\t", "\x00", "\ufeff", "é"]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(YAML_PIECES, max_size=40).map("".join))
WORDS = st.sampled_from(["all", "hosts", "vars", "children", "lanes", "A", "nodes", "env", "link", "rank", "lane", "spark-1",
                         "settings", "default", "services", "engine", "files", "order", "mounts", "0"])  # fmt: skip
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), WORDS)
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(WORDS, below, max_size=4)),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    write_project(folder)
    return folder


def try_loading(project: Path, file: str, content: bytes) -> None:
    (project / file).write_bytes(content)
    with contextlib.suppress(ConfigError):
        recipes = load.find_recipes(project, [])
        load.load_all(project / "inventory/my", recipes, "A", environ={}, sets=[])
    (project / file).write_text(FILES[file])


@QUIET
@given(text=TEXTS)
def test_any_text(project: Path, text: str) -> None:
    for file in (HOSTS, RECIPE):
        try_loading(project, file, text.encode())


@QUIET
@given(content=st.binary())
def test_any_bytes(project: Path, content: bytes) -> None:
    try_loading(project, HOSTS, content)


@QUIET
@given(tree=TREES, file=st.sampled_from([HOSTS, RECIPE]))
def test_any_tree(project: Path, tree: Any, file: str) -> None:
    try_loading(project, file, yaml.safe_dump(tree).encode())


@QUIET
@given(data=st.data(), file=st.sampled_from([HOSTS, RECIPE]))
def test_any_value_anywhere_in_a_good_file(project: Path, data: st.DataObject, file: str) -> None:
    tree = yaml.safe_load(FILES[file])
    here = tree
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = data.draw(st.sampled_from(keys))
        below = here[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        here = below
    here[key] = data.draw(TREES)
    try_loading(project, file, yaml.safe_dump(tree).encode())


NAMES = st.one_of(st.text(), st.sampled_from(["context", "rate", "expose", "mode", "root", "env.X"]))


@QUIET
@given(name=NAMES, value=st.text())
def test_any_override(project: Path, name: str, value: str) -> None:
    recipes = load.find_recipes(project, [])
    for sets, environ in (([f"{name}={value}"], {}), ([], {f"SPARKYARD_{name.upper()}": value})):
        with contextlib.suppress(ConfigError):
            load.load_all(project / "inventory/my", recipes, "A", environ=environ, sets=sets)


@QUIET
@given(text=st.text(alphabet=string.ascii_letters + string.digits + "+-_.:~", min_size=1, max_size=12))
def test_an_unquoted_word_means_the_same_to_yaml_1_1_or_is_refused(text: str) -> None:
    value, complaint = read_plain(text)
    theirs = yaml.safe_load(f"[{text}]") if text[0] not in "-:" and ": " not in text else [value]
    if not complaint and not text.endswith(":") and isinstance(theirs[0], str | int | float | bool | None):
        assert value == theirs[0]
        assert type(value) is type(theirs[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", False),
        ("12:30", 750),
        ("0123", 83),
        ("1_000", 1000),
        ("~", None),
        ("1" * 40, int("1" * 40)),
        ("1.5e+3", 1500.0),
    ],
)
def test_what_yaml_1_1_turns_into_something_else_is_refused(text: str, value: object) -> None:
    assert yaml.safe_load(text) == value
    faults = Faults()
    marked = read_text(f"key: {text}", "x.yml", faults)
    assert marked is not None
    assert marked.fields["key"].value is UNREADABLE
    assert len(faults.found) == 1
    assert "quote it" in faults.found[0].message
    assert not is_text(text)
    quiet = Faults()
    quoted = read_text(f'key: "{text}"', "x.yml", quiet)
    assert quoted is not None
    assert (quoted.plain(), quiet.found) == ({"key": text}, [])


@pytest.mark.parametrize(
    "text", ["08:30:x", "10.0.0.1", "spark-1", "v1.2.3", "a:b", "fd2365042f56", "enp1s0f1np1", "1.2.3"]
)
def test_ordinary_words_need_no_quotes(text: str) -> None:
    assert read_plain(text) == (text, "")


def test_a_short_file_that_stands_for_a_huge_one_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    faults = Faults()
    assert read_text("\n".join(lines), "x.yml", faults) is None
    assert [str(fault) for fault in faults.found] == ["x.yml:5: more than 20000 values in one file"]


def test_a_deep_file_is_refused() -> None:
    faults = Faults()
    assert read_text("[" * 900 + "]" * 900, "x.yml", faults) is None
    assert [str(fault) for fault in faults.found] == ["x.yml:1: nested more than 32 levels deep"]
