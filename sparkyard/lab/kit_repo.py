"""The lab's git repository in place of the standard kit's: the same interface, the same commit on every machine.

A lane of scripts reaches it through the inventory's ``mirrors``. Its commit is made of its files alone (no clock, no user), so it
is known before it is made, and a stand-in can name it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sparkyard.lab.errors import LabError

URL = "https://github.com/MiaAI-Lab/DeepSeek-v4.1-Flash-EXL3-2x-DGX-Sparks"
WHO = "The lab <lab@sparkyard.invalid>"
WHEN = "1700000000 +0000"
SUBJECT = "The lab's stand-in for the kit\n"
NAMES = {"gitignore": ".gitignore"}
"""Names of files here whose own name git or packaging would act upon."""

Files = Mapping[str, bytes]


def files() -> dict[str, bytes]:
    """Path in the repository to content: everything below ``kit/`` beside this file."""
    return below(Path(__file__).parent / "kit")


def below(top: Path) -> dict[str, bytes]:
    """Path below a folder to content; what Python compiled there is left out."""
    found = sorted(path for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {_name(path.relative_to(top)): path.read_bytes() for path in found}


def _name(path: Path) -> str:
    return str(path.with_name(NAMES.get(path.name, path.name)))


def commit(content: Files) -> str:
    """The 40-hex commit of a repository that holds exactly these files. Pure."""
    text = f"tree {_tree(content)}\nauthor {WHO} {WHEN}\ncommitter {WHO} {WHEN}\n\n{SUBJECT}"
    return _object("commit", text.encode())


def _object(kind: str, body: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(body)}\0".encode() + body, usedforsecurity=False).hexdigest()


def _tree(content: Files) -> str:
    folders: dict[str, dict[str, bytes]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, body in content.items():
        first, _, rest = path.partition("/")
        if rest:
            folders.setdefault(first, {})[rest] = body
        else:
            entries.append((first.encode(), _entry(_mode(body), first, _object("blob", body))))
    entries += [(f"{name}/".encode(), _entry("40000", name, _tree(inner))) for name, inner in folders.items()]
    return _object("tree", b"".join(entry for _, entry in sorted(entries)))


def _mode(body: bytes) -> str:
    """A program is what begins by naming its interpreter."""
    return "100755" if body.startswith(b"#!") else "100644"


def _entry(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(oid)


def make(folder: Path, more: Files | None = None) -> str:
    """Make the bare repository ``folder`` anew, with the kit's files and ``more``; returns its commit.

    Raises LabError when git fails.
    """
    return make_of(folder, {**files(), **(more or {})})


def make_of(folder: Path, content: Files) -> str:
    """Make the bare repository ``folder`` anew, with these files; returns its commit. Raises LabError when git fails."""
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        for path, body in content.items():
            target = top / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
            target.chmod(0o755 if _mode(body) == "100755" else 0o644)
        _git(top, "init", "--quiet", "--initial-branch=main")
        _git(top, "-c", "core.autocrlf=false", "add", "--force", "--all")
        _git(top, "commit", "--quiet", "--cleanup=verbatim", "--no-gpg-sign", "--message", SUBJECT)
        made = _git(top, "rev-parse", "HEAD").strip()
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _git(top, "clone", "--quiet", "--bare", scratch, str(folder))
    return made


def keep(folder: Path, url: str = URL, content: Files | None = None) -> Path:
    """The repository below ``folder``, by the path of its URL; one that has the commit of today's files is not touched."""
    wanted = files() if content is None else content
    target = folder / url.removeprefix("https://github.com/")
    if not (target / "HEAD").is_file() or commit(wanted) != _head(target):
        make_of(target, wanted)
    return target


def _head(repository: Path) -> str:
    try:
        return _git(repository, "rev-parse", "HEAD").strip()
    except LabError:
        return ""


def _git(folder: Path, *words: str) -> str:
    name, _, mail = WHO.partition(" <")
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", mail.rstrip(">")), ("DATE", WHEN))
    }
    environment = {**os.environ, **plain, **who}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"git {words[0]} failed", details=done.stderr.splitlines()[-5:])
    return done.stdout
