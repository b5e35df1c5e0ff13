"""Command lines in one normal form: ways to write one thing are the same, and one changed word is seen."""

from __future__ import annotations

import pytest

from sparkyard.normal_form import Difference, differences, of_env, of_run, of_words, split


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docker run -d --gpus=all i", "docker run --detach --gpus all i"),
        ("docker run --gpus all --network host i", "docker run --net=host --gpus all i"),
        ("docker run -v /a:/b:ro i", "docker run --mount type=bind,source=/a,target=/b,readonly i"),
        ("docker run -v/a:/b:ro i", "docker run --volume=/a:/b:ro,z i"),
        ("docker run -v /a:/b i", "docker run --mount type=bind,src=/a,dst=/b i"),
        ("docker run --device /dev/infiniband i", "docker run --device=/dev/infiniband:/dev/infiniband i"),
        ("docker run --device /dev/a i", "docker run --device=/dev/a:/dev/a:rwm i"),
        ("docker run --ulimit memlock=-1 i", "docker run --ulimit memlock=-1:-1 i"),
        ("docker run -e A=1 -e B='x y' i", 'docker run --env B="x y" --env=A=1 i'),
        ("docker run --name x --restart no --pull never --label a=b --init i", "docker run --init i"),
        ("docker run --init image", "docker run --init another"),
        ("i serve --a 1 --b=2", "i serve --b 2 --a=1"),
        ("i --spec '{\"a\": {\"b\": [1, 2]}}'", "i --spec '{\"a\":{\"b\":[1,2]}}'"),
        ("i --sizes 1 2 4 --x", "i --x --sizes 1 2 4"),
        ("i --sizes \\\n 1", "i --sizes 1"),
    ],
)  # fmt: skip
def test_two_ways_to_write_one_thing_are_the_same(one, other):
    assert list(differences(of_run(split(one)), of_run(split(other)))) == []


@pytest.mark.parametrize(
    ("one", "other", "seen"),
    [
        ("docker run --gpus all i", "docker run i", ("options", "--gpus", "all", None)),
        ("docker run --privileged i", "docker run i", ("options", "--privileged", "", None)),
        ("docker run i", "docker run --restart always i", ("options", "--restart", None, "always")),
        ("docker run --ulimit a=1 i", "docker run --ulimit a=2 i", ("options", "--ulimit.a", "1", "2")),
        (
            "docker run --device /dev/a i",
            "docker run --device /dev/a:/dev/a:r i",
            ("options", "--device./dev/a", "", ":r"),
        ),
        ("docker run --cap-add X i", "docker run i", ("options", "--cap-add.X", "", None)),
        ("docker run -v /a:/b i", "docker run -v /a:/b:ro i", ("mounts", "/b", "/a", "/a:ro")),
        ("docker run -v /c:/b i", "docker run -v /a:/b i", ("mounts", "/b", "/c", "/a")),
        ("docker run -e A=1 i", "docker run -e A=01 i", ("env", "A", "1", "01")),
        ("docker run -e A= i", "docker run i", ("env", "A", "", None)),
        ("i serve x", "i serve y", ("words", "1", "x", "y")),
        ("i --a 1", "i --a 2", ("words", "--a", "1", "2")),
        ("i --sizes 1 2", "i --sizes 2 1", ("words", "--sizes", "1 2", "2 1")),
        ("i --set a=1 --set b=2", "i --set a=1", ("words", "--set", "a=1 b=2", "a=1")),
        ('i --j {"a":1}', 'i --j {"a":2}', ("words", "--j", "{a:1}", "{a:2}")),
    ],
)
def test_one_changed_word_is_seen(one, other, seen):
    assert list(differences(of_run(split(one)), of_run(split(other)))) == [Difference(*seen)]


def test_marks_stay_whole_in_every_place():
    text = "docker run -v <discovered: home>/x:/y:ro -e GID=<discovered: gid.rocep1s0f1> i --a <unlocked: config>"
    form = of_run(split(text))
    assert form.mounts == {"/y": "<discovered: home>/x:ro"}
    assert form.env == {"GID": "<discovered: gid.rocep1s0f1>"}
    assert form.words == {"--a": "<unlocked: config>"}


def test_variables_of_environment_files_count_and_those_of_the_line_win():
    files = {"/r/a.env": "A=1\nB='x' # y\n"}
    form = of_run(split("docker run --env-file /r/a.env --env-file /other -e A=2 i"), files)
    assert form.env == {"A": "2", "B": "'x' # y"}
    assert form.options == {"--env-file": "/other"}


def test_negative_numbers_and_words_before_the_first_flag_keep_their_place():
    assert of_words(["serve", "/model", "--low", "-2", "-v"]) == {
        "0": "serve",
        "1": "/model",
        "--low": "-2",
        "-v": "",
    }
    assert of_env(split("-e A=1 export B=2 --env=C=3 D")) == {"A": "1", "B": "2", "C": "3", "D": "$D"}


def test_a_line_without_an_end_of_its_quotes_is_refused():
    with pytest.raises(ValueError, match="No closing quotation"):
        split("i 'x")
