"""``invoke init``: questions to answers to a sound inventory, and never over another one unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sparkyard import load
from sparkyard.errors import ConfigError, UsageError
from sparkyard.loading.init import gather, hosts_text, questions


@pytest.mark.parametrize(("count", "lane", "asked"), [(2, "A", 9), (4, "B", 19)])
def test_the_defaults_make_a_sound_inventory(tmp_path: Path, count: int, lane: str, asked: int) -> None:
    assert len(questions(count)) == asked
    path = load.init_inventory(tmp_path / "my", {"nodes": str(count)}, None)
    inventory = load.load_inventory(path.parent, environ={}, sets=[])
    assert len(inventory.nodes) == count
    assert (inventory.default_lane, inventory.revert_to) == (lane, "kit")
    assert inventory.nodes[1].host == "spark-2.local"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["hosts.yml"]


@pytest.mark.parametrize(("count", "name"), [(2, "A"), (4, "B")])
def test_what_init_writes_resolves_against_the_recipes_that_there_are(
    tmp_path: Path, count: int, name: str
) -> None:
    project = Path(__file__).parents[2]
    folder = load.init_inventory(tmp_path / "my", {"nodes": str(count)}, None).parent
    lane = load.load_all(folder, load.find_recipes(project, []), None, environ={}, sets=[])
    assert (lane.name, len(lane.nodes)) == (name, count)


def test_answers_come_from_flags_then_from_the_person(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []

    def ask(text: str, default: str) -> str:
        heard.append((text, default))
        return "10.9.9.9" if "spark-1: IPv4" in text else ""

    path = load.init_inventory(
        tmp_path, {"nodes": "2", "spark-2.host": "yes", "spark-2.hcas": "0123, b"}, ask
    )
    head, worker = load.load_inventory(tmp_path, environ={}, sets=[]).nodes
    assert (head.link.address, worker.host, worker.link.hcas) == ("10.9.9.9", "yes", ("0123", "b"))
    assert ("Which lane is used when none is given?", "A") in heard
    assert not any("spark-2: host" in text for text, _ in heard)
    assert 'ansible_host: "yes"' in path.read_text()


def test_a_person_is_asked_again_with_the_reason(tmp_path: Path) -> None:
    answers = iter(["3", "2", *[""] * 20])
    heard: list[str] = []

    def ask(text: str, default: str) -> str:
        heard.append(text)
        return next(answers)

    gather({}, ask)
    assert heard[:2] == [
        "How many Sparks (2 or 4)?",
        '2 or 4 is expected, found "3". How many Sparks (2 or 4)?',
    ]


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"nodes": "3"}, 'init: nodes: 2 or 4 is expected, found "3"'),
        (
            {"spark-2.adress": "10.0.0.2"},
            "init: spark-2.adress is not a known answer (did you mean spark-2.address?)",
        ),
        ({"spark-1.address": "10.0.0"}, 'init: spark-1.address: an IPv4 address is expected, found "10.0.0"'),
    ],
)
def test_wrong_flags_are_refused(tmp_path: Path, given_: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load.init_inventory(tmp_path / "my", given_, None)
    assert str(caught.value) == message
    assert not (tmp_path / "my").exists()


def test_answers_that_do_not_fit_together_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load.init_inventory(Path("my"), {"spark-1.address": "10.0.0.2"}, None)
    assert str(caught.value) == (
        "1 fault in the configuration; nothing was run\n"
        "  my/hosts.yml:15: spark-2.link.address: 10.0.0.2 belongs to spark-1 too; each node has its own\n"
        "  next: answer again: invoke init"
    )
    assert list(Path("my").iterdir()) == []


def test_an_inventory_that_is_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = Path("my/hosts.yml")
    mine.parent.mkdir()
    mine.write_text("mine\n")
    with pytest.raises(UsageError) as caught:
        load.init_inventory(Path("my"), {}, None)
    assert str(caught.value) == (
        "my/hosts.yml is there already; nothing was written\n  next: edit it, or invoke init --force"
    )
    assert mine.read_text() == "mine\n"
    load.init_inventory(Path("my"), {}, None, replace=True)
    assert Path("my/hosts.yml~").read_text() == "mine\n"
    load.load_inventory(Path("my"), environ={}, sets=[])


@given(word=st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_any_word_is_written_so_that_yaml_gives_it_back(word: str) -> None:
    answers = gather({"spark-2.user": "x"}, None) | {"spark-2.user": word}
    tree = yaml.safe_load(hosts_text(answers))
    assert tree["all"]["children"]["sparks"]["hosts"]["spark-2"]["ansible_user"] == word
