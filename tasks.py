"""The verbs. Each body says what it is made of; ``sparkyard/verbs.py`` builds it and the line runs it.

Imported at every start, also for ``--list`` and ``--help``: nothing heavier than invoke may be imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoke.collection import Collection
from invoke.tasks import task

from sparkyard.cli import LaneTask

if TYPE_CHECKING:
    from sparkyard.line import Line


@task(klass=LaneTask)
def download(line: Line) -> None:
    """Download the lane's checkpoints, prove every byte, copy them to the workers."""
    from sparkyard.verbs import download

    download(line)


@task(klass=LaneTask, help={"refresh": "take what moved since it was locked as it is now"})
def lock(line: Line, refresh: bool = False) -> None:
    """Resolve the lane's pins in full, show them, and keep them after a yes.

    Commits, image digests, and every file with its bytes and hash.
    """
    from sparkyard.locking import lock

    lock(line, refresh)


@task(klass=LaneTask)
def build(line: Line) -> None:
    """Build or pull the engine image, ship it, and run the lane's jobs.

    Only workers whose layers differ get the image.
    """
    from sparkyard.verbs import build

    build(line)


@task(klass=LaneTask)
def start(line: Line) -> None:
    """Start every rank in order, and wait until a real request is answered."""
    from sparkyard.verbs import start

    start(line)


@task(klass=LaneTask)
def verify(line: Line) -> None:
    """Send the lane's real requests; show what was asked and what came back."""
    from sparkyard.verbs import verify

    verify(line)


@task(
    klass=LaneTask,
    help={
        "check-parity": "compare a chat template's prompts with those of the checkpoint's own encoder",
        "encoding": "the encoder's folder on the head, if no checkpoint has one",
    },
)
def template(line: Line, check_parity: bool = False, encoding: str = "") -> None:
    """Show how the lane edits other people's texts; place these on every node."""
    from sparkyard.template_verb import template

    template(line, check_parity, encoding)


@task(klass=LaneTask)
def stop(line: Line) -> None:
    """Stop what runs, on all nodes at once; logs are saved first."""
    from sparkyard.verbs import stop

    stop(line)


@task(klass=LaneTask)
def restart(line: Line) -> None:
    """Stop the lane and start it again."""
    from sparkyard.verbs import restart

    restart(line)


@task(klass=LaneTask)
def switch(line: Line) -> None:
    """Go from the lane that runs to --lane, and back if that one fails.

    Everything is prepared while the old lane serves.
    """
    from sparkyard.switching import switch

    switch(line)


@task(klass=LaneTask, help={"purge": "also remove the old lane's image, checkpoints and folders"})
def revert(line: Line, purge: bool = False) -> None:
    """Go back to the standard kit (revert_to), and say what was left where."""
    from sparkyard.switching import revert

    revert(line, purge)


@task(klass=LaneTask)
def status(line: Line) -> None:
    """Show each rank: state, since when, image, health, one real token, and drift."""
    from sparkyard.standing import status

    status(line)


@task(
    klass=LaneTask,
    help={
        "node": "only this node",
        "follow": "go on as lines come, until Ctrl-C",
        "lines": "how many of the last lines",
    },
)
def logs(line: Line, node: str = "", follow: bool = False, lines: str = "100") -> None:
    """Show the engine's last log lines of every rank."""
    from sparkyard.looking import logs

    logs(line, node, follow, lines)


@task(klass=LaneTask)
def config(line: Line) -> None:
    """Show every setting with the file and line that set it."""
    from sparkyard.looking import config

    config(line)


@task(klass=LaneTask, help={"sources": "every value once, with where it comes from"})
def show(line: Line, sources: bool = False) -> None:
    """Show the lane: what runs where, from which pins, what was chosen and why.

    Also what it needs, what it may do, and published lines and figures.
    """
    from sparkyard.reading import show

    show(line, sources=sources)


@task(klass=LaneTask, help={"with": "the other lane, or LANE@PROFILE"})
def diff(line: Line, with_: str = "") -> None:
    """Show two lanes side by side; connects to nothing.

    Settings, options, environment, mounts and words of every rank.
    """
    from sparkyard.reading import diff

    diff(line, with_)


@task(klass=LaneTask)
def lanes(line: Line) -> None:
    """Show every lane beside the others, and which to run.

    What each needs, how far it is here, and published figures.
    """
    from sparkyard.lanes_verb import lanes

    lanes(line)


@task(klass=LaneTask, help={"out": "write into this folder instead"})
def render(line: Line, out: str | None = None) -> None:
    """Print the lane's files and docker commands; connects to nothing."""
    from sparkyard.reading import render

    render(line, out)


@task(klass=LaneTask, help={"nodes": "how many Sparks: 2 or 4", "force": "write over inventory/my"})
def init(line: Line, nodes: str = "", force: bool = False) -> None:
    """Write inventory/my from a few questions, or from --set name=value flags."""
    from sparkyard.setting_up import init

    init(line, nodes, force)


@task(klass=LaneTask, help={"replace": "also take a key that differs from the one on record"})
def trust(line: Line, replace: bool = False) -> None:
    """Show the host keys of the nodes, and record them after a yes."""
    from sparkyard.setting_up import trust

    trust(line, replace)


@task(
    klass=LaneTask, help={"from": "folder with files that are already there", "node": "the node they are on"}
)
def adopt(line: Line, from_: str = "", node: str = "") -> None:
    """Take files that you have: proven against the lock, never downloaded."""
    from sparkyard.verbs import adopt

    adopt(line, from_, node)


@task(klass=LaneTask, help={"nodes": "how many simulated Sparks, 1 to 4"})
def lab_up(line: Line, nodes: str = "2") -> None:
    """Bring up simulated Sparks on this machine (root)."""
    from sparkyard.lab_tasks import up

    up(line, nodes)


@task(klass=LaneTask)
def lab_down(line: Line) -> None:
    """End the lab and leave no trace of it but its cache."""
    from sparkyard.lab_tasks import down

    down(line)


@task(klass=LaneTask)
def lab_status(line: Line) -> None:
    """Show the lab's nodes."""
    from sparkyard.lab_tasks import status

    status(line)


@task(klass=LaneTask, help={"node": "which one", "command": "run this instead of a shell"})
def lab_shell(line: Line, node: str = "spark-1", command: str = "") -> None:
    """Open a shell in a simulated Spark."""
    from sparkyard.lab_tasks import shell

    shell(line, node, command)


lab = Collection("lab")
for name, body in (("up", lab_up), ("down", lab_down), ("status", lab_status), ("shell", lab_shell)):
    lab.add_task(body, name=name)

namespace = Collection(
    lock,
    download,
    build,
    start,
    template,
    verify,
    stop,
    restart,
    switch,
    revert,
    status,
    lanes,
    logs,
    config,
    show,
    diff,
    render,
    init,
    trust,
    adopt,
    lab,
)
