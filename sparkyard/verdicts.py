"""What a verdict means for a run: pure functions between steps and the engine."""

from __future__ import annotations

from sparkyard.errors import CouldNotCheck, SparkyardError, StepFailed
from sparkyard.plan import Answers, Plan, Step, Verdict


def judged(step: Step, answers: Answers) -> Verdict:
    try:
        return step.judge(answers)
    except CouldNotCheck as error:
        return Verdict("unknown", error.message, next_step=error.next_step, details=error.details)


def is_bad(verdict: Verdict) -> bool:
    return verdict.state in ("blocked", "unknown")


def is_final(step: Step, plan: Plan, changing: set[str]) -> bool:
    """Whether the verdict cannot become better by the steps before it."""
    by_id = {s.id: s for s in plan.steps}
    todo, seen = list(step.needs), set[str]()
    while todo:
        need = todo.pop()
        if need in changing:
            return False
        if need in by_id and need not in seen:
            seen.add(need)
            todo += by_id[need].needs
    return True


def failure(step: Step, verdict: Verdict, *, acted: bool = False) -> SparkyardError:
    reason = verdict.reason or "not as wanted"
    message = f"acted, but it is still not as wanted: {reason}" if acted else reason
    kind = CouldNotCheck if verdict.state == "unknown" else StepFailed
    if kind is CouldNotCheck:
        message = f"could not check: {reason}"
    return kind(message, node=step.node, next_step=verdict.next_step, details=verdict.details)


def error_data(error: SparkyardError) -> dict[str, object]:
    data: dict[str, object] = {"details": list(error.details), "exit": error.status}
    if error.next_step:
        data["next"] = error.next_step
    return data
