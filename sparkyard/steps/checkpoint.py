"""Steps that bring checkpoints to the nodes: room first, download on the head, copies to the others, every byte proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sparkyard.actions import CopyFiles, Fetch, Prove
from sparkyard.command import fill
from sparkyard.kept import Kept, to_come
from sparkyard.manifest import Place, place, seal_entries, seal_text
from sparkyard.model import Lane, Manifest, Node, RemoteFile
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.render_kept import kept_folders
from sparkyard.rendered_job import RenderedJob
from sparkyard.reporting.amounts import size
from sparkyard.safetensors import INDEX_ENDING
from sparkyard.trees import Tree, holds, parse_disk, parse_tree, proven

NOUN = "checkpoint"
Bring = Callable[[tuple[RemoteFile, ...], Place], Fetch | CopyFiles]


@dataclass(frozen=True, slots=True)
class Copy:
    """One checkpoint on one node."""

    name: str
    node: Node
    manifest: Manifest
    wanted: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The recipe's patterns, where an index says which shards they should find."""
        indexed = any(file.path.endswith(INDEX_ENDING) for file in self.manifest.files)
        return tuple(f"{p}*" if p.endswith("/") else p for p in self.wanted) if indexed else ()

    @property
    def marked(self) -> Place:
        """Where it lies, the node's home still a mark."""
        return place(self.node, self.manifest)

    def place(self, answers: Answers) -> Place:
        """Where it lies."""
        here = self.marked
        folder, ledger, seal = (
            fill(path, answers.discovered) for path in (here.folder, here.ledger, here.seal)
        )
        return Place(folder, ledger, seal)

    @property
    def asked(self) -> Question:
        return Question("ask_tree", (self.marked.folder, self.marked.ledger, self.marked.seal))

    @property
    def asked_disk(self) -> Question:
        return Question("ask_disk", (self.marked.folder,))

    def tree(self, answers: Answers) -> Tree:
        """What lies there. Raises CouldNotCheck."""
        return parse_tree(answers.of(self.asked), self.node.name, f"checkpoint {self.name}")


@dataclass(frozen=True, slots=True)
class Findings:
    """A checkpoint's files by what must be done about them."""

    missing: tuple[RemoteFile, ...]
    unread: tuple[RemoteFile, ...]
    sealed: bool
    remarks: tuple[str, ...]
    in_the_way: str

    @property
    def right(self) -> bool:
        return not self.missing and not self.unread and self.sealed


def find(tree: Tree, manifest: Manifest) -> Findings:
    """Compare what lies there with what must."""
    missing = tuple(file for file in manifest.files if not holds(tree, file))
    unread = tuple(file for file in manifest.files if holds(tree, file) and not proven(tree, file))
    resized = [f for f in missing if f.path in tree.files]
    remarks = [f"{f.path}: {tree.files[f.path].size} bytes, expected {f.size}" for f in resized]
    sealed = seal_entries(tree.seal, manifest)
    ours = {file.path for file in manifest.files} | sealed.keys()
    remarks += [
        f"{path!r} is not in the listing, left alone" for path in sorted(tree.files) if path not in ours
    ]
    return Findings(
        missing=missing,
        unread=unread,
        sealed=tree.seal + "\n" == seal_text(manifest, sealed) and not tree.incoming,
        remarks=tuple(remarks[:20]),
        in_the_way=next((above for f in manifest.files if (above := tree.link_above(f.path))), ""),
    )


def download_steps(lane: Lane, manifests: Mapping[str, Manifest], *, deep: bool = False) -> tuple[Step, ...]:
    """Everything that brings the checkpoints to the lane's nodes and proves them; ``deep`` reads every byte first."""
    copies = [
        Copy(name, node, manifest, tuple(lane.checkpoints[name].files))
        for name, manifest in manifests.items()
        for node in _nodes(lane, name)
    ]
    if not copies:
        return ()
    rooms = room_steps(lane, copies)
    ready = tuple(step.id for step in rooms)
    steps = list(rooms)
    for copy in copies:
        needs = ready
        if deep:
            steps.append(_deep_step(copy, needs))
            needs = (*needs, steps[-1].id)
        steps.append(
            _head_step(lane, copy, needs) if copy.node == lane.head else _worker_step(lane, copy, needs)
        )
    return tuple(steps)


def mounted_steps(
    lane: Lane, manifests: Mapping[str, Manifest], jobs: Sequence[RenderedJob]
) -> tuple[Step, ...]:
    """Those steps whose checkpoints jobs mount, on the nodes of these jobs: asked before anything that was made is made again."""
    read = {(c.node, word) for each in jobs for c in each.containers for word in c.words}

    def is_mounted(step: Step) -> bool:
        node = next(each for each in lane.nodes if each.name == step.node)
        folder = Copy(step.name, node, manifests[step.name]).marked.folder
        return any(on == step.node and folder in word for on, word in read)

    copies = [step for step in download_steps(lane, manifests) if step.noun == "checkpoint"]
    return tuple(replace(step, needs=()) for step in copies if step.name in manifests and is_mounted(step))


def _nodes(lane: Lane, name: str) -> tuple[Node, ...]:
    """The head, which downloads and hands on, and who else needs the checkpoint."""
    return _unique((lane.head, *lane.choose(lane.checkpoints[name].nodes)))


def _unique(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple({node.name: node for node in nodes}.values())


# room


def room_steps(lane: Lane, copies: list[Copy]) -> tuple[Step, ...]:
    """One step a node: whether all that is missing there fits, before the first byte moves anywhere."""
    nodes = _unique(tuple(copy.node for copy in copies))
    return tuple(
        _room_step(lane, node, tuple(copy for copy in copies if copy.node == node)) for node in nodes
    )


def _room_step(lane: Lane, node: Node, copies: tuple[Copy, ...]) -> Step:
    folders = kept_folders(lane, node, {copy.name: copy.manifest for copy in copies})
    return Step(
        noun="preflight",
        name="checkpoint-disk",
        node=node.name,
        title="disk: room for the checkpoints",
        judge=partial(_judge_room, copies, lane.recipe.limits.disk, folders),
        questions=(
            *(question for copy in copies for question in (copy.asked, copy.asked_disk)),
            *(kept.asked for kept in folders),
        ),
    )


def _judge_room(
    copies: tuple[Copy, ...], reserve: int, folders: tuple[Kept, ...], answers: Answers
) -> Verdict:
    needed: dict[str, int] = {}
    disks = {}
    for copy in copies:
        disk = parse_disk(answers.of(copy.asked_disk), answers.node, "free disk")
        disks[disk.fs] = disk
        needed[disk.fs] = needed.get(disk.fs, 0) + bytes_to_come(copy.tree(answers), copy.manifest)
    words = []
    growing = to_come(answers, folders) if any(needed.values()) else {}
    for fs, bytes_ in needed.items():
        if not bytes_:
            continue
        want, disk = bytes_ + reserve + growing.get(fs, 0), disks[fs]
        words.append(f"{size(disk.available)} free on {disk.at}, {size(want)} needed")
        if disk.available < want:
            missing = f"free {size(want - disk.available)} on {disk.at}, or set `models` of this node to another disk"
            return Verdict(
                "blocked", words[-1], next_step=missing, data={"available": disk.available, "needed": want}
            )
    return Verdict("ok", "; ".join(words) or "nothing is to come")


def bytes_to_come(tree: Tree, manifest: Manifest) -> int:
    """Bytes that the missing files will take beyond what their partial files take already."""
    missing = [file for file in manifest.files if not holds(tree, file)]
    partial_bytes = sum(min(seen.allocated, seen.size) for seen in tree.incoming.values())
    return max(0, sum(file.size for file in missing) - partial_bytes) if missing else 0


# download, copy, prove


def _head_step(lane: Lane, copy: Copy, needs: tuple[str, ...]) -> Step:
    def bring(files: tuple[RemoteFile, ...], here: Place) -> Fetch:
        return Fetch(copy.manifest, here.folder, files, lane.inventory.hub_endpoint, here.ledger)

    return _step(copy, "download", needs, partial(_judge, copy, bring))


def _worker_step(lane: Lane, copy: Copy, needs: tuple[str, ...]) -> Step:
    source = Copy(copy.name, lane.head, copy.manifest)

    def bring(files: tuple[RemoteFile, ...], here: Place) -> CopyFiles:
        return CopyFiles(source.marked.folder, here.incoming, files, copy.node.link.address)

    first = f"{NOUN}:{copy.name}@{lane.head.name}"
    return _step(copy, f"copy from {lane.head.name}", (*needs, first), partial(_judge, copy, bring))


def _step(copy: Copy, what: str, needs: tuple[str, ...], judge: partial[Verdict]) -> Step:
    title = f"checkpoint {copy.name}: {what}"
    return Step(NOUN, copy.name, copy.node.name, title, judge, (copy.asked,), needs)


def _judge(copy: Copy, bring: Bring, answers: Answers) -> Verdict:
    tree, here = copy.tree(answers), copy.place(answers)
    found = find(tree, copy.manifest)
    if found.in_the_way:
        where = f"{here.folder}/{found.in_the_way}"
        return Verdict(
            "blocked", f"{where} is not a folder of its own", next_step=f"look at {where}; move it away"
        )
    if found.right:
        return Verdict("ok", f"{_count(copy.manifest.files)}, proven", details=found.remarks)
    proof = prove(copy, here, tree, found.unread)
    if not found.missing:
        return Verdict("change", reason(found), actions=(proof,), details=found.remarks)
    coming = bring(found.missing, here)
    if isinstance(coming, CopyFiles):
        whole = arrived(tree, found.missing)
        coming = replace(coming, files=tuple(file for file in found.missing if file not in whole))
        proof = replace(proof, arrived=found.missing)
    actions = (coming, proof) if coming.files else (proof,)
    return Verdict("change", reason(found), actions=actions, details=found.remarks)


def arrived(tree: Tree, missing: tuple[RemoteFile, ...]) -> tuple[RemoteFile, ...]:
    """Copied files that an interrupted run left whole: they are read, and copied only if that shows damage."""
    there = {path: seen.size for path, seen in tree.incoming.items() if seen.kind == "f"}
    return tuple(file for file in missing if there.get(file.path) == file.size)


def prove(copy: Copy, here: Place, tree: Tree, files: tuple[RemoteFile, ...]) -> Prove:
    """Read some files of a checkpoint, then seal it if all of them are proven."""
    text = seal_text(copy.manifest, seal_entries(tree.seal, copy.manifest))
    return Prove(
        here.folder, files, here.ledger,
        held=copy.manifest.files, seal=here.seal, seal_text=text, patterns=copy.patterns,
    )  # fmt: skip


def reason(found: Findings) -> str:
    """What differs, in one line."""
    parts = []
    if found.missing:
        parts.append(f"{_count(found.missing)} missing")
    if found.unread:
        parts.append(f"{_count(found.unread)} not proven" + _names(found.unread))
    return ", ".join(parts) or "not sealed"


def _count(files: tuple[RemoteFile, ...]) -> str:
    total = sum(file.size for file in files)
    return f"{len(files)} file{'' if len(files) == 1 else 's'} ({size(total)})"


def _names(files: tuple[RemoteFile, ...]) -> str:
    return f": {', '.join(file.path for file in files)}" if len(files) <= 3 else ""


# --deep


def _deep_step(copy: Copy, needs: tuple[str, ...]) -> Step:
    """Reads what is there whatever the ledger says. Its action is the proof; the step after it heals what it threw away."""
    title = f"checkpoint {copy.name}: read every byte"
    judge = partial(_judge_deep, copy)
    return Step(NOUN, f"{copy.name}-deep", copy.node.name, title, judge, (copy.asked,), needs, recheck=False)


def _judge_deep(copy: Copy, answers: Answers) -> Verdict:
    tree = copy.tree(answers)
    there = tuple(file for file in copy.manifest.files if holds(tree, file))
    if not there or find(tree, copy.manifest).in_the_way:
        return Verdict("skipped", "nothing is there yet")
    return Verdict(
        "change",
        f"{_count(there)} read again, whatever the ledger says",
        actions=(prove(copy, copy.place(answers), tree, there),),
    )
