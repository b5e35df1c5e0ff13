"""Folders that services keep: what lies there counts, what is still to come must fit, what other settings left is named."""

from __future__ import annotations

import os

import pytest

from sparkyard.errors import ConfigError, CouldNotCheck
from sparkyard.kept import Kept, left_beside, parse_room, to_come
from sparkyard.plan import Answer, Answers
from sparkyard.recipe import KeptSpec
from sparkyard.render import render_lane
from sparkyard.render_kept import kept_folders
from sparkyard.steps.preflight import preflight_steps
from tests.unit import raw, sample
from tests.unit.test_checkpoint_answers import ask

CHOSEN = {"kind": "chosen", "why": "test"}
ONE = Kept("cache", "/yard/cache/one", 100)


def kept(**changes):
    data = sample.recipe_data()
    spec = {
        "path": "{{ root }}/cache/{{ lane.streams }}",
        "bytes": "{{ lane.streams * 10 }}",
        "about": "a cache",
    }
    data["kept"] = {"cache": {**spec, "source": CHOSEN, **changes}}
    return data


def answer(used="0", available=500, fs="ab", beside=()):
    lines = [
        f"kept 1\nfs {fs}\navailable {available}\nat /yard\nused {used}\n",
        *(f"beside {b}\n" for b in beside),
    ]
    return Answer(0, "".join(lines) + "//done\n")


def answers(**changes):
    return Answers("spark-1", {ONE.asked: answer(**changes)})


def test_a_lane_s_folders_are_rendered_for_each_node():
    lane = sample.lane(data=kept())
    (found,) = kept_folders(lane, lane.nodes[1], {})
    assert found == Kept("cache", "<discovered: home>/.local/share/sparkyard/lanes/T/cache/4", 40)
    assert render_lane(lane, {}).kept["spark-2"] == (found,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "{{ root }}/{{ lane.strems }}"}, r"kept\.cache\.path: lane\.strems is not known"),
        ({"path": "relative"}, r"kept\.cache\.path: path 'relative' is not absolute"),
        ({"bytes": "{{ 0.5 }}"}, r"kept\.cache\.bytes: '0\.5' is not a whole number of bytes"),
        ({"bytes": "64 GiB"}, r"kept\.cache\.bytes: '64 GiB' is not a whole number of bytes"),
    ],
)
def test_wrong_folders_are_faults(changes, message):
    lane = sample.lane(data=kept(**changes))
    with pytest.raises(ConfigError, match=message):
        kept_folders(lane, lane.head, {})
    with pytest.raises(ConfigError, match=message):
        render_lane(lane, {})


@pytest.mark.parametrize(("used", "missing"), [("0", 100), ("60", 40), ("160", 0), ("unknown", 0)])
def test_what_lies_there_is_not_asked_for_again(used, missing):
    assert to_come(answers(used=used), [ONE]) == {"ab": missing}


def test_folders_of_one_filesystem_add_up():
    two = Kept("spill", "/yard/spill/one", 7)
    both = Answers("spark-1", {ONE.asked: answer(), two.asked: answer(used="3")})
    assert to_come(both, [ONE, two]) == {"ab": 104}


def test_what_other_settings_left_is_named_with_the_way_to_be_rid_of_it():
    assert left_beside(answers(beside=["two"]), [ONE]) == (
        "cache: two was written with other settings, and is not used by these; to be rid of it: sudo rm -r /yard/cache/two",
    )


@pytest.mark.parametrize(
    "bad", [Answer(1, "", "no stat"), Answer(0, answer().out[:-9]), Answer(0, "//done\n"), None]
)
def test_an_answer_that_is_not_whole_is_no_answer(bad):
    given = {} if bad is None else {ONE.asked: bad}
    with pytest.raises(CouldNotCheck):
        parse_room(Answers("spark-1", given), ONE)


def test_the_node_counts_and_lists(tmp_path):
    folder = tmp_path / "caches" / "one"
    here = Kept("cache", str(folder), 1 << 20)

    def room():
        return parse_room(Answers("spark-1", {here.asked: ask("ask_kept", folder)}), here)

    assert (room().used, room().beside, room().at) == (0, (), str(tmp_path))
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "caches" / "two words").mkdir()
    (tmp_path / "caches" / "a file").touch()
    status = os.statvfs(tmp_path)
    seen = room()
    assert 100_000 <= (seen.used or 0) < 200_000
    assert seen.beside == ("two words",)
    assert abs(seen.available - status.f_bavail * status.f_frsize) < 1 << 30


GIB = 1 << 30


@pytest.mark.parametrize(
    ("used", "free", "says"),
    [
        ("0", 30, "32.2 GB of disk are free on /home; expected 64.4 GB"),
        ("0", 60, ""),
        (str(40 * GIB), 19, "20.4 GB of disk are free on /home; expected 21.5 GB"),
        (str(40 * GIB), 20, ""),
    ],
)
def test_a_start_wants_room_for_what_is_still_to_come_and_no_more(used, free, says):
    data = kept(bytes=str(40 * GIB))
    data["limits"]["disk"] = 20 * GIB
    lane = sample.lane(data=data)
    rendered = render_lane(lane, {})
    step = next(s for s in preflight_steps(lane, rendered) if s.id == "preflight:disk@spark-1")
    disk = (0, f"disk 1\nfs ab\navailable {free * GIB}\nat /home\n//done\n", "")
    room = (0, answer(used=used, available=free * GIB, beside=["old"]).out, "")
    verdict = step.judge(raw.answers(raw.HEAD, {step.questions[1]: disk, step.questions[2]: room}))
    assert verdict.state == ("blocked" if says else "ok")
    assert not says or verdict.reason == says
    assert says or "old was written with other settings" in verdict.details[0]


def test_the_bytes_are_text_or_a_number_in_quotes():
    with pytest.raises(ValueError, match="bytes"):
        KeptSpec.model_validate({"path": "/a", "bytes": 5, "about": "a", "source": CHOSEN})
