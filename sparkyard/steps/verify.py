"""Steps that send the requests of a recipe's checks to the lane's API. Pure."""

from __future__ import annotations

from sparkyard.actions import Request
from sparkyard.model import Lane
from sparkyard.plan import Step, Verdict
from sparkyard.recipe import CheckSpec
from sparkyard.rendered import RenderedLane


def verify_steps(lane: Lane, rendered: RenderedLane) -> tuple[Step, ...]:
    """One step a check, on the head. Its action is its proof."""
    return tuple(_step(check, lane, rendered) for check in rendered.checks)


def _step(check: CheckSpec, lane: Lane, rendered: RenderedLane) -> Step:
    action = Request(rendered.ready.url, check, rendered.ready.api_key)
    verdict = Verdict("change", "asked for real", (action,))
    return Step(
        "verify", check.name, lane.head.name, f"verify {check.name}", lambda _answers: verdict, recheck=False
    )
