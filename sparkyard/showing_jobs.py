"""The jobs of a lane as a person reads them: when and where they run, what they leave, and what they need. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedJob, RenderedOutput
from sparkyard.reporting.amounts import size

Row = dict[str, Any]


def rows(rendered: RenderedLane) -> Iterator[Row]:
    """A row for each job, then the room that all of them need on each node."""
    for job in rendered.jobs:
        value = f"in {job.at} on {', '.join(job.nodes)}: {_leaves(job)}"
        yield {"name": job.name, "value": value, "about": f"{job.about}; {'; '.join(_needs(job))}"}
    for node in dict.fromkeys(room.node for job in rendered.jobs for room in job.room):
        wanted = [room.size for job in rendered.jobs for room in job.room_of(node)]
        yield {"name": node, "value": _added(wanted), "about": "room that its jobs need"}


def _leaves(job: RenderedJob) -> str:
    if not job.makes:
        return "leaves no file"
    count = len(job.makes)
    return f"leaves {count} file{'' if count == 1 else 's'}, {_together(job.makes)}"


def _together(outputs: tuple[RenderedOutput, ...]) -> str:
    """Their size, as far as it is known."""
    known = sum(output.at_least if output.size is None else output.size for output in outputs)
    if any(output.size is None and not output.at_least for output in outputs):
        return "of a size that is not locked yet"
    least = any(output.size is None for output in outputs)
    return f"{'at least ' if least else ''}{size(known)} ({known:,} bytes)"


def _added(sizes: list[int | None]) -> str:
    """Bytes together. What the lock must tell first is never counted as nothing without a word."""
    known = sum(each for each in sizes if each is not None)
    least = None in sizes
    if least and not known:
        return "not locked yet"
    return f"{'at least ' if least else ''}{size(known)} ({known:,} bytes)"


def _needs(job: RenderedJob) -> Iterator[str]:
    if job.needs:
        yield f"after {', '.join(job.needs)}"
    if job.gpu:
        yield "needs the GPU, so no lane may serve meanwhile"
    if job.memory:
        yield f"{size(job.memory)} of memory"
    yield f"may take {_long(job.timeout)}"


def _long(seconds: float) -> str:
    """A time limit in the unit that people would use."""
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:g} seconds"
