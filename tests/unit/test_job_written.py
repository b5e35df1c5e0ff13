"""What a job has written since it was begun: asked of real folders by the node's own script, and read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sparkyard import facts
from sparkyard.command import discovered
from sparkyard.errors import CouldNotCheck
from sparkyard.job_written import Pace, Written, expected, places, shown, written_fact, written_question
from sparkyard.plan import Answers
from sparkyard.rendered_job import UNKNOWN, Expected
from tests.unit import raw
from tests.unit.job_answers import HOME, acts, both, judge, rendered

OLD, BEGUN, LATER = (1_700_000_000 + hours * 3600 for hours in (0, 1, 2))


def put(path: Path, size: int, when: int = LATER) -> Path:
    """A file of so many bytes, none of them a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (when, when))
    return path


def ask(begun: Path, *where: Path) -> Answers:
    """Ask this machine, with the words that are sent to a node."""
    asked = (written_question(str(begun), tuple(map(str, where))),)
    words = facts.command(asked)
    done = subprocess.run(words.words, input=words.stdin, capture_output=True, check=True, timeout=60)
    return facts.parse(raw.HEAD, asked, done.stdout)


def written(begun: Path, *where: Path) -> Written:
    return written_fact(ask(begun, *where), written_question(str(begun), tuple(map(str, where))))


def test_what_is_younger_than_the_record_counts_wherever_it_lies(tmp_path: Path) -> None:
    begun = put(tmp_path / "begun.json", 10, BEGUN)
    put(tmp_path / "out" / "sealed.bin", 40_960, OLD)
    put(tmp_path / "out" / "rows.bin.tmp", 8192)
    put(tmp_path / "out" / "cache" / "deep" / "with\na line end", 4096)
    seen = written(begun, tmp_path / "out", tmp_path / "not there yet")
    assert seen.since == BEGUN * 10**9
    assert list(seen.allocated.values()) == [12_288]
    assert (seen.content, seen.closed) == (12_288, False)


def test_a_file_with_two_names_in_two_nested_places_counts_once(tmp_path: Path) -> None:
    begun = put(tmp_path / "begun.json", 10, BEGUN)
    blob = put(tmp_path / "cache" / "blobs" / "ab", 8192)
    (tmp_path / "cache" / "package").hardlink_to(blob)
    assert written(begun, tmp_path / "cache", tmp_path / "cache" / "blobs").content == 8192


def test_holes_do_not_count(tmp_path: Path) -> None:
    begun = put(tmp_path / "begun.json", 10, BEGUN)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**9)
        file.seek(10**8)
        file.write(b"x" * 4096)
    assert 4096 <= written(begun, tmp_path).content <= 65_536


def test_the_rest_of_a_last_block_is_taken_and_is_no_content(tmp_path: Path) -> None:
    begun = put(tmp_path / "begun.json", 10, BEGUN)
    put(tmp_path / "small", 10)
    seen = written(begun, tmp_path)
    assert seen.content == 10
    assert sum(seen.allocated.values()) >= 10


def test_links_are_not_followed(tmp_path: Path) -> None:
    begun = put(tmp_path / "begun.json", 10, BEGUN)
    put(tmp_path / "elsewhere" / "big", 8192)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    assert written(begun, tmp_path / "out").content == 0


def test_a_job_that_was_not_begun_has_written_nothing(tmp_path: Path) -> None:
    put(tmp_path / "out" / "rows", 4096)
    assert written(tmp_path / "begun.json", tmp_path / "out") == Written(None, {}, 0, closed=False)


def test_a_record_from_the_future_tells_nothing(tmp_path: Path) -> None:
    """Of a clock that was put back since: nothing would ever be younger."""
    begun = put(tmp_path / "begun.json", 10, 32_503_680_000)  # the year 3000
    put(tmp_path / "out" / "rows", 4096)
    assert written(begun, tmp_path / "out") == Written(None, {}, 0, closed=False)


def answered(text: str, status: int = 0) -> Written:
    asked = written_question("/begun", ("/out",))
    return written_fact(raw.answers(raw.HEAD, {asked: (status, text, "told")}), asked)


def test_an_answer_is_read_by_filesystem() -> None:
    text = (
        "written 1\nsince 1700000000.000000001\nplace ab 9\nplace ab 9\nplace cd 10\n"
        "held 9 4096 10\nheld 10 512 512\nclosed\n//done\n"
    )
    assert answered(text) == Written(1_700_000_000_000_000_001, {"ab": 4096, "cd": 512}, 522, closed=True)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("written 1\nsince none\n", 0),
        ("written 2\nsince none\n//done\n", 0),
        ("written 1\nsince 17\n//done\n", 0),
        ("written 1\nsince none\nheld 9 x 1\n//done\n", 0),
        ("", 124),
    ],
)
def test_an_answer_that_is_none_is_not_taken_for_nothing(text: str, status: int) -> None:
    with pytest.raises(CouldNotCheck):
        answered(text, status)


# --- how much it will be ----------------------------------------------------------------------------------------------


ROWS = {"path": "{{ root }}/rows/rows-{{ rank }}.bin"}
ROOM = {"path": "{{ root }}", "bytes": "900"}


@pytest.mark.parametrize(
    ("makes", "room", "wanted"),
    [
        ([ROWS | {"bytes": "40"}], [ROOM], Expected(40)),
        ([ROWS | {"bytes": "40"}, {"path": "{{ root }}/rows/map", "bytes": "2"}], [], Expected(42)),
        ([ROWS | {"at_least": "40"}], [ROOM], Expected(900, at_most=True)),
        (
            [ROWS | {"bytes": "40"}, {"path": "{{ root }}/rows/map"}],
            [ROOM, ROOM],
            Expected(1800, at_most=True),
        ),
        ([ROWS | {"at_least": "40"}], [], UNKNOWN),
        ([], [], UNKNOWN),
    ],
)
def test_the_size_is_that_of_the_outputs_or_at_most_the_room(makes, room, wanted) -> None:
    (job,) = rendered(makes=makes, room=room).jobs
    assert expected(job, "spark-1") == wanted


@pytest.mark.parametrize(
    ("wanted", "content", "told"),
    [
        (Expected(40), 10, (10, 40)),
        (Expected(40), 41, (40, 40)),  # a record beside the outputs
        (Expected(900, at_most=True), 899, (899, 900)),
        (Expected(900, at_most=True), 901, (901, 0)),  # the recipe's word does not hold
        (UNKNOWN, 7, (7, 0)),
        (UNKNOWN, 0, (0, 0)),
    ],
)
def test_more_than_was_expected_is_never_of_less(wanted, content, told) -> None:
    assert shown(wanted, content) == told


def test_the_run_knows_where_each_rank_is_measured() -> None:
    (run,) = acts(judge("job:rows@spark-1", *both()))
    assert [rank.places for rank in run.ranks] == [(f"{HOME}/rows",)] * 2
    assert [rank.expected for rank in run.ranks] == [Expected(4096)] * 2


def test_it_is_measured_where_there_is_room_for_it_and_where_its_outputs_lie() -> None:
    (job,) = rendered(room=[ROOM, ROOM]).jobs
    top = HOME.replace("/home/spark", discovered("home"))
    assert places(job, "spark-2") == (top, f"{top}/rows")


def test_the_rate_looks_back_a_minute() -> None:
    pace = Pace()
    assert pace.rate(1000, 0.0) == 0
    assert pace.rate(3000, 10.0) == 200
    for now in (30.0, 50.0, 70.0):
        pace.rate(3000, now)
    assert pace.rate(6000, 90.0) == pytest.approx(50)
    assert pace.rate(0, 100.0) == 0  # it began anew
