"""The life of a lane, however its containers are started: by us, or by a kit's own scripts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkyard.actions import Action
from sparkyard.model import Lane
from sparkyard.plan import Step
from sparkyard.rendered import RenderedLane
from sparkyard.steps import scripts, scripts_stop, service


def start_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """Every step of a start, each after ``needs`` (ids of preflight, image, file and checkpoint steps)."""
    if rendered.scripts is not None:
        return scripts.start_steps(lane, rendered, needs)
    return service.start_steps(lane, rendered, needs)


def stop_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """Steps that stop and remove every container of the lane."""
    if rendered.scripts is not None:
        return scripts_stop.stop_steps(lane, rendered, needs)
    return service.stop_steps(lane, needs)


def restart_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """A stop of every rank, then a start of every rank."""
    if rendered.scripts is not None:
        return scripts.restart_steps(lane, rendered, needs)
    return service.restart_steps(lane, rendered, needs)


def on_failure(lane: Lane, rendered: RenderedLane) -> Mapping[str, tuple[Action, ...]]:
    """What undoes a failed start, by node: a stop of each container (of those that the run started)."""
    if rendered.scripts is not None:
        return scripts.on_failure(lane, rendered)
    return service.on_failure(lane, rendered)
