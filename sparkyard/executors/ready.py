"""Waits until a lane serves: health answers, and a real generation gives a token. All ranks are watched meanwhile."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from sparkyard.actions import WaitReady
from sparkyard.diagnosis import LAST_LINES, known_tokens
from sparkyard.errors import Interrupted, SparkyardError, StepFailed
from sparkyard.executors.http import Api, ask
from sparkyard.expectations import shortened
from sparkyard.replies import Reply, generated, listed_models, model_hint
from sparkyard.world import World

GENERATION = "/v1/chat/completions"
ATTEMPT = 120.0
"""Seconds that one generation may take: a first one may compile kernels."""
SHORTEST, LONGEST = 0.05, 1.0
"""Seconds between two polls: the pause doubles."""
LOOK = 0.5
"""Seconds between looks at time limits and the cancel signal while nothing happens."""


@dataclass(slots=True)
class Progress:
    """What the asking thread has found so far. Seconds since the waiting began; None while it has not happened.

    ``refused`` says that nothing listened at the API: ranks that an earlier run started do not serve yet.
    """

    healthy: float | None = None
    token: float | None = None
    generations: int = 0
    refused: bool = False
    last: str = "nothing was asked yet"
    failure: SparkyardError | None = None


def wait_ready(action: WaitReady, node: str, world: World) -> None:
    """Return once a token was generated.

    Raises StepFailed when a rank ends, all ranks are silent, the key or the model's name is refused, or time is up; Interrupted.
    """
    asker = _Asker(action, world, node)
    try:
        _wait(action, node, world, asker)
    finally:
        asker.leave.set()


def _wait(action: WaitReady, node: str, world: World, asker: _Asker) -> None:
    seen, began, told = asker.progress, time.monotonic(), False
    asker.start()
    while seen.token is None:
        news = world.watches.news.count
        if world.cancelled.is_set():
            raise Interrupted("interrupted while waiting for the lane", node=node)
        world.watches.demand_all_alive(action.log_silence)
        if seen.failure:
            raise seen.failure
        if time.monotonic() - began > action.timeout:
            raise _not_ready(action, node, world, seen)
        if seen.healthy is not None and not told:
            told = True
            world.say(f"{action.health} answered 200 after {seen.healthy:.1f} s")
        if seen.token is None:
            world.watches.news.wait(LOOK, news)
        if seen.token is None:
            _attach(action, world, seen)
    world.watches.guard(0)
    if not told:
        world.say(f"{action.health} answered 200 after {seen.healthy or 0:.1f} s")
    world.say(f"a real generation answered after {seen.token:.1f} s")


def _attach(action: WaitReady, world: World, seen: Progress) -> None:
    """Watch the ranks that an earlier run started. Not before the first wait: a lane that serves needs no watching.

    Their memory is watched once nothing listened at the API: one that serves may have less left than a start must have.
    """
    for node, container in action.containers:
        if not world.watches.watched(node, container):
            world.watches.start(world, node, container, whole=False)
    if seen.refused and seen.healthy is None:
        world.watches.guard(action.guard)


def _not_ready(action: WaitReady, node: str, world: World, seen: Progress) -> StepFailed:
    state = f"{action.health} never answered 200; the last: {seen.last}"
    if seen.healthy is not None:
        tries = f"{seen.generations} generation{'' if seen.generations == 1 else 's'}"
        state = f"{action.health} is 200 since {seen.healthy:.1f} s, but {tries} gave no token; the last: {seen.last}"
    details = [
        line
        for where, container, lines in world.watches.last_lines(LAST_LINES)
        for line in (f"last lines of {where} ({container}):", *(f"  {text}" for text in lines or ("(none)",)))
    ]
    return StepFailed(
        f"not ready within {action.timeout:g} s: {state}",
        node=node,
        next_step="read the lines above; if it only needs longer, raise ready.timeout in the recipe",
        details=details,
    )


class _Asker:
    """Asks the API in a thread of its own, so that the death of a rank is seen while a request hangs."""

    def __init__(self, action: WaitReady, world: World, node: str) -> None:
        self.progress = Progress()
        self.leave = threading.Event()
        self._action, self._world, self._node = action, world, node
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._ask, name="ready", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _ask(self) -> None:
        api = Api(self._action.url, self._action.api_key)
        if self._until(lambda: self._health(api)):
            self._until(lambda: self._generation(api))

    def _until(self, once: Any) -> bool:
        """Poll until it is true; False when told to leave or after a failure."""
        pause = SHORTEST
        while not once():
            if self.progress.failure or self.leave.wait(pause):
                return False
            pause = min(pause * 2, LONGEST)
        self._world.watches.news.tell()
        return True

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _left(self) -> float:
        return max(0.1, self._action.timeout - self._seconds())

    def _health(self, api: Api) -> bool:
        reply = ask(api, "GET", self._action.health, None, min(10.0, self._left()))
        self.progress.last = reply.unheard or f"HTTP status {reply.status}"
        self.progress.refused = self.progress.refused or reply.refused
        if reply.status != 200:
            return False
        self.progress.healthy = self._seconds()
        return True

    def _generation(self, api: Api) -> bool:
        body = {**self._action.body, "stream": False}
        reply = ask(api, "POST", GENERATION, body, min(ATTEMPT, self._left()))
        self.progress.generations += 1
        self.progress.last = reply.unheard or f"HTTP status {reply.status}: {shortened(reply.text)}"
        if reply.status == 200 and generated(reply.document):
            self.progress.token = self._seconds()
            return True
        self._give_up(api, reply)
        return False

    def _give_up(self, api: Api, reply: Reply) -> None:
        """Set the failure for answers that no waiting will change."""
        self.progress.failure = final_failure(
            self._action, self._node, reply, lambda: ask(api, "GET", "/v1/models", None, 10.0)
        )
        self._world.watches.news.tell()


def final_failure(action: WaitReady, node: str, reply: Reply, models: Any) -> StepFailed | None:
    """The failure for a refused generation that no waiting will change; None for all others. ``models`` asks /v1/models."""
    model = str(action.body.get("model", ""))
    said = shortened(reply.text)
    if reply.status in (401, 403):
        key = "the key that was sent is not the engine's" if action.api_key else "no key was sent"
        text, next_step = (
            f"the API wants another key (HTTP status {reply.status}; {key})",
            "compare the lane's api_key in invoke config with what the engine was given",
        )
    elif reply.status == 404 and (hint := model_hint(model, listed_models(models().document))):
        text, next_step = (
            f"the API does not know the model (HTTP status 404): {hint}",
            "correct the lane's model name in the recipe or the inventory",
        )
    elif reply.status in (400, 422):
        text, next_step = (
            f"the API refuses the request for one token (HTTP status {reply.status})",
            "compare ready.body in the recipe with what the engine takes",
        )
        next_step = next((token.next_step for token in known_tokens([reply.text])), next_step)
    else:
        return None
    return StepFailed(text, node=node, next_step=next_step, details=[f"it said: {said}"])
