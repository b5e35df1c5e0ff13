"""What sparkyard keeps on the machine where it runs: XDG folders, run folders, run records.

Everything here is for its owner alone: folders are 0700, files 0600. Times are UTC.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkyard import __version__
from sparkyard.command import MASK, Command
from sparkyard.reporting.jsonline import plain, timestamp

KEEP = 200
"""Run folders that are kept."""
RUN_NAME = re.compile(r"^\d{8}T\d{6}Z-[\w.+-]+$")
SECRET_NAME = re.compile(r"(token|secret|password|passwd|api[_-]?key|(^|[._-])key)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Folders:
    """sparkyard's own folders by the XDG rules; none of them is made by asking."""

    state: Path
    cache: Path
    data: Path

    @property
    def runs(self) -> Path:
        return self.state / "runs"


def folders(environ: Mapping[str, str] | None = None, home: Path | None = None) -> Folders:
    """The folders for this environment; ``SPARKYARD_STATE`` and ``SPARKYARD_CACHE`` name two of them outright.

    As XDG says, a variable that is empty or relative counts as unset.
    """
    environ, home = os.environ if environ is None else environ, home or Path.home()

    def absolute(variable: str) -> Path | None:
        given = Path(environ.get(variable, ""))
        return given if given.is_absolute() else None

    def base(variable: str, default: str) -> Path:
        return (absolute(variable) or home / default) / "sparkyard"

    return Folders(
        absolute("SPARKYARD_STATE") or base("XDG_STATE_HOME", ".local/state"),
        absolute("SPARKYARD_CACHE") or base("XDG_CACHE_HOME", ".cache"),
        base("XDG_DATA_HOME", ".local/share"),
    )


def make_folder(path: Path) -> Path:
    """The folder, made 0700 with its parents when it is not there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def make_run_folder(runs: Path, verb: str, lane: str, now: datetime | None = None, keep: int = KEEP) -> Path:
    """A new folder ``<UTC time>-<verb>-<lane>`` that no other run has; the oldest beyond ``keep`` are removed.

    Raises OSError when it cannot be made.
    """
    stamp = f"{(now or datetime.now(UTC)).astimezone(UTC):%Y%m%dT%H%M%SZ}"
    words = "-".join(re.sub(r"[^\w.+]+", "_", word) for word in (verb, lane) if word)
    make_folder(runs)
    for number in range(1, 1000):
        folder = runs / (f"{stamp}-{words}" if number == 1 else f"{stamp}-{words}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        prune(runs, keep)
        return folder
    raise FileExistsError(f"{runs}/{stamp}-{words}: a thousand runs in one second")


def prune(runs: Path, keep: int = KEEP) -> None:
    """Remove the oldest run folders until ``keep`` are left. Anything else in there is not ours and stays."""
    found = [
        path
        for path in runs.iterdir()
        if RUN_NAME.match(path.name) and path.is_dir() and not path.is_symlink()
    ]
    found.sort(key=lambda path: (path.name[:16], path.stat().st_mtime_ns))
    for path in found[: max(0, len(found) - keep)]:
        shutil.rmtree(path, ignore_errors=True)


def write_json(path: Path, value: Any, secrets: Iterable[str] = ()) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part; secrets are masked."""
    text = json.dumps(plain(value, secrets), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def typed_line(words: Sequence[str]) -> str:
    """The line as typed, to be kept: ``--set`` values whose names sound secret are masked even when nobody knows them yet."""
    shown = list(words)
    for place, word in enumerate(shown):
        given = word.removeprefix("--set=") if word.startswith("--set=") else word
        name, equals, _value = given.partition("=")
        after_set = place > 0 and shown[place - 1] == "--set"
        if equals and SECRET_NAME.search(name) and (after_set or word.startswith("--set=")):
            shown[place] = f"{word[: len(word) - len(given)]}{name}={MASK}"
    return Command(tuple(shown)).line()


def current_versions() -> dict[str, str]:
    """The versions that a run depends on."""
    from invoke import __version__ as of_invoke  # type: ignore[attr-defined]  # noqa: PLC0415

    return {
        "sparkyard": __version__,
        "python": platform.python_version(),
        "invoke": of_invoke,
    }


def current_user() -> str:
    """The user's name, or the number when the system knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@dataclass(frozen=True, slots=True)
class Rank:
    """What one rank was started with: words as shown, ids, hash and discovered values as Docker told them.

    ``environment`` holds the text of each rendered file of its node that is not secret, by path.
    """

    node: str
    rank: int
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    hash: str = ""
    discovered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """``record.json`` of a run: who typed what, where, with which versions, and what came of it.

    ``status`` is None until the run has ended; a record without ``ended`` is of a run that was killed.
    """

    typed: str
    verb: str
    lane: str
    nodes: tuple[str, ...]
    started: str
    who: str = field(default_factory=current_user)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    versions: Mapping[str, str] = field(default_factory=current_versions)
    check: bool = False
    stand_in: bool = False
    ranks: tuple[Rank, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    ended: str = ""
    status: int | None = None

    def write(self, folder: Path, secrets: Iterable[str] = ()) -> None:
        """Write ``record.json`` into the run's folder, secrets masked. Raises OSError."""
        write_json(folder / "record.json", asdict(self), secrets)


def new_record(verb: str, lane: str, nodes: Iterable[str], now: datetime | None = None) -> RunRecord:
    """The record of a run that starts now, with the line that was typed."""
    words = (Path(sys.argv[0]).name, *sys.argv[1:])
    return RunRecord(typed_line(words), verb, lane, tuple(nodes), timestamp(now or datetime.now(UTC)))
