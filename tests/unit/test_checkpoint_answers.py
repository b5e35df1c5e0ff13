"""Answers of ask_tree and ask_disk, as the real script gives them, whole and cut."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkyard.errors import CouldNotCheck
from sparkyard.guard import node_script
from sparkyard.plan import Answer
from sparkyard.trees import parse_disk, parse_ledger, parse_tree

ODD = ["plain", "two words", "new\nline", "//done", "tab\there", "quote'\"$x", "*", "ü", "-n", "a\n//f\t1"]


def ask(function, *arguments, shell="dash"):
    words = [shell, "-c", f'set -u; {node_script("tree.sh")}\n"$@"', shell, function, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, check=False)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for name in ODD:
        (folder / "sub" / name.replace("/", "_")).write_text(name)
    (folder / ".incoming").mkdir()
    (folder / ".incoming" / "x.part").write_bytes(b"x" * 9000)
    (folder / "link").symlink_to("/etc/passwd")
    (tmp_path / "ledger").write_text("f00\t1\t2\t3\t4\tsha256:abc\nhalf a li")
    (tmp_path / "seal").write_text('{\n "a": 1\n}\n')
    return tmp_path


def ask_all(place):
    return ask("ask_tree", place / "folder", place / "ledger", place / "seal")


def test_names_of_any_kind_come_back(place):
    tree = parse_tree(ask_all(place), "spark-1", "it")
    names = {path.removeprefix("sub/"): seen for path, seen in tree.files.items() if path.startswith("sub/")}
    assert set(names) == {name.replace("/", "_") for name in ODD}
    for path, seen in tree.files.items():
        status = os.lstat(place / "folder" / path)
        key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        assert (seen.inode, seen.size, seen.mtime_ns, seen.ctime_ns) == key
    assert tree.files["link"].kind == "l"
    assert tree.incoming["x.part"].size == 9000
    assert tree.ledger == {("f00", 1, 2, 3, 4): "sha256:abc"}
    assert tree.seal == '{\n "a": 1\n}'


def test_an_answer_cut_anywhere_is_no_answer(place):
    whole = ask_all(place)
    assert whole.status == 0
    end = len(whole.out.rstrip("\n"))
    for cut in range(end):
        with pytest.raises(CouldNotCheck):
            parse_tree(Answer(0, whole.out[:cut]), "spark-1", "it")


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    tree = parse_tree(
        ask("ask_tree", tmp_path / "no" / "folder", tmp_path / "l", tmp_path / "s"), "spark-1", "it"
    )
    assert (tree.files, tree.incoming, tree.ledger, tree.seal) == ({}, {}, {}, "")


def test_a_failed_question_is_no_answer(place):
    with pytest.raises(CouldNotCheck, match="no right"):
        parse_tree(Answer(1, ask_all(place).out, "find: no right"), "spark-1", "it")


def test_links_are_followed_in_what_is_offered(tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "abc").write_text("content")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "model").symlink_to("../blobs/abc")
    tree = parse_tree(ask("ask_offer", tmp_path / "snapshot"), "spark-1", "it")
    assert tree.files["model"].kind == "f"
    assert tree.files["model"].size == 7
    assert ask("ask_offer", tmp_path / "nothing").status == 2


def test_the_disk_of_a_folder_yet_to_be_made(tmp_path):
    answer = ask("ask_disk", tmp_path / "a" / "b")
    disk = parse_disk(answer, "spark-1", "disk")
    status = os.statvfs(tmp_path)
    assert disk.at == str(tmp_path)
    assert abs(disk.available - status.f_bavail * status.f_frsize) < 1 << 30
    for cut in range(len(answer.out.rstrip("\n"))):
        with pytest.raises(CouldNotCheck):
            parse_disk(Answer(0, answer.out[:cut]), "spark-1", "disk")


KEYS = st.tuples(
    st.text("0123456789abcdef", min_size=1, max_size=16),
    st.integers(0, 2**63),
    st.integers(0, 2**50),
    st.integers(-(2**60), 2**62),
    st.integers(0, 2**62),
)


@given(
    st.dictionaries(KEYS, st.sampled_from(["sha256:" + "a" * 64, "blob:" + "b" * 40]), max_size=5), st.data()
)
def test_a_ledger_cut_anywhere_proves_nothing_wrong(entries, data):
    text = "".join("\t".join(map(str, (*key, value))) + "\n" for key, value in entries.items())
    assert parse_ledger(text) == entries
    cut = parse_ledger(text[: data.draw(st.integers(0, len(text)))])
    for key, value in list(cut.items())[:-1]:
        assert entries[key] == value
    assert all(entries.get(key, "").startswith(value) for key, value in cut.items())
