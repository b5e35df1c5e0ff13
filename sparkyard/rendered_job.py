"""A job as it shall run on its nodes, with nothing left to decide but discovered values. Frozen data. Sizes are bytes, times seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sparkyard.model import Container, RenderedFile

SIDECAR = ".sparkyard.json"
"""What follows the name of an output in that of its sidecar."""


@dataclass(frozen=True, slots=True)
class RenderedOutput:
    """A file that a job leaves on a node: of exactly ``size`` bytes, or of ``at_least`` so many where that is not known.

    ``path`` may start with ``<discovered: home>``. Of one that is ``linked`` the ctime says nothing: a new link changes it.
    """

    node: str
    path: str
    size: int | None = None
    at_least: int = 0
    sidecar: bool = False
    linked: bool = False

    def misfit(self, size: int) -> str:
        """How a file of ``size`` bytes is not what is wanted; empty when it is."""
        if self.size is not None and size != self.size:
            return f"has {size} bytes, expected {self.size}"
        return f"has {size} bytes, expected {self.at_least} or more" if size < self.at_least else ""


@dataclass(frozen=True, slots=True)
class RenderedRoom:
    """Free bytes that a job needs on the filesystem of ``path`` on a node; None where the lock must tell it first."""

    node: str
    path: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Expected:
    """The bytes that a job will have written on a node at its end; 0 when nobody knows. ``at_most``: as much as it has room for."""

    size: int = 0
    at_most: bool = False


UNKNOWN = Expected()


@dataclass(frozen=True, slots=True)
class RenderedSays:
    """A line that the log of each of ``ranks`` must have."""

    what: str
    pattern: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RenderedBringing:
    """A ``setting`` that is not known before the job has run: a person finds its value among the files of ``folder`` on the head (may
    start with ``<discovered: home>``), or in lines of the log of ``container`` that match ``log``."""

    setting: str
    folder: str
    container: str
    log: str


@dataclass(frozen=True, slots=True)
class RenderedJob:
    """A job of a lane.

    Attributes:
        containers: of its ranks, in rank order; each has the job's one ``hash``, which covers all of them.
        order: groups of ranks that start together, one group after the other.
        makes, room: of all nodes.
        brings: what a person must be told of when it is done, of settings that have no value yet.
        files: rendered files that its ranks read; ``patches`` are the names of edited texts that they mount.
        folders: node → where the records of the job lie there.
        made_of: pins and hashes, by what they are of, for seals and sidecars.
    """

    name: str
    about: str
    at: Literal["build", "start"]
    containers: tuple[Container, ...]
    order: tuple[tuple[int, ...], ...]
    hash: str
    timeout: float
    grace: float
    log_silence: float = 0.0
    needs: tuple[str, ...] = ()
    makes: tuple[RenderedOutput, ...] = ()
    room: tuple[RenderedRoom, ...] = ()
    says: tuple[RenderedSays, ...] = ()
    brings: tuple[RenderedBringing, ...] = ()
    memory: int = 0
    gpu: bool = False
    bound_to: tuple[str, ...] = ()
    fresh: float | None = None
    frees_memory: bool = False
    variant: str = ""
    files: tuple[RenderedFile, ...] = ()
    patches: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    made_of: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(container.node for container in self.containers)

    def container_of(self, node: str) -> Container:
        """Its container on a node. Raises KeyError where it has none."""
        return {container.node: container for container in self.containers}[node]

    def outputs_of(self, node: str) -> tuple[RenderedOutput, ...]:
        return tuple(output for output in self.makes if output.node == node)

    def room_of(self, node: str) -> tuple[RenderedRoom, ...]:
        return tuple(room for room in self.room if room.node == node)

    @property
    def record(self) -> str:
        """What its records are called: each variant of a job is on record by itself."""
        return f"{self.name}@{self.variant}" if self.variant else self.name

    def seal(self, node: str) -> str:
        """The file that says that the job is done: written last, the same job and hash on every node."""
        return f"{self.folders[node]}/{self.record}.json"

    def begun(self, node: str) -> str:
        """The file that says that it was begun: from then on what lies at the paths of its outputs is its own, unfinished."""
        return f"{self.folders[node]}/{self.record}.begun.json"
