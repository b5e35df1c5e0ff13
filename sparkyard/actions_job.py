"""What the engine can do about jobs, as data. Paths are absolute on the node; sizes are bytes, times seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkyard.command import Command
from sparkyard.rendered_job import UNKNOWN, Expected, RenderedOutput, RenderedSays


@dataclass(frozen=True, slots=True)
class JobRank:
    """One rank of a job: its container, the whole ``docker run``, and the sign that the next ranks wait for.

    ``places`` are the folders below which it writes what is ``expected``.
    """

    node: str
    rank: int
    container: str
    command: Command
    gate_log: str = ""
    gate_port: tuple[str, int] | None = None
    gate_timeout: float = 0.0
    places: tuple[str, ...] = ()
    expected: Expected = UNKNOWN


@dataclass(frozen=True, slots=True)
class RunJob:
    """Run every rank of a job to its end, look at what it left, and seal it on every node.

    Attributes:
        order: groups of ranks that start together.
        attach: the ranks are there already (an earlier run was killed): wait for them.
        lasting: it may go on without this run (a job of a build), to be found by the next one.
        makes, says: what must be there, and what their logs must have said.
        seals, begun: node → the records.
        record: what every seal says beside the outputs of its node.
        guard: bytes of available memory below which the ranks of a node are killed; 0 for never.
    """

    job: str
    ranks: tuple[JobRank, ...]
    order: tuple[tuple[int, ...], ...]
    attach: bool
    lasting: bool
    timeout: float
    log_silence: float
    grace: float
    says: tuple[RenderedSays, ...]
    makes: tuple[RenderedOutput, ...]
    seals: Mapping[str, str]
    begun: Mapping[str, str]
    record: Mapping[str, Any] = field(repr=False, default_factory=dict)
    guard: int = 0

    def shown(self) -> str:
        if self.attach:
            return f"wait for {', '.join(rank.container for rank in self.ranks)}"
        return "\n".join(f"{rank.node}: {rank.command.shown()}" for rank in self.ranks)


@dataclass(frozen=True, slots=True)
class RemoveFiles:
    """Remove files of the node; what is not there is fine."""

    paths: tuple[str, ...]

    def shown(self) -> str:
        return Command(("rm", "-f", "--", *self.paths)).line()
