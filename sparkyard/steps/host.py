"""What a lane demands of its nodes' hosts, which sparkyard never changes: one step a requirement and node. Pure.

A requirement that does not hold stops a start, or is only said; the next step is the person's to type.
"""

from __future__ import annotations

from sparkyard.conditions import true
from sparkyard.errors import CouldNotCheck
from sparkyard.plan import Answer, Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedHost, RenderedLane

NO_PROGRAM, TIMED_OUT = 127, 124
NOT_KNOWN, NO_UNIT = 2, 4
"""Status of ``getconf`` for a name that it does not know, of ``systemctl is-active`` for a unit that is not there."""
SHOWN = 120
"""Characters of what was seen that are shown."""


def host_steps(rendered: RenderedLane) -> tuple[Step, ...]:
    """A step for each requirement on each node."""
    return tuple(_step(each) for each in rendered.host)


def _step(wanted: RenderedHost) -> Step:
    asked = Question(f"ask_{wanted.way}", (wanted.name,))

    def judge(answers: Answers) -> Verdict:
        try:
            text = seen(wanted, answers.of(asked), answers.node)
        except CouldNotCheck as error:
            if wanted.blocks:
                raise
            return Verdict("ok", f"could not be looked at, and the lane starts without it: {error.message}")
        return _verdict(wanted, text, answers.node)

    title = f"preflight: {wanted.what}"
    return Step("preflight", f"host-{wanted.number}", wanted.node, title, judge, (asked,))


def seen(wanted: RenderedHost, answer: Answer, node: str) -> str | None:
    """The text, without the last line end; None when there is no such file, value or unit. Raises CouldNotCheck."""
    text = answer.out[:64] if wanted.way == "sha256" else answer.out.removesuffix("\n")
    if _absent(wanted, answer, text):
        return None
    if answer.status == 0 or (wanted.way == "unit" and text and answer.status != TIMED_OUT):
        return text
    said = answer.err.strip() or f"status {answer.status}"
    raise CouldNotCheck(f"{wanted.what}: {wanted.way} {wanted.name}: {said}", node=node)


def _absent(wanted: RenderedHost, answer: Answer, text: str) -> bool:
    if wanted.way == "unit":
        return answer.status in (NO_PROGRAM, NO_UNIT)
    if wanted.way == "getconf":
        return answer.status == NOT_KNOWN or text == "undefined"
    return bool(answer.status) and "No such file or directory" in answer.err


def _verdict(wanted: RenderedHost, text: str | None, node: str) -> Verdict:
    try:
        fits = true(wanted.must, {**wanted.scope, "seen": text})
    except ValueError as error:
        raise CouldNotCheck(
            f"{wanted.what}: {error} in: {wanted.must}",
            node=node,
            details=[f"{_place(wanted)}: {_shown(text)}"],
        ) from error
    found = {"seen": text, "must": wanted.must, "holds": fits}
    if fits:
        return Verdict("ok", f"{_place(wanted)}: {_shown(text)}", data=found)
    reason = f"{_place(wanted)} is {_shown(text)}; must be: {wanted.must}"
    why = (f"why: {wanted.why}", f"source: {wanted.source}")
    if wanted.blocks:
        return Verdict("blocked", reason, next_step=wanted.next_step, details=why, data=found)
    advice = (f"to make it so: {wanted.next_step}",) if wanted.next_step else ()
    return Verdict(
        "ok", f"not so, and the lane starts without it: {reason}", details=(*why, *advice), data=found
    )


def _place(wanted: RenderedHost) -> str:
    return wanted.name if wanted.way == "read" else f"{wanted.way} {wanted.name}"


def _shown(text: str | None) -> str:
    if text is None:
        return "not there"
    line = " / ".join(text.splitlines()) or "empty"
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
