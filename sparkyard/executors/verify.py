"""Sends the request of one verify check and shows what was asked, what came back, and the result. Changes nothing."""

from __future__ import annotations

import threading

from sparkyard.actions import Request
from sparkyard.command import mask
from sparkyard.errors import Interrupted, VerifyFailed
from sparkyard.executors.http import Api, ask
from sparkyard.expectations import shortened
from sparkyard.recipe import CheckSpec
from sparkyard.replies import Judgement, Reply, judge_reply, listed_models, model_hint, over_all, together
from sparkyard.world import World

ASKED = 300
"""Characters of a request body shown."""


def request(action: Request, node: str, world: World) -> None:
    """Make one check. Raises VerifyFailed when it fails or could not be made, Interrupted."""
    check: CheckSpec = action.check
    api = Api(action.url, action.api_key)
    replies = _send(api, check, world)
    judged = over_all(check, replies, together(judge_reply(check, reply) for reply in replies))
    hints = (*judged.hints, *_model(api, check, replies))
    secrets = (action.api_key,)
    asked, answered = mask(_asked(check), secrets), mask(judged.answered, secrets)
    world.verdict(asked, answered, judged.result)
    if judged.result in ("fail", "could not check"):
        raise _failed(check, node, judged, hints, secrets)


def _failed(
    check: CheckSpec, node: str, judged: Judgement, hints: tuple[str, ...], secrets: tuple[str, ...]
) -> VerifyFailed:
    """What was asked and answered is the step's verdict, and is not said twice."""
    return VerifyFailed(
        mask(f"{check.name}: {judged.result}: {'; '.join(judged.faults)}", secrets),
        node=node,
        details=[
            *(f"known: {hint}" for hint in hints),
            "nothing was changed; the lane was left as it is",
        ],
        next_step="invoke logs" if judged.result == "fail" else "invoke status",
    )


def _asked(check: CheckSpec) -> str:
    times = f"{check.at_once} at once: " if check.at_once > 1 else ""
    times += f"{check.repeats} times: " if check.repeats > 1 else ""
    body = f" {shortened(check.body, ASKED)}" if check.body else ""
    return f"{times}{check.method} {check.path}{body}"


def _send(api: Api, check: CheckSpec, world: World) -> list[Reply]:
    """The request as often as it is to be repeated; not again once there was no usable reply."""
    replies: list[Reply] = []
    for number in range(check.repeats):
        replies += _send_once(api, check, world)
        if check.repeats > 1:
            world.progress(number + 1, check.repeats, check.name, "requests")
        if any(reply.unheard or reply.late for reply in replies):
            break
    return replies


def _send_once(api: Api, check: CheckSpec, world: World) -> list[Reply]:
    """Every copy of the request at the same moment."""
    replies: list[Reply | None] = [None] * check.at_once
    gate = threading.Barrier(check.at_once)
    body = {**check.body, **({"stream": True} if check.stream else {})} if check.method == "POST" else None

    def one(index: int) -> None:
        gate.wait()
        replies[index] = ask(api, check.method, check.path, body, check.timeout, check.stream)

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(check.at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            if world.cancelled.is_set():
                raise Interrupted("interrupted during a check")
            thread.join(0.2)
    return [reply or Reply(unheard="the request could not be sent") for reply in replies]


def _model(api: Api, check: CheckSpec, replies: list[Reply]) -> tuple[str, ...]:
    """What is wrong with the model's name, after a 404."""
    model = check.body.get("model")
    if not isinstance(model, str) or all(reply.status != 404 for reply in replies):
        return ()
    hint = model_hint(model, listed_models(ask(api, "GET", "/v1/models", None, 10.0).document))
    return (hint,) if hint else ()
