"""A lane as it shall be on its nodes, with nothing left to decide but discovered values. Frozen data, no Jinja.

Times are seconds, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sparkyard.errors import Fault
from sparkyard.kept import Kept
from sparkyard.model import Container, RenderedFile
from sparkyard.recipe import CheckSpec
from sparkyard.rendered_job import RenderedJob


@dataclass(frozen=True, slots=True)
class RenderedTree:
    """A git source of a build. ``commit`` is 40 hex digits, or a mark when it is not locked yet.

    ``place``: where it is fetched from, behind mirrors. ``clone`` (bare) and ``folder`` (in the context) are on the head.
    """

    name: str
    url: str
    commit: str
    place: str
    clone: str
    folder: str


@dataclass(frozen=True, slots=True)
class RenderedMade:
    """How a project's own scripts make an image: ``steps`` in the clone ``folder`` on the head leave ``reference`` with ``labels``.

    ``record`` is the file on the head that says what was made.
    """

    reference: str
    steps: tuple[tuple[str, ...], ...]
    labels: Mapping[str, str]
    folder: str
    record: str


@dataclass(frozen=True, slots=True)
class RenderedImage:
    """The engine image.

    Attributes:
        reference: the name and tag that every rank runs; the tag is made of the build hash or the digest.
        mark: the value of its label ``sparkyard.build`` (64 hex digits) when it is built; empty when it is pulled. One that is made
            by scripts has it in its record.
        words: the whole ``docker build`` or ``docker pull``.
        context: absolute folder of a build, on the head; put together there from ``source`` and ``trees`` if there are any.
        pulled: ``repository@sha256:…`` when it is pulled.
        memory: what a build needs free.
        guard: bytes of available memory below which a build is killed; 0 for never.
        source: the recipe's own part of the context.
        local_base: the base, if it comes from no registry and must be on the head already.
        made: how a project's own scripts make it, if they do; its repository is the one tree.
    """

    name: str
    reference: str
    words: tuple[str, ...]
    mark: str = ""
    context: str = ""
    pulled: str = ""
    memory: int = 0
    source: str = ""
    trees: tuple[RenderedTree, ...] = ()
    local_base: str = ""
    made: RenderedMade | None = None
    guard: int = 0


@dataclass(frozen=True, slots=True)
class RenderedGate:
    """What must be seen of a rank before the next ranks start; ``port`` with the address to try."""

    timeout: float
    log: str = ""
    port: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class RenderedReady:
    """When the lane serves: ``health`` answers, then ``body`` is answered with a token."""

    url: str
    health: str
    body: dict[str, Any]
    timeout: float
    log_silence: float
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class RenderedScripts:
    """A kit that its own scripts start: the clone on the head, and the words that are run there.

    ``source`` is the recipe's URL, ``url`` where it is fetched from (a mirror's, if there is one).
    ``folder`` may start with ``<discovered: home>``; ``worker`` is how the kit's own ssh names each worker: user@address.
    """

    source: str
    url: str
    commit: str
    folder: str
    env_file: str
    start: tuple[str, ...]
    stop: tuple[str, ...]
    workers: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedPatch:
    """Where an edited text lies on a node (may start with ``<discovered: home>``), and the sha256 of both states, empty where unknown."""

    node: str
    name: str
    path: str
    pristine: str = ""
    patched: str = ""


HostWay = Literal["read", "sha256", "getconf", "unit"]


@dataclass(frozen=True, slots=True)
class RenderedHost:
    """Something of a node's host that sparkyard never changes, and what it must be.

    ``way`` and ``name``: a file's text, a value of getconf, a systemd unit's state. ``must`` is an expression over ``seen`` and
    the names of ``scope``. One that does not hold stops a start only where it ``blocks``.
    """

    node: str
    number: int
    what: str
    way: HostWay
    name: str
    must: str
    why: str
    next_step: str
    source: str
    blocks: bool
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RenderedLog:
    """What the log of a container must say once it serves: a line that fits ``pattern``, and ``must`` over its named groups (``found``)
    and the names of ``scope``; ``message`` is a template over the same names."""

    node: str
    container: str
    what: str
    pattern: str
    must: str
    message: str
    source: str
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RenderedLane:
    """Everything that a lane puts on its nodes.

    Attributes:
        containers: in rank order; ``gates`` by container name.
        order: groups of ranks that start together, one group after the other.
        ports: node → what the port is for → TCP port.
        kept: node → the folders there that outlive the services.
        discovered: names that must be discovered on a node before it can start, by node.
        unlocked: checkpoints by name, and git sources by dotted key, whose commit is not known yet.
        jobs: each after those that it needs.
        stages: what a start brings up, in order: names of services that start together, or of one job.
        start_faults: rules that do not hold and that only a start must obey.
    """

    lane: str
    image: RenderedImage
    files: tuple[RenderedFile, ...]
    containers: tuple[Container, ...]
    gates: Mapping[str, RenderedGate]
    order: tuple[tuple[int, ...], ...]
    ready: RenderedReady
    checks: tuple[CheckSpec, ...]
    ports: Mapping[str, Mapping[str, int]]
    unlocked: tuple[str, ...] = ()
    kept: Mapping[str, tuple[Kept, ...]] = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    scripts: RenderedScripts | None = None
    patches: tuple[RenderedPatch, ...] = ()
    host: tuple[RenderedHost, ...] = ()
    logs: tuple[RenderedLog, ...] = ()
    jobs: tuple[RenderedJob, ...] = ()
    stages: tuple[tuple[str, ...], ...] = ()
    start_faults: tuple[Fault, ...] = ()

    def files_of(self, node: str) -> tuple[RenderedFile, ...]:
        return tuple(file for file in self.files if file.node == node)

    def containers_of(self, node: str) -> tuple[Container, ...]:
        return tuple(container for container in self.containers if container.node == node)
