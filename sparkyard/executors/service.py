"""Starts and stops the container of a rank, and waits for its gate while every rank is watched."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import threading
import time
from collections.abc import Callable

from sparkyard.actions import StartContainer, StopContainer
from sparkyard.command import Command, mask
from sparkyard.diagnosis import LAST_LINES, run_refused
from sparkyard.errors import Interrupted, SparkyardError, StepFailed
from sparkyard.executors.news import LogFile, News
from sparkyard.executors.watch import Watch
from sparkyard.records import FOLDER
from sparkyard.world import Completed, Shell, World

LABEL = "sparkyard.lane"
"""The label of everything that is ours; containers without it are never touched."""
LOOK = 0.5
"""Seconds between looks at time limits and the cancel signal while nothing happens."""
LISTENING = """
until grep -Eq "$1" /proc/net/tcp /proc/net/tcp6 2>/dev/null; do sleep 0.2; done
"""
"""Waits until a socket listens on the node (sh); $1 is a pattern for lines of /proc/net/tcp."""


def start_container(action: StartContainer, node: str, world: World) -> None:
    """Run the container, watch it, and wait for its gate.

    Raises StepFailed when Docker refuses, when any watched rank ends, when all are silent for too long, or at the gate's time limit.
    """
    shell = world.shell(node)
    done = shell.run(action.command)
    if done.status != 0:
        raise refused(action, done, shell)
    watch = world.watches.start(world, node, action.container, action.gate_log, guard=action.guard)
    if action.gate_log:
        _await_gate(action, world, watch, lambda: watch.gate_seen)
    elif action.gate_port:
        with PortWait(shell, action.gate_port, world.watches.news) as port:
            _await_gate(action, world, watch, port.open)


def refused(action: StartContainer, done: Completed, shell: Shell) -> StepFailed:
    """The message for a ``docker run`` that failed; removes the container that it may have left, if that is ours."""
    said = mask(done.err.decode(errors="replace").strip(), action.command.secrets)
    text, next_step = run_refused(action.container, said)
    removed = "is already in use" not in said and _remove_created(shell, action.container)
    left = [f"removed the container {action.container} that it left"] if removed else []
    details = [f"command: {action.command.shown()}", *said.splitlines()[-LAST_LINES:], *left]
    return StepFailed(
        f"{text} (docker run: status {done.status})",
        node=shell.node.name,
        next_step=next_step,
        details=details,
    )


def _remove_created(shell: Shell, container: str) -> bool:
    words = (
        "docker",
        "container",
        "inspect",
        "--format",
        f'{{{{.State.Status}}}} {{{{index .Config.Labels "{LABEL}"}}}}',
        container,
    )
    done = shell.run(Command.of(*words, timeout=30))
    status, _, lane = done.text.strip().partition(" ")
    if done.status != 0 or not lane or status not in ("created", "exited", "dead"):
        return False
    return shell.run(Command.of("docker", "rm", container, timeout=60)).status == 0


def _await_gate(action: StartContainer, world: World, watch: Watch, seen: Callable[[], bool]) -> None:
    began = time.monotonic()
    news = world.watches.news.count
    while not seen():
        if world.cancelled.is_set():
            raise Interrupted("interrupted while waiting for a rank", node=watch.node)
        world.watches.demand_all_alive(action.log_silence)
        waited = time.monotonic() - began
        if waited > action.gate_timeout:
            raise _late(action, world, watch)
        world.watches.news.wait(min(LOOK, max(0.01, action.gate_timeout - waited)), news)
        news = world.watches.news.count
    world.say(f"{_gate(action)} after {time.monotonic() - began:.1f} s")


def _gate(action: StartContainer) -> str:
    if action.gate_port:
        return f"port {action.gate_port[1]} is open"
    return f"log line /{action.gate_log}/ seen"


def _late(action: StartContainer, world: World, watch: Watch) -> StepFailed:
    wanted = f"a log line that matches /{action.gate_log}/"
    if action.gate_port:
        host, port = action.gate_port
        wanted = f"a socket that listens on {host}:{port}"
    details = [
        line
        for node, container, lines in world.watches.last_lines(LAST_LINES)
        for line in (f"last lines of {node} ({container}):", *(f"  {line}" for line in lines or ("(none)",)))
    ]
    return StepFailed(
        f"no sign of {action.container} within {action.gate_timeout:g} s; expected {wanted}; the container still runs",
        node=watch.node,
        next_step="read the lines above; if it only needs longer, raise the gate's timeout in the recipe",
        details=details,
    )


def listening_pattern(host: str, port: int) -> str:
    """The extended regular expression for a listening socket in /proc/net/tcp: this IPv4 address or any, or any for a name."""
    address = r"[0-9A-F]+"
    with contextlib.suppress(ValueError):
        packed = ipaddress.IPv4Address(host).packed
        small = (
            packed[::-1].hex().upper()
        )  # the table shows addresses as the processor keeps them; Sparks and PCs: little end first
        address = f"(0{{8}}|{small}|0{{32}}|0{{16}}FFFF0000{small})"
    return f": {address}:{port:04X} 0+:0000 0A "


class PortWait:
    """A wait for a listening socket on the node, in the background."""

    def __init__(self, shell: Shell, where: tuple[str, int], news: News) -> None:
        self._shell, self._where, self._news = shell, where, news
        self._leave = threading.Event()
        self._seen = threading.Event()
        self._error: SparkyardError | None = None
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> PortWait:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join(3)

    def open(self) -> bool:
        """Whether the socket was seen. Raises what ended the waiting (Unreachable)."""
        if self._error:
            raise self._error
        return self._seen.is_set()

    def _wait(self) -> None:
        words = ("sh", "-c", LISTENING, "sparkyard-listening", listening_pattern(*self._where))
        try:
            if self._shell.run(Command.of(*words), cancel=self._leave).status == 0:
                self._seen.set()
        except Interrupted:
            return
        except SparkyardError as error:
            self._error = error
        self._news.tell()


def stop_container(action: StopContainer, node: str, world: World) -> None:
    """Stop and remove a container of ours, its whole log saved first. One that is gone already is fine.

    Raises StepFailed for a container without our label (with another image, where it was known by that), or when Docker fails.
    """
    shell = world.shell(node)
    world.watches.release(node, action.container)
    known = _of_image(shell, action) if action.image else _ours(shell, action.container)
    if action.image:
        forget = ("sh", "-c", f'rm -f -- "$HOME/{FOLDER}/$1"', "sparkyard-forget", action.container)
        shell.run(Command.of(*forget, timeout=30))
    if not known:
        return
    grace = Command.of(
        "docker", "stop", "-t", f"{action.grace:.0f}", action.container, timeout=action.grace + 60
    )
    if _gone(shell.run(grace), shell, grace):
        return
    save(shell, action.container, world)
    if _killed(shell, action.container):
        world.say(f"{action.container} did not end within {action.grace:g} s and was killed")
    removal = Command.of("docker", "rm", action.container, timeout=120)
    _gone(shell.run(removal), shell, removal)


def _ours(shell: Shell, container: str) -> bool:
    """False when there is none. Raises StepFailed when it is not ours."""
    look = Command.of(
        "docker", "container", "inspect", "--format", "{{json .Config.Labels}}", container, timeout=30
    )
    done = shell.run(look)
    if _gone(done, shell, look):
        return False
    if not (json.loads(done.text) or {}).get(LABEL):
        raise StepFailed(
            f"the container {container} has no label {LABEL}: it is not sparkyard's and was left alone",
            node=shell.node.name,
            next_step=f"stop it yourself if it is in the way: docker stop {container}",
        )
    return True


def _of_image(shell: Shell, action: StopContainer) -> bool:
    """False when there is no such container. Raises StepFailed when it runs another image than the one it is known by."""
    words = ("docker", "container", "inspect", "--format", "{{.Config.Image}}", action.container)
    look = Command.of(*words, timeout=30)
    done = shell.run(look)
    if _gone(done, shell, look):
        return False
    if done.text.strip() != action.image:
        raise StepFailed(
            f"the container {action.container} runs {done.text.strip()}, expected {action.image}: it was left alone",
            node=shell.node.name,
            next_step=f"stop it yourself if it is in the way: docker stop {action.container}",
        )
    return True


def there(shell: Shell, container: str) -> bool:
    """Whether there is a container of that name. Raises StepFailed when Docker fails."""
    look = Command.of("docker", "container", "inspect", "--format", "{{.Id}}", container, timeout=30)
    return not _gone(shell.run(look), shell, look)


def _gone(done: Completed, shell: Shell, command: Command) -> bool:
    """Whether the container does not exist (any more). Raises StepFailed for any other failure."""
    if done.status == 0:
        return False
    said = done.err.decode(errors="replace").lower()
    if "no such container" in said or "is already in progress" in said:
        return True
    raise StepFailed(
        f"Docker failed with status {done.status}",
        node=shell.node.name,
        details=[f"command: {command.shown()}", *done.last_lines()],
        next_step="docker info on that node",
    )


def save(shell: Shell, container: str, world: World) -> None:
    """The whole log and the state, into the run record."""
    folder = world.run_folder / "logs"
    log = LogFile(folder, shell.node.name, container, world.secrets)
    try:
        shell.run(Command.of("docker", "logs", "--timestamps", container), on_line=log.add)
    finally:
        log.close()
    state = shell.run(
        Command.of("docker", "container", "inspect", "--format", "{{json .State}}", container, timeout=30)
    )
    saved = os.open(log.path.with_suffix(".state.json"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(saved, "wb") as file:
        file.write(state.out)


def _killed(shell: Shell, container: str) -> bool:
    done = shell.run(
        Command.of("docker", "container", "inspect", "--format", "{{.State.ExitCode}}", container, timeout=30)
    )
    return done.text.strip() == "137"
