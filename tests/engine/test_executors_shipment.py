"""The pipeline that ships images, with plain programs in place of docker: who fails, who is cut off, what is left."""

import fcntl
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparkyard.executors.shipment import Cargo, Gathering, Parcel, Visit, ship

BYTES = 3_000_000
SOURCE = ("head", "-c", str(BYTES), "/dev/zero")
ENDLESS = ("cat", "/dev/zero")
SINK = ("sh", "-c", "exec cat > /dev/null")


def parcel(*words, on_bytes=lambda _: None):
    return Parcel(words, on_bytes)


def keeping(path):
    return parcel("sh", "-c", 'exec cat > "$0"', str(path))


FILTER = (
    "sh",
    "-c",
    'read -r layers; read -r held; read -r nothing; printf "left-out\\t7\\tsha256:a\\n" >&2; exec cat',
)
LAYERS = ("sha256:a", "sha256:b")


def send(parcels, source=SOURCE, cancelled=None):
    ship(parcels, Cargo(source), cancelled or threading.Event())
    return [(one.save.status, one.load.status) for one in parcels]


def gone(pid, seconds=120):
    """Whether a process ends within some seconds."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def test_every_receiver_gets_every_byte(tmp_path):
    parcels = [keeping(tmp_path / str(n)) for n in range(3)]
    assert send(parcels) == [(0, 0)] * 3
    assert [(tmp_path / str(n)).stat().st_size for n in range(3)] == [BYTES] * 3
    assert {one.sent for one in parcels} == {BYTES}


def test_a_receiver_that_fails_does_not_stop_the_others(tmp_path):
    bad = parcel("sh", "-c", "echo disk full; exit 3")
    assert send([bad, keeping(tmp_path / "good")]) == [(0, 3), (0, 0)]
    assert bad.load is not None
    assert bad.load.said == ("disk full",)
    assert (tmp_path / "good").stat().st_size == BYTES


def test_when_all_receivers_are_gone_the_source_ends():
    ((save, load),) = send([parcel("sh", "-c", "exit 4")], ENDLESS)
    assert load == 4
    assert save is not None
    assert save < 0


def test_a_source_that_fails_is_told_apart_from_its_receiver(tmp_path):
    one = keeping(tmp_path / "f")
    assert send([one], ("sh", "-c", "echo no such image >&2; exit 1")) == [(1, 0)]
    assert one.save is not None
    assert one.save.said == ("no such image",)


@pytest.mark.parametrize(
    "receiver", ["exec sleep 1000", "exec cat >/dev/null", "trap '' TERM; while :; do sleep 1; done"]
)
def test_cancelling_leaves_nothing_running(receiver):
    cancelled = threading.Event()
    one = parcel("sh", "-c", receiver, on_bytes=lambda _: cancelled.set())
    threading.Timer(0.3, cancelled.set).start()
    send([one], ENDLESS, cancelled)
    assert one.cancelled
    assert one.save is not None
    assert one.load is not None
    assert gone(one.save.process.pid)
    assert gone(one.load.process.pid)


def test_both_ends_go_when_sparkyard_is_killed(tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    told = os.open(
        pids, os.O_RDWR
    )  # open at both ends all the time, so that no writer finds it without a reader
    code = """
import sys, threading
from sparkyard.executors.shipment import Cargo, Parcel, ship
said = 'echo $$ > "$0"; exec cat'
receiver = Parcel(("sh", "-c", said + " > /dev/null", sys.argv[1]), lambda _: None)
ship([receiver], Cargo(("sh", "-c", said + " /dev/zero", sys.argv[1])), threading.Event())
"""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code, str(pids)], cwd=root) as process:
        said = b""
        while said.count(b"\n") < 2 and select.select([told], [], [], 120)[0]:
            said += os.read(told, 100)
        process.kill()
    os.close(told)
    assert len(said.split()) == 2
    assert all(gone(int(pid)) for pid in said.split())


def test_those_that_look_at_the_same_time_share_one_source(tmp_path, monkeypatch):
    monkeypatch.setattr("sparkyard.executors.shipment.GATHER", 300.0)
    log = tmp_path / "sources"
    source = ("sh", "-c", f'echo once >> "$0"; {" ".join(SOURCE)}', str(log))
    gathering, start = Gathering(), threading.Barrier(3)
    parcels = [keeping(tmp_path / str(n)) for n in range(3)]

    def one(part):
        with Visit(gathering) as visit:
            start.wait()
            visit.send(part, Cargo(source), threading.Event())

    threads = [threading.Thread(target=one, args=(part,)) for part in parcels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.read_text() == "once\n"
    assert [part.sent for part in parcels] == [BYTES] * 3


def test_one_that_needs_nothing_holds_up_nobody(tmp_path):
    gathering = Gathering()
    with Visit(gathering) as sends:
        with Visit(gathering):
            pass
        part = keeping(tmp_path / "f")
        sends.send(part, Cargo(SOURCE), threading.Event())
    assert part.sent == BYTES
    assert gathering.looking == 0


def trimmed(parcels, source=SOURCE, words=FILTER, cancelled=None):
    ship(parcels, Cargo(source, words, LAYERS), cancelled or threading.Event())
    return [tuple(part and part.status for part in (one.save, one.trim, one.load)) for one in parcels]


def test_a_filter_is_told_what_is_there_and_tells_what_it_left_out(tmp_path):
    one = Parcel(("sh", "-c", 'exec cat > "$0"', str(tmp_path / "f")), lambda _: None, held=1)
    told = ("sh", "-c", 'cat; printf "left-out\\t7\\tsha256:a\\n" >&2')
    assert trimmed([one], ("echo", "archive"), told) == [(0, 0, 0)]
    head = b'["sha256:a", "sha256:b"]\n["sha256:a"]\n\n'
    assert (tmp_path / "f").read_bytes() == head + b"archive\n"
    assert (one.sent, one.left_out, one.layers_left_out) == (len(head) + 8, 7, 1)


def test_what_all_receivers_have_is_left_out_and_nothing_else(tmp_path):
    """The one that has the fewest layers lacks all that any other lacks."""
    asked = ("sh", "-c", 'read -r layers; read -r held; echo "$held"; read -r nothing; exec cat > /dev/null')
    for counts, there in (((2, 1, 2), b'["sha256:a"]\n'), ((2, 2, 2), b'["sha256:a", "sha256:b"]\n')):
        words = [("sh", "-c", 'exec cat > "$0"', str(tmp_path / str(n))) for n in range(3)]
        parcels = [Parcel(word, lambda _: None, count) for word, count in zip(words, counts, strict=True)]
        assert trimmed(parcels, words=asked) == [(0, 0, 0)] * 3
        assert [(tmp_path / str(n)).read_bytes() for n in range(3)] == [there] * 3


def test_one_receiver_that_has_nothing_is_sent_everything_without_a_filter(tmp_path):
    parcels = [keeping(tmp_path / "0"), keeping(tmp_path / "1")]
    parcels[0].held = 2
    assert trimmed(parcels) == [(0, None, 0)] * 2
    assert [one.sent for one in parcels] == [BYTES] * 2


def test_a_filter_that_fails_ends_its_source_and_is_told_apart(tmp_path):
    one = keeping(tmp_path / "f")
    one.held = 1
    ((save, trim, load),) = trimmed([one], ENDLESS, ("sh", "-c", "echo cannot be read >&2; exit 1"))
    assert save is not None
    assert save < 0
    assert (trim, load) == (1, 0)
    assert one.trim is not None
    assert one.trim.said == ("cannot be read",)


def test_a_program_that_cannot_be_started_is_told_to_all_and_leaves_nothing_running(tmp_path):
    missing = (str(tmp_path / "no-such-program"),)
    (tmp_path / "refused").write_text("")
    refused = (str(tmp_path / "refused"),)
    for source, words, last in (
        (ENDLESS, missing, SINK),
        (ENDLESS, refused, SINK),
        (missing, FILTER, SINK),
        (ENDLESS, FILTER, missing),
    ):
        parcels = [Parcel(SINK, lambda _: None, held=1), Parcel(last, lambda _: None, held=1)]
        trimmed(parcels, source, words)
        assert all(one.done.is_set() and not one.cancelled and not one.whole for one in parcels)
        assert all("No such file" in one.unbegun or "Permission denied" in one.unbegun for one in parcels)
        begun = [part for one in parcels for part in (one.save, one.trim, one.load) if part]
        assert all(gone(part.process.pid) for part in begun)


def test_a_filter_that_falls_over_before_it_reads_is_told_apart(tmp_path):
    one = keeping(tmp_path / "f")
    one.held = 1
    ((_, trim, _),) = trimmed([one], ENDLESS, ("sh", "-c", "exec <&-; echo cannot be read >&2; exit 1"))
    assert trim == 1
    assert one.trim is not None
    assert one.trim.said == ("cannot be read",)


def test_a_head_of_the_archive_that_no_pipe_holds_is_given_all_the_same(tmp_path, monkeypatch):
    """A person who has many pipes open gets small ones."""

    def narrow(pipe):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)

    monkeypatch.setattr("sparkyard.executors.shipment.wide", narrow)
    layers = tuple(f"sha256:{n:064}" for n in range(127))
    one = Parcel(("sh", "-c", 'exec cat > "$0"', str(tmp_path / "f")), lambda _: None, held=127)
    ship([one], Cargo(("echo", "archive"), FILTER, layers), threading.Event())
    assert (tmp_path / "f").read_bytes() == b"archive\n"


def test_cancelling_ends_the_filter_too():
    cancelled = threading.Event()
    one = Parcel(("sh", "-c", "exec cat >/dev/null"), lambda _: cancelled.set(), held=1)
    trimmed([one], ENDLESS, cancelled=cancelled)
    assert one.cancelled
    assert all(part is not None and gone(part.process.pid) for part in (one.save, one.trim, one.load))
