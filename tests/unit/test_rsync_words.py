"""The words of a copy and what rsync's statuses mean."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkyard.errors import Unreachable
from sparkyard.model import RemoteFile
from sparkyard.rsync_words import Route, bytes_moved, failure, rsync, shares

ROUTE = Route("spark-2", "10.0.0.2", ("ssh", "-o", "IdentityFile=/home/a b/id"), "/m/x", "/m/x/.incoming")
FILES = (RemoteFile("a b.bin", 30, sha256="a" * 64), RemoteFile("sub/-x", 20, sha256="a" * 64))


def test_the_copy_goes_to_the_link_address_and_names_its_files_on_standard_input():
    command = rsync(ROUTE, FILES)
    assert command.words[-2:] == ("/m/x/", "10.0.0.2:/m/x/.incoming/")
    assert command.stdin == b"a b.bin\0sub/-x\0"
    [shell] = [word for word in command.words if word.startswith("--rsh=")]
    assert tuple(shlex.split(shell.removeprefix("--rsh="))) == ROUTE.ssh


def test_an_ipv6_address_is_bracketed():
    assert rsync(Route("s", "fd00::2", ("ssh",), "/a", "/b"), FILES).words[-1] == "[fd00::2]:/b/"


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 6))
def test_shares_hold_every_file_once_and_none_is_much_larger(sizes, count):
    files = [RemoteFile(f"f{number}", size, sha256="a" * 64) for number, size in enumerate(sizes)]
    parts = shares(files, count)
    assert sorted(f.path for part in parts for f in part) == sorted(f.path for f in files)
    assert len(parts) == min(count, len(files))
    totals = [sum(f.size + 1 for f in part) for part in parts]
    assert not totals or max(totals) - min(totals) <= max(sizes) + 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("      1,234,567  12%  100.00MB/s    0:00:01", 1234567),
        ("              0   0%    0.00kB/s    0:00:00 (xfr#1, to-chk=0/3)", 0),
        ("rsync error: 12 things", None),
        ("12 monkeys", None),
        ("", None),
    ],
)
def test_progress_lines_are_told_from_others(line, expected):
    assert bytes_moved(line) == expected


@pytest.mark.parametrize(
    ("status", "lines", "words"),
    [
        (
            11,
            ['rsync: write failed on "/m/x": No space left on device (28)'],
            "disk of /m/x/.incoming is full",
        ),
        (11, ["rsync: mkdir failed: No such file or directory (2)"], "could not be read or written"),
        (12, ["rsync error: error in rsync protocol data stream (code 12)"], "connection to 10.0.0.2 broke"),
        (255, ["ssh: connect to host 10.0.0.2 port 22: Connection refused"], "connection to 10.0.0.2 broke"),
        (2, ["protocol version mismatch -- is your shell clean?"], "prints text at login"),
        (127, ["sh: 1: rsync: not found"], "rsync is not installed on spark-2"),
        (23, ['rsync: [sender] link_stat "/m/x/a" failed: No such file or directory (2)'], "is not complete"),
        (23, ['symlink has no referent: "/m/x/a"'], "links that lead nowhere"),
        (255, ["me@10.0.0.2: Permission denied (publickey)."], "ssh to 10.0.0.2 was refused"),
        (13, ["something new"], "rsync ended with status 13"),
    ],
)
def test_each_failure_has_its_own_words(status, lines, words):
    error = failure(ROUTE, status, lines)
    assert words in str(error)
    assert error.next_step
    assert error.node == "spark-2"
    assert lines[0] in str(error)


def test_a_wrong_host_key_shows_its_fingerprint():
    lines = [
        "@@@@",
        "SHA256:abc.",
        "Offending key in /x/known_hosts:1",
        "Host key verification failed.",
        "rsync error",
    ]
    error = failure(ROUTE, 255, lines)
    assert isinstance(error, Unreachable)
    assert error.details == ("SHA256:abc.", "Offending key in /x/known_hosts:1")
