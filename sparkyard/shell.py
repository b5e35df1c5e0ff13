"""Runs commands on nodes: own subprocesses here, fabric elsewhere. The only importer of fabric and paramiko.

Every command runs inside the guard (``scripts/node/guard.sh``), so that a time limit, an interrupt, a broken connection or the
death of sparkyard leaves nothing running on a node. Host keys are always checked, against ``known_hosts.Keys``.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparkyard.command import Command
from sparkyard.ending import ending
from sparkyard.errors import Interrupted, StepFailed, Unreachable
from sparkyard.guard import guarded
from sparkyard.model import Node
from sparkyard.streams import Output
from sparkyard.world import Completed, OnLine

if TYPE_CHECKING:
    import paramiko

    from sparkyard.known_hosts import Keys

POLL = 0.05
"""Seconds between looks at the cancel signal while a command runs."""

DRAIN = 2.0
"""Seconds that output gets to arrive after the command has ended."""

CONNECT_TRIES = (0.0, 1.0, 2.0)
"""Seconds to wait before each try to connect."""


class Watchdog:
    """Decides when a running command must end: cancelled, or over its time limit."""

    def __init__(self, node: Node, command: Command, cancels: tuple[threading.Event, ...]) -> None:
        self._node, self._command, self._cancels = node, command, cancels
        self._deadline = None if command.timeout is None else time.monotonic() + command.timeout
        self.late = False

    def bites(self) -> bool:
        self.late = self._deadline is not None and time.monotonic() > self._deadline
        return self.late or any(cancel.is_set() for cancel in self._cancels)

    def error(self, done: Completed) -> StepFailed | Interrupted:
        shown = self._command.shown()
        if self.late:
            limit = f"the time limit of {self._command.timeout:g} s was reached, the command was ended"
            return StepFailed(limit, node=self._node.name, details=[f"command: {shown}", *done.last_lines()])
        return Interrupted("interrupted", node=self._node.name)


class LocalShell:
    """Runs commands on this machine."""

    def __init__(self, node: Node, cancelled: threading.Event | None = None) -> None:
        self._node = node
        self._cancelled = cancelled or threading.Event()

    @property
    def node(self) -> Node:
        return self._node

    def run(
        self, command: Command, *, on_line: OnLine | None = None, cancel: threading.Event | None = None
    ) -> Completed:
        """See ``world.Shell.run``."""
        inner, payload = guarded(command)
        dog = Watchdog(self._node, command, (cancel or self._cancelled,))
        process = subprocess.Popen(
            inner.argv(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        outputs = (Output(on_line), Output(on_line))
        pumps = (
            _thread(_send, process, payload),
            _thread(_pump, process.stdout, outputs[0]),
            _thread(_pump, process.stderr, outputs[1]),
        )
        bitten = _wait(process, dog)
        for pump in pumps:
            pump.join(DRAIN)  # a child that outlives its parent keeps the streams open
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.close()
        done = Completed(process.returncode, outputs[0].close(), outputs[1].close())
        if bitten:
            raise dog.error(done)
        return done

    def close(self) -> None:
        """Nothing to close on this machine."""


def _thread(target: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _send(process: subprocess.Popen[bytes], payload: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(payload)
        process.stdin.flush()


def _pump(pipe: Any, output: Output) -> None:
    with pipe:
        while data := pipe.read1(65536):
            output.feed(data)


def _wait(process: subprocess.Popen[bytes], dog: Watchdog) -> bool:
    """Wait for the guard to end; close its standard input when the watchdog bites. True when it did."""
    bitten = False
    with ending(process) as ended_within:
        while process.poll() is None:
            if not bitten and dog.bites():
                bitten = True
                assert process.stdin is not None
                with contextlib.suppress(OSError, ValueError):
                    process.stdin.close()
            ended_within(POLL)
    return bitten


class RemoteShell:
    """Runs commands on another node over one ssh connection, opened at the first command and kept."""

    def __init__(self, node: Node, keys: Keys, cancelled: threading.Event | None = None) -> None:
        self._node = node
        self._keys = keys
        self._cancelled = cancelled or threading.Event()
        self._opening = threading.Lock()
        self._connection: Any = None

    @property
    def node(self) -> Node:
        return self._node

    def run(
        self, command: Command, *, on_line: OnLine | None = None, cancel: threading.Event | None = None
    ) -> Completed:
        """See ``world.Shell.run``."""
        import paramiko  # noqa: PLC0415 - 200 ms that a local line does not pay

        inner, payload = guarded(command)
        dog = Watchdog(self._node, command, (cancel or self._cancelled,))
        try:
            channel = self._transport().open_session(timeout=20)
            channel.exec_command(inner.line())
            return _follow(channel, payload, (Output(on_line), Output(on_line)), dog)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise Unreachable(
                f"the ssh connection broke: {error or type(error).__name__}",
                node=self._node.name,
                next_step=f"look whether {self._node.host} is up and its link is not cut, then type the same line again",
            ) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _transport(self) -> paramiko.Transport:
        with self._opening:
            if self._connection is None or not self._connection.is_connected:
                self._connection = connect(self._node, self._keys, self._cancelled)
            transport: paramiko.Transport = self._connection.client.get_transport()
            return transport


def _follow(channel: Any, payload: bytes, outputs: tuple[Output, Output], dog: Watchdog) -> Completed:
    """Feed, read and watch one channel to its end."""
    sender = _thread(_send_all, channel, payload)
    bitten = False
    channel.settimeout(POLL)
    ended: float | None = None
    while True:
        moved = _read(channel, outputs)
        if not moved and channel.exit_status_ready():
            ended = ended or time.monotonic()
            if _drained(channel, ended):
                break
        if not moved and channel.closed and not channel.exit_status_ready():
            raise EOFError("closed by the other side")
        if not bitten and dog.bites():
            bitten = True
            channel.shutdown_write()
        if not moved:
            _await_more(channel)
    sender.join(1)
    status = channel.recv_exit_status()
    channel.close()
    done = Completed(status, outputs[0].close(), outputs[1].close())
    if bitten:
        raise dog.error(done)
    if status == -1:
        raise EOFError("closed by the other side")
    return done


def _drained(channel: Any, ended: float) -> bool:
    """Whether all output has come. The exit status may overtake output, so the end of the streams is waited for.

    A child that outlives its parent keeps the streams open: after ``DRAIN`` seconds it is not waited for any more.
    """
    if channel.recv_ready() or channel.recv_stderr_ready():
        return False
    return bool(channel.eof_received or channel.closed) or time.monotonic() - ended > DRAIN


def _await_more(channel: Any) -> None:
    if channel.eof_received:  # its descriptor would be readable for ever
        channel.status_event.wait(POLL)
    else:
        select.select([channel.fileno()], [], [], POLL)


def _read(channel: Any, outputs: tuple[Output, Output]) -> bool:
    moved = False
    if channel.recv_ready():
        data = channel.recv(65536)
        outputs[0].feed(data)
        moved = bool(data)
    if channel.recv_stderr_ready():
        data = channel.recv_stderr(65536)
        outputs[1].feed(data)
        moved = moved or bool(data)
    return moved


def _send_all(channel: Any, payload: bytes) -> None:
    view = memoryview(payload)
    with contextlib.suppress(OSError, EOFError):
        while view and not channel.closed:
            try:
                view = view[channel.send(view[:32768]) :]
            except TimeoutError:
                continue


def connect(node: Node, keys: Keys, cancelled: threading.Event) -> Any:
    """An open, strict fabric Connection. Raises Unreachable with the cause."""
    import paramiko  # noqa: PLC0415
    from fabric import Connection  # noqa: PLC0415

    last: Exception | None = None
    for pause in CONNECT_TRIES:
        if cancelled.wait(pause):
            raise Interrupted("interrupted", node=node.name)
        connection = Connection(
            node.host,
            user=node.user,
            port=node.port,
            connect_timeout=10,
            connect_kwargs={
                "banner_timeout": 15,
                "auth_timeout": 15,
                **({"key_filename": node.key} if node.key else {}),
            },
        )
        try:
            return _open(connection, node, keys)
        except (paramiko.AuthenticationException, paramiko.PasswordRequiredException) as error:
            raise _refused(node, error) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            connection.close()
            last = error
    raise Unreachable(
        f"no ssh connection to {node.host} after {len(CONNECT_TRIES)} tries: {last}",
        node=node.name,
        next_step=f"ssh {node.user + '@' if node.user else ''}{node.host}",
    ) from last


def _open(connection: Any, node: Node, keys: Keys) -> Any:
    import paramiko  # noqa: PLC0415

    connection.client.set_missing_host_key_policy(_refusing_policy(node))
    name = connection.host if connection.port == 22 else f"[{connection.host}]:{connection.port}"
    for key in keys.of(node):
        connection.client.get_host_keys().add(name, key.get_name(), key)
    try:
        connection.open()
    except paramiko.BadHostKeyException as error:
        raise _wrong_key(node, error) from error
    transport = connection.client.get_transport()
    transport.set_keepalive(15)
    with contextlib.suppress(
        OSError, AttributeError
    ):  # behind a jump host the transport's socket is a channel
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else 40 ms a command
    return connection


def _refusing_policy(node: Node) -> Any:
    import paramiko  # noqa: PLC0415

    from sparkyard.known_hosts import fingerprint  # noqa: PLC0415

    class Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            raise Unreachable(
                f"host key of {node.host} is not known",
                node=node.name,
                details=[f"it shows: {fingerprint(key)}"],
                next_step="invoke trust",
            )

    return Refuse()


def _wrong_key(node: Node, error: Any) -> Unreachable:
    from sparkyard.known_hosts import fingerprint  # noqa: PLC0415

    return Unreachable(
        f"host key of {node.host} is not the one on record; nothing was sent to it",
        node=node.name,
        details=[f"on record: {fingerprint(error.expected_key)}", f"it shows:  {fingerprint(error.key)}"],
        next_step="find out why it changed (reinstalled? another machine?), then: invoke trust --replace",
    )


def _refused(node: Node, error: Exception) -> Unreachable:
    return Unreachable(
        f"ssh to {node.host} was refused: {error}",
        node=node.name,
        next_step=f"ssh-copy-id {node.user + '@' if node.user else ''}{node.host}",
    )
