"""The words of a copy by rsync, and what its exit statuses mean. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkyard.command import Command
from sparkyard.errors import SparkyardError, StepFailed, Unreachable
from sparkyard.model import RemoteFile

BROKEN = frozenset({10, 12, 30, 35, 255})
"""Statuses of a connection that broke: tried again, from where the copy was."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a copy goes. ``address`` is the link address; ``ssh`` the strict ssh words without an address."""

    node: str
    address: str
    ssh: tuple[str, ...]
    source: str
    target: str


def rsync(route: Route, files: Sequence[RemoteFile]) -> Command:
    """The copy of some files; they are named on standard input.

    Each file grows in place at its target, so an interrupted copy goes on at its end, also after a kill of the other side. What was
    there before is checked along with the whole, and sent again when it differs.
    """
    words = (
        "rsync",
        "--files-from=-",
        "--from0",
        "--secluded-args",
        "--copy-links",
        "--times",
        "--append-verify",
        "--info=progress2",
        "--outbuf=L",
        "--timeout=60",
        f"--rsh={Command(route.ssh).line()}",
        f"{route.source}/",
        f"{_bracketed(route.address)}:{route.target}/",
    )
    names = "".join(f"{file.path}\0" for file in files)
    return Command(words, env=(("LC_ALL", "C"),), stdin=names.encode())


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def shares(files: Sequence[RemoteFile], count: int) -> tuple[tuple[RemoteFile, ...], ...]:
    """The files in ``count`` shares of about the same bytes, none of them empty."""
    piles: list[tuple[int, list[RemoteFile]]] = [(0, []) for _ in range(count)]
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        least = min(range(count), key=lambda place: piles[place][0])
        total, pile = piles[least]
        piles[least] = (total + file.size + 1, [*pile, file])
    return tuple(tuple(pile) for _, pile in piles if pile)


def bytes_moved(line: str) -> int | None:
    """The bytes so far in a line of progress2 (``1,234,567  12%  …``); None for any other line."""
    first, _, rest = line.strip().partition(" ")
    number = first.replace(",", "")
    return int(number) if number.isdigit() and "%" in rest[:12] else None


def failure(route: Route, status: int, lines: Sequence[str]) -> SparkyardError:
    """What a failed rsync means, in words."""
    said = "\n".join(lines)
    for token, words, next_step in TOKENS:
        if token in said:
            kind = Unreachable if token in KEY_TOKENS else StepFailed
            shown = fingerprints(lines) if token in KEY_TOKENS else tuple(lines[-5:])
            return kind(
                _filled(words, route), node=route.node, details=shown, next_step=_filled(next_step, route)
            )
    words, next_step = STATUSES.get(status, (f"rsync ended with status {status}", "look at the last lines"))
    return StepFailed(
        _filled(words, route), node=route.node, details=tuple(lines[-5:]), next_step=_filled(next_step, route)
    )


def _filled(words: str, route: Route) -> str:
    return words.format(address=route.address, node=route.node, target=route.target, source=route.source)


def fingerprints(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines of ssh that name keys."""
    return tuple(line.strip() for line in lines if "SHA256:" in line or "known_hosts:" in line) or tuple(
        lines[-5:]
    )


KEY_TOKENS = ("Host key verification failed",)
TOKENS = (
    (
        "Host key verification failed",
        "the host key at {address} is not the one on record for {node}; nothing was copied",
        "find out why it changed, then: invoke trust --replace",
    ),
    (
        "No space left on device",
        "the disk of {target} is full; what has arrived is kept",
        "free space on {node}, then type the same line again",
    ),
    (
        "Disk quota exceeded",
        "the quota for {target} is used up; what has arrived is kept",
        "free space on {node}, then type the same line again",
    ),
    (
        "is your shell clean",
        "{node} prints text at login, which disturbs rsync",
        "make the login files of {node} silent for shells that are not interactive",
    ),
    (
        "rsync: command not found",
        "rsync is not installed on {node}",
        "on {node}: sudo apt install rsync",
    ),
    (
        "symlink has no referent",
        "{source} on the head holds links that lead nowhere",
        "invoke download --deep",
    ),
    ("Permission denied (", "ssh to {address} was refused", "ssh-copy-id the head's key to {node}"),
    ("Permission denied", "no right to read or write there", "make the folder the person's own: {target}"),
    (
        "link_stat",
        "the head's copy in {source} is not complete",
        "invoke download without --limit, so that the head comes first",
    ),
)
STATUSES = {
    **dict.fromkeys(
        BROKEN,
        (
            "the connection to {address} broke and did not come back; what has arrived is kept",
            "ping -c1 {address}; when the link is up, type the same line again: it goes on where it was",
        ),
    ),
    3: ("the folder {target} could not be used", "look at it on {node}"),
    11: ("a file could not be read or written at {target}", "look at the folder and its disk on {node}"),
    24: (
        "files in {source} went away while they were copied",
        "end whatever writes there, then type the same line again",
    ),
    127: ("rsync is not installed on {node}", "on {node}: sudo apt install rsync"),
}
