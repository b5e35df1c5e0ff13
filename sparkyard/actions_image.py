"""What the engine can do for an engine's image, as data: from a commit to an image on every node. Paths are absolute on the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkyard.command import Command
from sparkyard.layer_words import pasted


@dataclass(frozen=True, slots=True)
class GitFetch:
    """Bring a commit of a repository into the bare clone ``folder`` on the head, making the clone when it is not there.

    ``place`` is where it is fetched from: the URL, or what a mirror has instead.
    """

    url: str
    commit: str
    folder: str
    place: str

    def shown(self) -> str:
        behind = "" if self.place == self.url else f" (from {self.place})"
        return f"git fetch {self.url}{behind} into {self.folder} for commit {self.commit}"


@dataclass(frozen=True, slots=True)
class GitTree:
    """Write the tree of a commit of the bare clone ``clone`` into ``folder`` on the head: whole, or not at all.

    What was in ``folder`` before is gone then.
    """

    clone: str
    commit: str
    folder: str

    def shown(self) -> str:
        return f"write the tree of {self.commit} from {self.clone} into {self.folder}"


@dataclass(frozen=True, slots=True)
class MakeContext:
    """Put a build context together on the head: a copy of the folder ``source``, and each tree in a folder of its own in it.

    Older contexts beside ``folder`` that begin with ``prefix`` are removed. The folders of ``trees`` lie below ``folder``.
    """

    source: str
    folder: str
    trees: tuple[GitTree, ...]
    prefix: str = ""

    def shown(self) -> str:
        trees = "; ".join(tree.shown() for tree in self.trees)
        return f"copy {self.source} to {self.folder}; {trees}"


@dataclass(frozen=True, slots=True)
class BuildImage:
    """Build an image on the node with the Docker CLI. ``context`` is a folder of this machine, sent as it is.

    The build is killed when less than ``guard`` bytes of memory are available; 0 for never.
    """

    reference: str
    command: Command
    context: str
    guard: int = 0

    def shown(self) -> str:
        return self.command.shown()


@dataclass(frozen=True, slots=True)
class MakeImage:
    """Make an image by a project's own ``steps`` in a fresh clone ``folder`` on the head; they leave ``made`` with ``labels``.

    Then it is put on ``record`` with its ``mark`` and named ``reference``. Without steps it is there already, and only that is
    done. Older clones and records beside ``folder`` that begin with ``prefix`` are removed. A step is killed when less than ``guard``
    bytes of memory are available; 0 for never.
    """

    reference: str
    made: str
    mark: str
    labels: Mapping[str, str]
    check_out: Command
    steps: tuple[Command, ...]
    folder: str
    record: str
    prefix: str
    guard: int = 0

    def shown(self) -> str:
        words = [f"clone into {self.folder}", *(step.shown() for step in self.steps)] if self.steps else []
        return "; ".join((*words, f"docker tag {self.made} {self.reference}"))


@dataclass(frozen=True, slots=True)
class ShipImage:
    """Send an image from the head to the node: ``docker save | ssh … docker load`` over the link address, without the layers that are there."""

    reference: str
    address: str

    def shown(self) -> str:
        return pasted(self.reference, self.address)
