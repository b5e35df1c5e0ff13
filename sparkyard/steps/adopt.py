"""Steps that take files which the person already has: proven where they are, then linked (or copied) into sparkyard's layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from sparkyard.actions import Offer
from sparkyard.command import discovered, fill
from sparkyard.model import Lane, Manifest, RemoteFile
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.reporting.amounts import size
from sparkyard.steps.checkpoint import NOUN, Copy, Findings, find, prove
from sparkyard.trees import Seen, Tree, parse_disk, parse_tree

CANDIDATES = 3
"""How many offered files of the right size are read for one wanted file."""


def adopt_steps(lane: Lane, manifests: Mapping[str, Manifest], path: str) -> tuple[Step, ...]:
    """For each node of the lane and each checkpoint that it needs: take from ``path`` what fits, download nothing.

    ``path`` is absolute on the node, or starts with ``~/`` for the home of each node.
    """
    folder = discovered("home") + path[1:] if path.startswith("~/") else path
    copies = [
        Copy(name, node, manifest)
        for name, manifest in manifests.items()
        for node in lane.nodes
        if node == lane.head or node in lane.choose(lane.checkpoints[name].nodes)
    ]
    return tuple(_step(copy, folder) for copy in copies)


def _step(copy: Copy, folder: str) -> Step:
    offered = Question("ask_offer", (folder,))
    return Step(
        noun=NOUN,
        name=copy.name,
        node=copy.node.name,
        title=f"checkpoint {copy.name}: adopt",
        judge=partial(_judge, copy, offered),
        questions=(copy.asked, copy.asked_disk, offered),
        recheck=False,
    )


def _judge(copy: Copy, asked: Question, answers: Answers) -> Verdict:
    folder = fill(asked.arguments[0], answers.discovered)
    if answers.of(asked).status == 2:
        return Verdict("skipped", f"no folder {folder} here")
    tree = copy.tree(answers)
    offer = parse_tree(answers.of(asked), copy.node.name, folder)
    found = find(tree, copy.manifest)
    if found.right:
        return Verdict("ok", "all is here already, proven")
    offers = match(found.missing, offer.files.values(), folder)
    if not offers and not found.unread:
        return Verdict("skipped", f"nothing in {folder} fits: {_left(found, offers)}", details=found.remarks)
    if fault := _no_room(copy, answers, offers, apart=offer.fs != tree.fs):
        return fault
    return _take(copy, answers, tree, found, offers)


def _take(copy: Copy, answers: Answers, tree: Tree, found: Findings, offers: tuple[Offer, ...]) -> Verdict:
    action = replace(prove(copy, copy.place(answers), tree, found.unread), offered=offers)
    taken = {offer.file.path for offer in offers}
    words = f"{len(taken)} of {len(copy.manifest.files)} files may be here already; {_left(found, offers)}"
    return Verdict("change", words, actions=(action,), details=found.remarks)


def _left(found: Findings, offers: tuple[Offer, ...]) -> str:
    taken = {offer.file.path for offer in offers}
    left = [file for file in found.missing if file.path not in taken]
    return f"{len(left)} ({size(sum(file.size for file in left))}) left to `invoke download`"


def _no_room(copy: Copy, answers: Answers, offers: tuple[Offer, ...], *, apart: bool) -> Verdict | None:
    """Files on the same filesystem are linked and need no room."""
    disk = parse_disk(answers.of(copy.asked_disk), answers.node, "free disk")
    needed = sum({offer.file.path: offer.file.size for offer in offers}.values()) if apart else 0
    if needed <= disk.available:
        return None
    words = (
        f"{size(disk.available)} free on {disk.at}, {size(needed)} needed for copies from another filesystem"
    )
    return Verdict(
        "blocked", words, next_step="set `models` of this node to a folder on the filesystem of these files"
    )


def match(files: Iterable[RemoteFile], offered: Iterable[Seen], folder: str) -> tuple[Offer, ...]:
    """The offered files of the right size that may be the wanted ones, likeliest first.

    By path, by name, or by a name that is the content's hash (the blobs of a Hub cache).
    """
    by_size: dict[int, list[Seen]] = {}
    for seen in offered:
        if seen.kind == "f":
            by_size.setdefault(seen.size, []).append(seen)
    return tuple(
        Offer(file, f"{folder}/{seen.path}")
        for file in files
        for seen in _likeliest(file, by_size.get(file.size, ()))
    )


def _likeliest(file: RemoteFile, offered: Iterable[Seen]) -> list[Seen]:
    ranked = [(rank, seen.path, seen) for seen in offered if (rank := _likeness(file, seen.path)) is not None]
    by_inode: dict[int, Seen] = {}
    for _, _, seen in sorted(ranked, key=lambda item: item[:2]):
        by_inode.setdefault(seen.inode, seen)
    return list(by_inode.values())[:CANDIDATES]


def _likeness(file: RemoteFile, path: str) -> int | None:
    if any(ord(letter) < 32 for letter in path):
        return None
    name = path.rsplit("/", 1)[-1]
    if f"/{path}".endswith(f"/{file.path}"):
        return 0
    if name in {file.sha256, file.blob}:
        return 1
    return 2 if name == file.path.rsplit("/", 1)[-1] else None
