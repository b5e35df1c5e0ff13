"""Rows of ``invoke lanes``: what each lane needs, what of it lies on the nodes, and what others measured. Pure.

Sizes are bytes. A part that could not be learned says so in words, and is never counted as zero without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from sparkyard.errors import CouldNotCheck, SparkyardError
from sparkyard.facts import CONTAINERS, containers, image, image_question
from sparkyard.job_facts import job_question
from sparkyard.model import Lane, Manifest, Node
from sparkyard.plan import Answers, Question
from sparkyard.recipe import Recipe
from sparkyard.rendered import RenderedLane
from sparkyard.reporting.amounts import size
from sparkyard.steps.checkpoint import Copy
from sparkyard.steps.image_found import difference
from sparkyard.steps.job_standing import unsealed
from sparkyard.system import SYSTEM, system
from sparkyard.trees import holds, parse_disk

Told = Mapping[str, Answers | SparkyardError]
"""Node → what it said, or why it said nothing; a node that was not asked is not there."""
Row = dict[str, Any]
NOT_ASKED = "not asked"
YES = "yes"
AS_KNOWN = "yes, as far as is known"
"""Nothing is against the lane, but a node was not asked, or the size of a part is not known before ``lock`` or ``build``."""
NOTHING_THERE = "nothing to download"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lane as this inventory could run it. ``fault`` says why it cannot; then there may be no ``lane`` and nothing rendered."""

    name: str
    recipe: Recipe
    fault: str = ""
    lane: Lane | None = None
    rendered: RenderedLane | None = None
    manifests: Mapping[str, Manifest] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.lane.nodes if self.lane is not None else ()

    def copies(self, node: Node) -> tuple[Copy, ...]:
        """The checkpoints whose files are known and that lie on a node."""
        if self.lane is None:
            return ()
        names = [name for name in self.lane.checkpoints if name in self.manifests]
        return tuple(Copy(n, node, self.manifests[n]) for n in names if _has(self.lane, n, node))


def _has(lane: Lane, name: str, node: Node) -> bool:
    return node == lane.head or node in lane.choose(lane.checkpoints[name].nodes)


# --- what is asked --------------------------------------------------------------------------------------------------------


def questions(candidates: Sequence[Candidate]) -> dict[str, tuple[Question, ...]]:
    """Everything that is asked of each node for all lanes together: one round trip."""
    found: dict[str, dict[Question, None]] = {}
    for candidate in candidates:
        for node in candidate.nodes:
            asked = found.setdefault(node.name, dict.fromkeys((SYSTEM, CONTAINERS, _disk(node))))
            asked |= dict.fromkeys(_of(candidate, node))
    return {node: tuple(asked) for node, asked in found.items()}


def _disk(node: Node) -> Question:
    return Question("ask_disk", (node.root,))


def _of(candidate: Candidate, node: Node) -> Iterator[Question]:
    rendered = candidate.rendered
    if rendered is None:
        return
    yield image_question(rendered.image.reference)
    for copy in candidate.copies(node):
        yield copy.asked
        yield copy.asked_disk
    for job in rendered.jobs:
        if node.name in job.nodes:
            yield job_question(job, node.name)


# --- one row a lane -------------------------------------------------------------------------------------------------------


def lane_row(candidate: Candidate, told: Told) -> Row:
    """A lane in one row: how many ranks it has, whether it can run here, and how far it is."""
    recipe = candidate.recipe
    least, most = recipe.nodes.at_least, recipe.nodes.at_most
    nodes = [node_row(candidate, node, told) for node in candidate.nodes]
    short: dict[str, list[str]] = {}
    for row in nodes:
        if row["short"]:
            short.setdefault(row["short"], []).append(row["node"])
    lacking = "; ".join(f"{', '.join(names)}: {what}" for what, names in short.items())
    ranks = f"{least}" if least == most else f"{least} to {most}"
    return {
        "lane": candidate.name,
        "title": recipe.title,
        "ranks": ranks,
        "fabric": fabric(candidate),
        "possible": candidate.fault or lacking or (AS_KNOWN if any(map(_open, nodes)) else YES),
        "here": here(candidate, nodes),
        "nodes": [node.name for node in candidate.nodes],
    }


def _open(row: Row) -> bool:
    """Whether something of a node is not known that could be against the lane: what is there already needs no size."""
    there = {"image"} if row["built"] == "yes" else set()
    there |= {f"job {name}" for name, state in row["jobs"].items() if state == "sealed"}
    return row["state"] != "asked" or bool(set(row["unknown"]) - there)


def fabric(candidate: Candidate) -> str:
    """How many HCAs a node has, and how the nodes are wired where the recipe has a setting for it."""
    lane = candidate.lane
    if lane is None or not candidate.recipe.rdma:
        return ""
    counts = sorted({len(node.link.hcas) for node in lane.nodes})
    words = [f"{' or '.join(map(str, counts))} HCAs a node"]
    if "fabric" in lane.settings:
        words.append(str(lane.settings["fabric"].value))
    return ", ".join(words)


def here(candidate: Candidate, nodes: Sequence[Row]) -> str:
    """How far a lane is on its nodes, in one phrase."""
    silent = {str(row["state"]) for row in nodes if row["state"] != "asked"}
    if not nodes or silent:
        return " and ".join(sorted(silent))
    if any(row["running"] == candidate.name for row in nodes):
        count = sum(row["running"] == candidate.name for row in nodes)
        return "running" if count == len(nodes) else f"running on {count} of {len(nodes)} nodes"
    parts = [_part("downloaded", nodes), _part("built", nodes)]
    jobs = dict.fromkeys(name for row in nodes for name in row["jobs"])
    parts += [_job(name, nodes) for name in jobs]
    return ", ".join(part for part in parts if part) or "nothing yet"


def _part(name: str, nodes: Sequence[Row]) -> str:
    wanted = [row for row in nodes if row[name] != NOTHING_THERE]
    count = sum(row[name] == "yes" for row in wanted)
    if not count or count == len(wanted):
        return name if count else ""
    return f"{name} on {count} of {len(wanted)}"


def _job(name: str, nodes: Sequence[Row]) -> str:
    its = [row["jobs"][name] for row in nodes if name in row["jobs"]]
    return f"{name} sealed" if its and all(state == "sealed" for state in its) else ""


# --- one row a lane and node ----------------------------------------------------------------------------------------------


def node_row(candidate: Candidate, node: Node, told: Told) -> Row:
    """What a lane needs on a node, and what of it is there."""
    limits, needs = candidate.recipe.limits, needed(candidate, node)
    row: Row = {
        "lane": candidate.name,
        "node": node.name,
        "memory_needed": limits.memory,
        "disk_needed": sum(needs.known.values()),
        "unknown": list(needs.unknown),
        "short": "",
        "running": "",
        "downloaded": NOT_ASKED,
        "built": NOT_ASKED,
        "jobs": {},
    }
    answers = told.get(node.name)
    if not isinstance(answers, Answers):
        state = NOT_ASKED if answers is None else "unreachable"
        words = f"{size(limits.memory)} needed"
        return row | {
            "state": state, "memory": words, "disk": _disk_words(row), "there": state,
            "downloaded": state, "built": state, "running": state,
        }  # fmt: skip
    try:
        return row | {"state": "asked"} | _asked(candidate, node, answers, needs, row)
    except CouldNotCheck as error:
        words = f"could not check: {error.message}"
        return row | {
            "state": "could not check", "memory": f"{size(limits.memory)} needed", "disk": _disk_words(row), "there": words,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes that a lane takes on a node, by what for; and the parts whose size nobody knows yet."""

    known: Mapping[str, int]
    unknown: tuple[str, ...]


def needed(candidate: Candidate, node: Node) -> Needs:
    """All bytes that a lane takes on a node when everything of it is there."""
    lane, rendered = candidate.lane, candidate.rendered
    if lane is None or rendered is None:
        return Needs({}, ())
    found: dict[str, int | None] = {}
    for name, spec in lane.checkpoints.items():
        if _has(lane, name, node):
            manifest = candidate.manifests.get(name)
            found[f"checkpoint {name}"] = manifest.size if manifest is not None else spec.bytes
    found["image"] = lane.recipe.image.bytes
    found |= {f"kept {kept.name}": kept.size for kept in rendered.kept.get(node.name, ())}
    counted = [PurePosixPath(kept.path) for kept in rendered.kept.get(node.name, ())]
    for job in (one for one in rendered.jobs if node.name in one.nodes):
        rooms = [room.size for room in job.room_of(node.name) if not _within(room.path, counted)]
        found[f"job {job.name}"] = None if None in rooms else sum(size for size in rooms if size)
    found["beside them"] = lane.recipe.limits.disk
    known = {name: count for name, count in found.items() if count is not None}
    return Needs(known, tuple(name for name, count in found.items() if count is None))


def _within(path: str, folders: Sequence[PurePosixPath]) -> bool:
    """Whether a job's room is in a folder that is counted by itself."""
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _disk_words(row: Row) -> str:
    words = f"{size(row['disk_needed'])} needed"
    return words + (f", and {', '.join(row['unknown'])}, of unknown size" if row["unknown"] else "")


def _asked(candidate: Candidate, node: Node, answers: Answers, needs: Needs, row: Row) -> Row:
    facts = system(answers)
    running = sorted(
        {fact.lane for fact in containers(answers) if fact.lane and fact.running and not fact.job}
    )
    mine = candidate.name in running
    found = _there(candidate, node, answers)
    free = facts.memory_available
    disk, lacking = _room(candidate, node, answers, needs, found)
    short = [lacking] if lacking else []
    if facts.memory_total < row["memory_needed"]:
        short.append(f"{size(facts.memory_total)} of memory in all, {size(row['memory_needed'])} needed")
    there = [word for word in ("downloaded", "built") if found[word] == "yes"]
    there += [f"{name} {state}" for name, state in found["jobs"].items()]
    there += [f"{other} runs" for other in running]
    return found | {
        "memory_free": free,
        "memory": f"{size(row['memory_needed'])} needed, {size(free)} free",
        "disk": f"{_disk_words(row)}; {disk}",
        "short": "; ".join(short),
        "running": candidate.name if mine else ", ".join(running),
        "there": ", ".join(there) or "nothing",
    }


def _there(candidate: Candidate, node: Node, answers: Answers) -> Row:
    """What of a lane lies on a node: its checkpoints (whole, by names and sizes), its image, the jobs that are sealed."""
    lane, rendered = candidate.lane, candidate.rendered
    assert lane is not None
    assert rendered is not None
    copies = candidate.copies(node)
    whole = [copy.name for copy in copies if not _missing(copy, answers)]
    wanted = [name for name in lane.checkpoints if _has(lane, name, node)]
    built = not difference(
        rendered.image, image(answers, image_question(rendered.image.reference)), system(answers)
    )
    jobs = {
        job.name: "sealed" if not unsealed(job, answers) else "not done"
        for job in rendered.jobs
        if node.name in job.nodes
    }
    some = f"{len(whole)} of {len(wanted)} checkpoints" if whole else "no"
    return {
        "downloaded": NOTHING_THERE if not wanted else "yes" if len(whole) == len(wanted) else some,
        "whole": whole,
        "built": "yes" if built else "no",
        "jobs": jobs,
    }


def _missing(copy: Copy, answers: Answers) -> int:
    """Bytes of a checkpoint that are not on the node yet."""
    tree = copy.tree(answers)
    return sum(file.size for file in copy.manifest.files if not holds(tree, file))


def _room(candidate: Candidate, node: Node, answers: Answers, needs: Needs, found: Row) -> tuple[str, str]:
    """What is still to come and what is free, in words; and what is lacking. Filesystems are counted apart."""
    disk = parse_disk(answers.of(_disk(node)), node.name, "free disk")
    coming = {disk.fs: 0}
    free = {disk.fs: disk.available}
    for name, count in needs.known.items():
        kind, _, which = name.partition(" ")
        if kind == "checkpoint":
            continue
        done = (name == "image" and found["built"] == "yes") or (
            kind == "job" and found["jobs"].get(which) == "sealed"
        )
        coming[disk.fs] += 0 if done else count
    known = {copy.name: copy for copy in candidate.copies(node)}
    for copy in known.values():
        at = parse_disk(answers.of(copy.asked_disk), node.name, "free disk")
        free.setdefault(at.fs, at.available)
        coming[at.fs] = coming.get(at.fs, 0) + _missing(copy, answers)
    unlisted = [n for n in needs.known if n.startswith("checkpoint ") and n.partition(" ")[2] not in known]
    coming[disk.fs] += sum(needs.known[name] for name in unlisted)
    short = [f"{size(count - free[fs])} too little disk" for fs, count in coming.items() if count > free[fs]]
    return f"{size(sum(coming.values()))} to come, {size(sum(free.values()))} free", "; ".join(short)
