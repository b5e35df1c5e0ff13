"""Words for git: a bare clone that grows by fetching, and the tree of a commit written into a folder. Pure.

A clone is made empty and then filled, so that one whose filling was interrupted is filled on by the next run. Nothing here asks
for a password. A commit that a lock names gets a ref of its own, so that it stays when its branch moves away.
"""

from __future__ import annotations

import re

from sparkyard.command import Command

NO_QUESTIONS = (("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C"))
BRANCHES = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
PLAIN = (
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.symlinks=true",
    "-c",
    "filter.lfs.smudge=",
    "-c",
    "filter.lfs.required=false",
)
"""A tree is written as it was committed, whatever the person's own git is set to."""
MOVED = re.compile(r"warning: redirecting to (\S+)")
"""What git says of an address that leads to another one, as that of a renamed project does."""
ORIGIN = "sparkyard.origin"
"""Under which name a clone keeps where its content came from."""


def bare_folder(root: str, url: str) -> str:
    """Where the clone of a repository lies on a node whose folder is ``root``."""
    name = re.sub(r"^[a-z]+://", "", url).strip("/").removesuffix(".git")
    return f"{root}/git/{re.sub(r'[^A-Za-z0-9._-]+', '--', name)}.git"


def _git(folder: str, *words: str) -> Command:
    return Command(("git", "--git-dir", folder, *words), env=NO_QUESTIONS)


def init(folder: str) -> Command:
    """Make the clone, or leave it as it is."""
    return Command(("git", "init", "--quiet", "--bare", folder), env=NO_QUESTIONS)


def fetch(folder: str, place: str) -> Command:
    """Bring all branches and tags of the repository at ``place`` (URL or folder)."""
    return _git(folder, "-c", "gc.auto=0", "fetch", "--progress", "--prune", "--force", place, *BRANCHES)


def fetch_commit(folder: str, place: str, commit: str) -> Command:
    """Bring one commit that is on no branch and no tag."""
    return _git(folder, "-c", "gc.auto=0", "fetch", "--progress", place, commit)


def has(folder: str, commit: str) -> Command:
    """Status 0 when the clone has the whole commit."""
    return _git(folder, "cat-file", "-e", f"{commit}^{{tree}}")


def keep(folder: str, commit: str) -> Command:
    """Give the commit a ref of its own."""
    return _git(folder, "update-ref", f"refs/sparkyard/{commit}", commit)


def moved(line: str) -> str:
    """The address that git was led to, by a line of a fetch; empty for any other line."""
    seen = MOVED.fullmatch(line.strip())
    return plain(seen[1]) if seen else ""


def plain(url: str) -> str:
    """An address without what makes no difference: a last slash, ``.git``."""
    return url.rstrip("/").removesuffix(".git")


def note_origin(folder: str, url: str) -> Command:
    """Keep in the clone where its content came from."""
    return _git(folder, "config", ORIGIN, url)


def origin(folder: str) -> Command:
    """Where the content of the clone came from; status 1 when nobody noted it."""
    return _git(folder, "config", "--get", ORIGIN)


def commits(folder: str) -> Command:
    """Every commit of the clone, one a line."""
    return _git(folder, "rev-list", "--all")


def remote_refs(place: str) -> Command:
    """Every ref of the repository at ``place``: commit, tab, name."""
    return Command(("git", "ls-remote", place), env=NO_QUESTIONS)


def show(folder: str, commit: str, path: str) -> Command:
    """The bytes of one file of a commit."""
    return _git(folder, *PLAIN, "show", f"{commit}:{path}")


def write_tree(folder: str, commit: str, target: str, index: str) -> tuple[Command, ...]:
    """Write the tree of a commit into the folder ``target``; ``index`` is a scratch file beside it."""
    env = (*NO_QUESTIONS, ("GIT_INDEX_FILE", index))
    git = ("git", "--git-dir", folder, "--work-tree", target, *PLAIN)
    return (
        Command((*git, "read-tree", commit), env=env),
        Command((*git, "checkout-index", "--all", "--force", f"--prefix={target.rstrip('/')}/"), env=env),
    )
