"""Local and remote shells against a real sshd: words, input, limits, interrupts, host keys, locks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkyard.command import Command
from sparkyard.errors import Interrupted, LockHeld, StepFailed, Unreachable
from sparkyard.known_hosts import Keys, fingerprint
from sparkyard.locks import Locks
from sparkyard.shell import LocalShell, RemoteShell
from sparkyard.ssh_words import ssh_words
from sparkyard.trust import agreed, scan, verdict
from sparkyard.world import Shell
from tests.machine import sshd as servers

pytestmark = [pytest.mark.machine, pytest.mark.skipif(os.geteuid() != 0, reason="sshd needs root")]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[servers.Sshd]:
    with servers.running(tmp_path_factory.mktemp("sshd")) as made:
        yield made


@pytest.fixture(scope="module")
def keys(server, tmp_path_factory) -> Keys:
    made = Keys(tmp_path_factory.mktemp("keys"), [])
    made.record(server.node(), agreed(scan(server.node())))
    return made


@pytest.fixture(scope="module", params=["local", "remote"])
def shell(request, server, keys) -> Iterator[Shell]:
    made = LocalShell(server.node()) if request.param == "local" else RemoteShell(server.node(), keys)
    yield made
    made.close()


def left_running(mark: str) -> bool:
    """Whether a process with the mark in its words is still there."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if mark in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                    return True
            except OSError:
                continue
    return False


def gone(mark: str) -> bool:
    """Wait until it is not; the guard gives two seconds between TERM and KILL."""
    ended = threading.Event()
    for _look in range(1200):
        if not left_running(mark):
            return True
        ended.wait(0.1)
    return False


@given(
    words=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
        max_size=5,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_word_arrives_as_it_was(shell: Shell, words: list[str]) -> None:
    done = shell.run(Command(("printf", "%s\\0", *words, "end")))
    assert done.out.decode().split("\0")[:-1] == [*words, "end"]


def test_status_outputs_and_environment(shell: Shell) -> None:
    command = Command(("sh", "-c", 'echo "$WHO"; echo err >&2; exit 7'), env=(("WHO", 'it\'s "me" $HOME'),))
    done = shell.run(command)
    assert (done.status, done.out, done.err) == (7, b'it\'s "me" $HOME\n', b"err\n")


def test_binary_input_of_megabytes(shell: Shell) -> None:
    data = bytes(range(256)) * 20_000
    assert shell.run(Command.of("cat", stdin=data)).out == data


def test_output_that_the_exit_status_overtakes_is_not_lost(shell: Shell, monkeypatch) -> None:
    monkeypatch.setattr("sparkyard.shell.DRAIN", 120.0)
    done = shell.run(Command.of("sh", "-c", "(sleep 0.5; echo late) & exit 3"))
    assert (done.status, done.out) == (3, b"late\n")


def test_a_child_that_keeps_the_streams_open_does_not_keep_us(shell: Shell) -> None:
    done = shell.run(Command.of("sh", "-c", "sleep 8640 & echo here"))
    assert (done.status, done.out) == (0, b"here\n")
    assert subprocess.run(["pkill", "-f", "^sleep 8640$"], check=False).returncode == 0


def test_lines_as_they_come(shell: Shell) -> None:
    lines: list[str] = []
    shell.run(Command.of("sh", "-c", "echo one; printf 'two\\rthree'"), on_line=lines.append)
    assert lines == ["one", "two", "three"]


def test_time_limit_names_the_command_and_leaves_nothing(shell: Shell) -> None:
    with pytest.raises(StepFailed, match=r"time limit of 0\.3 s was reached") as caught:
        shell.run(Command.of("sleep", "86391", timeout=0.3))
    assert "command: sleep 86391" in caught.value.details
    assert gone("86391")


def test_cancel_leaves_nothing_even_of_a_command_that_ignores_term(shell: Shell) -> None:
    cancel = threading.Event()
    words = ("sh", "-c", 'trap "" TERM; sleep 86392 & echo up; sleep 86392')
    with pytest.raises(Interrupted):
        shell.run(Command.of(*words), on_line=lambda _line: cancel.set(), cancel=cancel)
    assert gone("86392")


KILLED = """
import sys
from pathlib import Path
from sparkyard.command import Command
from sparkyard.known_hosts import Keys
from sparkyard.model import Link, Node
from sparkyard.shell import LocalShell, RemoteShell
host, port, key, keys, kind, mark = sys.argv[1:]
node = Node("spark-2", 1, False, host, Link(host, "lo", ()), "/r", "/m", int(port), "root", key)
shell = LocalShell(node) if kind == "local" else RemoteShell(node, Keys(Path(keys), []))
shell.run(Command.of("sh", "-c", "echo up; exec sleep " + mark), on_line=lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_sigkill_of_sparkyard_leaves_nothing(server, keys, kind) -> None:
    mark = {"local": "86393", "remote": "86394"}[kind]
    words = [server.address, str(server.port), str(server.client_key), str(keys.own_file.parent), kind, mark]
    process = subprocess.Popen([sys.executable, "-c", KILLED, *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    assert left_running(mark)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert gone(mark)


def test_unknown_host_key_is_refused_with_its_fingerprint(server, tmp_path) -> None:
    (key,) = agreed(scan(server.node()))
    with pytest.raises(Unreachable, match="is not known") as caught:
        RemoteShell(server.node(), Keys(tmp_path, [])).run(Command.of("true"))
    assert caught.value.details == (f"it shows: {fingerprint(key)}",)
    assert caught.value.next_step == "invoke trust"


def test_changed_host_key_is_refused_by_fabric_and_by_ssh_alike(server, tmp_path) -> None:
    servers.make_key(tmp_path / "other")
    keys = Keys(tmp_path, [])
    keys.record(server.node(), [paramiko.Ed25519Key.from_private_key_file(str(tmp_path / "other"))])
    with pytest.raises(Unreachable, match="is not the one on record"):
        RemoteShell(server.node(), keys).run(Command.of("true"))
    words = ssh_words(server.node(), keys.write_merged([server.node()]))
    done = subprocess.run([*words, server.address, "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr
    assert verdict(keys, server.node(), agreed(scan(server.node()))) == "changed"


def test_a_key_from_the_persons_own_known_hosts_serves_fabric_and_ssh(server, tmp_path) -> None:
    scanned = subprocess.run(
        ["ssh-keyscan", "-p", str(server.port), server.address], capture_output=True, text=True, check=True
    )
    user_file = tmp_path / "user_known_hosts"
    user_file.write_text(scanned.stdout)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(user_file)], check=True, capture_output=True)
    keys = Keys(tmp_path / "own", [user_file])
    shell = RemoteShell(server.node(), keys)
    assert shell.run(Command.of("echo", "in")).out == b"in\n"
    shell.close()
    words = ssh_words(server.node(), keys.write_merged([server.node()]))
    assert subprocess.run([*words, server.address, "true"], check=False).returncode == 0


def test_one_connection_serves_many_commands(server, keys) -> None:
    before = server.connections()
    shell = RemoteShell(server.node(), keys)
    for _run in range(5):
        shell.run(Command.of("true"))
    shell.close()
    assert server.connections() == before + 1


def test_lock_is_held_told_and_released(server, keys) -> None:
    cancelled = threading.Event()
    mine = Locks("invoke start", 0, lambda _node: None, cancelled)
    shell = RemoteShell(server.node(), keys)
    mine.take([shell])
    mine.take([shell])
    theirs = Locks("invoke stop", 0, lambda _node: None, cancelled)
    with pytest.raises(LockHeld, match=rf"pid {os.getpid()}, since .*, running: invoke start"):
        theirs.take([RemoteShell(server.node(), keys)])
    mine.release()
    theirs.take([shell])
    theirs.release()


def test_lock_wait_gets_it_when_the_other_ends(server, keys) -> None:
    cancelled = threading.Event()
    mine = Locks("invoke start", 0, lambda _node: None, cancelled)
    theirs = Locks("invoke stop", 300, lambda _node: None, cancelled)
    mine.take([RemoteShell(server.node(), keys)])
    threading.Timer(0.5, mine.release).start()
    theirs.take([LocalShell(server.node())])
    theirs.release()


def test_lost_lock_is_reported(server, keys) -> None:
    lost = threading.Event()
    locks = Locks("invoke start", 0, lambda _node: lost.set(), threading.Event())
    shell = RemoteShell(server.node(), keys)
    locks.take([shell])
    shell.close()
    assert lost.wait(120)


def test_a_dead_address_is_unreachable_with_the_line_to_try(server, keys) -> None:
    node = replace(server.node(), port=1)
    with pytest.raises(Unreachable, match="no ssh connection to") as caught:
        RemoteShell(node, keys).run(Command.of("true"))
    assert caught.value.next_step == f"ssh root@{server.address}"


def test_a_shell_that_breaks_in_its_own_way_ends_the_wait_for_its_lock(server, keys) -> None:
    class Broken(RemoteShell):
        def run(self, command, **kwargs):
            raise ZeroDivisionError

    locks = Locks("invoke start", 0, lambda _node: None, threading.Event())
    with pytest.raises(ZeroDivisionError):
        locks.take([Broken(server.node(), keys)])
