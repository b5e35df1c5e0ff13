"""Brings commits of git repositories to the head, writes their trees into folders, puts build contexts together.

Everything here happens on the head, which is this machine: git by its program, files by Python.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from sparkyard import git_words
from sparkyard.actions_image import GitFetch, GitTree, MakeContext
from sparkyard.command import Command
from sparkyard.errors import SparkyardError, StepFailed
from sparkyard.world import Completed, Shell, World, must

PERCENT = re.compile(r"(Receiving objects|Resolving deltas): +\d+% \((\d+)/(\d+)\)")
NO_PROGRAM = 127
ASKS = ("could not read Username", "Authentication failed", "Permission denied (publickey")
ABSENT = ("not found", "does not exist", "does not appear to be a git repository", "Could not find")
OFFLINE = (
    "Could not resolve host",
    "Failed to connect",
    "Connection refused",
    "unable to connect",
    "timed out",
)


def git_fetch(action: GitFetch, node: str, world: World) -> None:
    """Have the commit in the clone, without the network when it is there. Raises StepFailed, Interrupted."""
    bring(action, world.shell(node), world)


def bring(action: GitFetch, shell: Shell, world: World | None = None) -> None:
    """The same outside of a step, when there is no ``world`` to be told of its progress."""
    if not has(shell, action.folder, action.commit):
        fill(action, shell, world)
    if not has(shell, action.folder, action.commit):
        told = run(shell, git_words.fetch_commit(action.folder, action.place, action.commit), world)
        if not has(shell, action.folder, action.commit):
            raise gone(action, shell.node.name, told)
    must(shell, git_words.keep(action.folder, action.commit), "keeping the commit in the clone")


def fill(action: GitFetch, shell: Shell, world: World | None = None) -> None:
    """Bring every branch and tag into the clone, making it first. Raises StepFailed with the cause in plain words."""
    Path(action.folder).parent.mkdir(parents=True, exist_ok=True)
    must(shell, git_words.init(action.folder), f"making the clone {action.folder}")
    led: list[str] = []
    done = run(shell, git_words.fetch(action.folder, action.place), world, led.append)
    if done.status != 0:
        raise unreachable(action.url, action.place, shell.node.name, done)
    source = led[0] if led and action.place == action.url else git_words.plain(action.url)
    must(shell, git_words.note_origin(action.folder, source), "noting where the clone came from")


def origin(shell: Shell, folder: str) -> str:
    """Where the content of a clone came from: its URL, or the one that this led to. Empty when nobody noted it."""
    return shell.run(git_words.origin(folder)).text.strip()


def has(shell: Shell, folder: str, commit: str) -> bool:
    """Whether the clone has the commit and its whole tree. Raises StepFailed where there is no git."""
    done = shell.run(git_words.has(folder, commit))
    if done.status == NO_PROGRAM:
        raise StepFailed("git is not installed", node=shell.node.name, next_step="sudo apt install git")
    return done.status == 0


def run(
    shell: Shell, command: Command, world: World | None, led: Callable[[str], None] | None = None
) -> Completed:
    """Run git; its percentages become progress, its other lines the last words of a failure. ``led`` is told where git was led to."""
    last: deque[str] = deque(maxlen=8)

    def on_line(line: str) -> None:
        if led is not None and (place := git_words.moved(line)):
            led(place)
        seen = PERCENT.search(line)
        if seen is None:
            last.append(line)
        elif world is not None:
            world.progress(int(seen[2]), int(seen[3]), f"git: {seen[1].lower()}", "files")

    done = shell.run(command, on_line=on_line)
    return Completed(done.status, done.out, "\n".join(last).encode())


def unreachable(url: str, place: str, node: str, done: Completed) -> StepFailed:
    """What a failed fetch means."""
    said = done.err.decode(errors="replace")
    behind = "" if place == url else f" (by way of {place})"
    kinds = (
        (ASKS, "it asks for a name and password, or there is no such repository", f"git ls-remote {place}"),
        (ABSENT, "there is no such repository", f"git ls-remote {place}"),
        (OFFLINE, "no network to it", "connect this machine, or set `mirrors` in the inventory"),
    )
    fitting = (k for k in kinds if any(sign.lower() in said.lower() for sign in k[0]))
    _, what, next_step = next(fitting, ((), f"git ended with status {done.status}", f"git ls-remote {place}"))
    return StepFailed(
        f"{url}{behind} could not be fetched: {what}",
        node=node,
        details=done.last_lines(),
        next_step=next_step,
    )


def gone(action: GitFetch, node: str, done: Completed) -> StepFailed:
    """The commit that was locked is on no branch or tag, and the other side does not give it by its name either."""
    return StepFailed(
        f"commit {action.commit} is not in {action.url} any more",
        node=node,
        details=done.last_lines(),
        next_step="pin another commit in the recipe, then: invoke lock --refresh",
    )


def git_tree(action: GitTree, node: str, world: World) -> None:
    """Replace the folder with the tree of the commit. Raises StepFailed."""
    _replaced(Path(action.folder), lambda new: write(world.shell(node), action, new))


def write(shell: Shell, tree: GitTree, target: Path) -> None:
    """Write a tree into a folder that is there."""
    with tempfile.TemporaryDirectory(prefix=".index-", dir=target.parent) as scratch:
        for command in git_words.write_tree(tree.clone, tree.commit, str(target), f"{scratch}/index"):
            must(shell, command, f"writing the tree of {tree.commit}")


def make_context(action: MakeContext, node: str, world: World) -> None:
    """Copy the recipe's context and put the trees into it. Raises StepFailed, OSError as StepFailed."""
    folder = Path(action.folder)

    def fill_in(new: Path) -> None:
        shutil.copytree(action.source, new, symlinks=True, dirs_exist_ok=True)
        for tree in action.trees:
            inner = new / Path(tree.folder).relative_to(folder)
            if inner.exists():
                raise StepFailed(
                    f"{inner.name} is in the recipe's build context and a git source too", node=node
                )
            inner.mkdir(parents=True)
            write(world.shell(node), tree, inner)
            source = origin(world.shell(node), tree.clone) or "unknown"
            inner.with_name(f"{inner.name}.origin").write_text(f"origin {source}\ncommit {tree.commit}\n")

    _replaced(folder, fill_in)
    for old in marked(folder.parent, action.prefix):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


def marked(folder: Path, prefix: str) -> list[Path]:
    """What lies in a folder under ``prefix`` and a mark of 12 hex digits, as a build's context or record does: of no longer prefix."""
    name = re.compile(re.escape(prefix) + r"[0-9a-f]{12}(\.json)?")
    return [path for path in folder.iterdir() if prefix and name.fullmatch(path.name)]


def _replaced(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder beside its place, then put it there. What a killed run left beside it is removed."""
    new = folder.parent / f".{folder.name}.new"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        make(new)
        if folder.exists():
            shutil.rmtree(folder)
        new.replace(folder)
    except OSError as error:
        raise StepFailed(
            f"{error.filename or folder}: {error.strerror}", next_step="df -h, and look at its rights"
        ) from error
    except SparkyardError:
        shutil.rmtree(new, ignore_errors=True)
        raise
