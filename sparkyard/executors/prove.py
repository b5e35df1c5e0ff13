"""Has a node read files and compare their content (scripts/node/prove.sh), and follows what it says."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkyard.actions import Prove
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.guard import node_script
from sparkyard.manifest import digest
from sparkyard.model import RemoteFile
from sparkyard.world import World


def prove(action: Prove, node: str, world: World) -> None:
    """Read, compare, keep the proofs; write the seal when every file of the checkpoint is proven.

    A file with wrong content is removed and named; the judge then finds it missing. Raises StepFailed, Interrupted.
    """
    hearing = Hearing(world, sum(file.size for file in reading(action)))
    done = world.shell(node).run(command(action), on_line=hearing.line)
    if done.status != 0 or not hearing.ended:
        raise StepFailed(
            f"reading the files in {action.folder} failed with status {done.status}",
            node=node,
            details=done.last_lines(),
            next_step="look at the last lines; a full disk, a read error or missing rights are the usual causes",
        )
    if hearing.changed:
        raise StepFailed(
            f"{', '.join(hearing.changed)} changed while it was read in {action.folder}",
            node=node,
            next_step="end the program that writes there, then type the same line again",
        )
    if hearing.broken:
        raise StepFailed(
            f"{len(hearing.broken)} of the files in {action.folder} are as they were published, and not whole",
            node=node,
            details=hearing.broken,
            next_step="pin another revision in the recipe, then: invoke lock --refresh",
        )


def reading(action: Prove) -> tuple[RemoteFile, ...]:
    """Every file that is read, one entry a reading."""
    return (*action.files, *action.arrived, *(offer.file for offer in action.offered))


def command(action: Prove) -> Command:
    """The words for the node, with the work on standard input."""
    words = ("sh", "-c", node_script("prove.sh"), "sparkyard-prove", node_script("prove.py"))
    return Command((*words, action.folder, action.ledger, action.seal), stdin=work(action).encode())


def work(action: Prove) -> str:
    """What the script reads: a line for each file, then the seal."""
    lines = [_line("read", file) for file in action.files]
    lines += [_line("arrived", file) for file in action.arrived]
    lines += [_line("offered", offer.file, offer.origin) for offer in action.offered]
    named = {file.path for file in reading(action)}
    lines += [_line("hold", file) for file in action.held if file.path not in named]
    lines += [f"shards\t-\t0\t{pattern}\t\n" for pattern in action.patterns]
    return "".join(lines) + "seal\n" + action.seal_text


def _line(how: str, file: RemoteFile, origin: str = "") -> str:
    return "\t".join((how, digest(file), str(file.size), file.path, origin)) + "\n"


@dataclass
class Hearing:
    """What a proving node says, turned into progress and lines for people."""

    world: World
    total: int
    changed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    ended: bool = False

    def line(self, text: str) -> None:
        kind, *rest = text.split("\t")
        if kind == "progress":
            self.world.progress(int(rest[0]), self.total, "reading")
        elif kind == "changed":
            self.changed.append(rest[0])
        elif kind == "broken":
            self.broken.append(f"{rest[0]} {rest[1]}")
        elif kind == "absent":
            self.broken.append(f"{rest[0]} names {rest[1]}, which is not in the lock")
        elif kind == "end":
            self.ended = True
        elif kind in WORDS:
            self.world.say(WORDS[kind].format(*rest))


WORDS = {
    "damaged": "{0}: content differs (it is {1}); removed, will be brought again",
    "unfit": "{0}: what is offered has other content ({1}), left alone",
    "header": "{0} {1}, by its header; its content is read now",
    "missing": "{0}: not there any more",
    "linked": "{0}: linked from {1}",
    "copied": "{0}: copied from {1}",
    "unsealed": "not sealed: not proven yet: {0}",
    "sealed": "sealed",
}
