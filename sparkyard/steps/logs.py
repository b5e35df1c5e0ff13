"""Steps that look whether the logs of a lane's ranks say what its settings promise. Pure.

A check that fails is told, with exit status 3; the lane goes on serving.
"""

from __future__ import annotations

from sparkyard.actions_log import CheckLog
from sparkyard.plan import Step, Verdict
from sparkyard.rendered import RenderedLane


def log_steps(rendered: RenderedLane) -> tuple[Step, ...]:
    """One step a container that has checks. Its action is its proof."""
    places = dict.fromkeys((check.node, check.container) for check in rendered.logs)
    return tuple(_step(rendered, node, container) for node, container in places)


def _step(rendered: RenderedLane, node: str, container: str) -> Step:
    checks = tuple(c for c in rendered.logs if (c.node, c.container) == (node, container))
    verdict = Verdict("change", "its log is read", (CheckLog(container, checks),))
    title = f"verify the log of {container}"
    return Step("verify", f"log-{container}", node, title, lambda _answers: verdict, recheck=False)
