"""Files are written by the real shell: whole or not at all, secret from the first byte."""

import stat

import pytest

from sparkyard.actions import Run, WriteFile
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.executors import EXECUTORS
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings


@pytest.fixture
def place(tmp_path):
    around = surroundings(tmp_path)
    yield around
    around.close()


@pytest.fixture
def events():
    return []


@pytest.fixture
def world(place, events):
    step = Step("file", "x", "spark-1", "x", lambda _: Verdict("ok"))
    return StepWorld(place, step, events.append, {})


def act(action, world):
    EXECUTORS[type(action)](action, "spark-1", world)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("content", [b"", b"a", b"no end of line", b"\x00\xff'\"$HOME\n", b"x" * 300_000])
def test_a_file_has_exactly_its_bytes(world, tmp_path, content):
    path = tmp_path / "new folder" / "it's; a file"
    act(WriteFile(str(path), content), world)
    assert path.read_bytes() == content
    assert mode(path) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_secret_file_and_its_new_folder_are_closed_to_others(world, tmp_path):
    path = tmp_path / "secrets" / "key"
    act(WriteFile(str(path), b"k", 0o600), world)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


def test_a_file_replaces_another_and_its_mode(world, tmp_path):
    path = tmp_path / "f"
    path.write_text("old, and longer")
    act(WriteFile(str(path), b"new", 0o755), world)
    assert (path.read_bytes(), mode(path)) == (b"new", 0o755)


def test_what_a_killed_run_left_is_overwritten(world, tmp_path):
    (tmp_path / ".f.sparkyard-new").write_text("half")
    act(WriteFile(str(tmp_path / "f"), b"whole"), world)
    assert sorted(path.name for path in tmp_path.glob("*f*")) == ["f"]


def test_a_link_is_replaced_and_not_followed(world, tmp_path):
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "f").symlink_to(tmp_path / "elsewhere")
    act(WriteFile(str(tmp_path / "f"), b"ours"), world)
    assert (tmp_path / "elsewhere").read_text() == "theirs"
    assert (tmp_path / "f").read_text() == "ours"


def test_a_folder_in_the_way_is_named_and_left(world, tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(StepFailed, match="is a folder") as failure:
        act(WriteFile(str(tmp_path / "f"), b"x"), world)
    assert failure.value.node == "spark-1"
    assert not list(tmp_path.glob(".f*"))


def test_words_that_fail_show_status_and_last_lines_without_secrets(world):
    words = ("sh", "-c", "echo the key is hunter2; exit 3")
    with pytest.raises(StepFailed) as failure:
        act(Run("asking", Command(words, secrets=("hunter2",))), world)
    assert failure.value.message == "asking failed with status 3"
    assert "hunter2" not in str(failure.value)
    assert "the key is ********" in str(failure.value)


def test_streamed_words_are_seen_as_they_come_without_secrets(world, events):
    act(Run("asking", Command(("echo", "hunter2 goes"), secrets=("hunter2",)), stream=True), world)
    assert [event.message for event in events] == ["******** goes"]
    act(Run("asking", Command.of("echo", "quiet")), world)
    assert len(events) == 1
