"""A lane as it shall be on its nodes, with nothing left to decide but discovered values. Frozen data, no Jinja.

Times are seconds, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkyard.model import Container, RenderedFile
from sparkyard.recipe import CheckSpec


@dataclass(frozen=True, slots=True)
class RenderedImage:
    """The engine image.

    Attributes:
        reference: the name and tag that every rank runs; the tag is made of the build hash or the digest.
        mark: the value of its label ``sparkyard.build`` (64 hex digits) when it is built; empty when it is pulled.
        words: the whole ``docker build`` or ``docker pull``.
        context: absolute folder of a build, on the machine where sparkyard runs.
        pulled: ``repository@sha256:…`` when it is pulled.
        memory: what a build needs free.
    """

    name: str
    reference: str
    words: tuple[str, ...]
    mark: str = ""
    context: str = ""
    pulled: str = ""
    memory: int = 0


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
class RenderedLane:
    """Everything that a lane puts on its nodes.

    Attributes:
        containers: in rank order; ``gates`` by container name.
        order: groups of ranks that start together, one group after the other.
        ports: node → what the port is for → TCP port.
        discovered: names that must be discovered on a node before it can start, by node.
        unlocked: checkpoints whose commit is not known yet.
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
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def files_of(self, node: str) -> tuple[RenderedFile, ...]:
        return tuple(file for file in self.files if file.node == node)

    def containers_of(self, node: str) -> tuple[Container, ...]:
        return tuple(container for container in self.containers if container.node == node)
