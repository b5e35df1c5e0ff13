"""The walk: asks every node, judges every step, shows or acts, and asks again. The only code that decides to act.

One walk serves ``--check`` and the real run. Nodes work in parallel, the steps of one node one after another; a step waits for
its needs wherever they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from sparkyard.actions import Action, StopContainer
from sparkyard.asking import ask, ask_all
from sparkyard.errors import Interrupted, SparkyardError, Unreachable, worst
from sparkyard.events import Emit, Event, EventType
from sparkyard.plan import Answers, Plan, Question, Step, Verdict, joined, of_others, with_known
from sparkyard.step_world import StepWorld, Surroundings
from sparkyard.verdicts import error_data, failure, is_bad, is_final, judged
from sparkyard.walk import READS, REQUESTS, Walk, begun, changes_nothing, settled

ROUNDS = 3
"""How often a step may act before its question must be answered as wanted."""

Confirm = Callable[[list[str]], bool]


@dataclass(frozen=True, slots=True)
class Mode:
    """How a line runs: ``--check``, ``--diff``."""

    check: bool = False
    diff: bool = False


class Engine:
    """Runs the plans of one line.

    Args:
        surroundings: shells, folders, secrets and the cancel signals of the line.
        confirm: asked, with what would be destroyed, before anything acts; False ends the line.
    """

    def __init__(self, surroundings: Surroundings, emit: Emit, mode: Mode, confirm: Confirm) -> None:
        self._around = surroundings
        self._emit = emit
        self._mode = mode
        self._confirm = confirm
        self._pending: dict[str, str] = {}
        self._known: dict[str, Answers] = {}
        self._discovered: dict[str, Mapping[str, str]] = {}
        self._results = threading.Lock()

    def run(self, plan: Plan) -> int:
        """Walk one plan; returns its exit status and raises nothing that is a step's failure."""
        walk = Walk(plan)
        self._ask_all(walk, plan.nodes())
        walk.plan = joined(plan, walk.answers, self._judge_all(walk))
        verdicts = self._judge_all(walk)
        if self._mode.check:
            return self._show(walk, verdicts)
        if self._refused(walk, verdicts):
            return worst(walk.statuses)
        walk.outcomes |= {s.id: "skipped" for s in plan.steps if s.node in walk.unreachable}
        destroyed = [v.destroys for v in verdicts.values() if v.state == "change" and v.destroys]
        if destroyed:
            if not self._confirm(destroyed):
                raise Interrupted("not confirmed; nothing was changed")
            self._known.clear()
            self._ask_all(walk, plan.nodes())
        self._act_all(walk)
        return worst(walk.statuses)

    # asking

    def _ask_all(self, walk: Walk, nodes: Iterable[str]) -> None:
        """Ask every node what this line has not been told yet; what it was told holds until something acts."""
        asked: dict[str, tuple[Question, ...]] = {}
        for node in nodes:
            told = self._known[node].given if node in self._known else {}
            asked[node] = tuple(question for question in walk.plan.questions(node) if question not in told)
        for node, answer in ask_all(self._around, asked).items():
            if isinstance(answer, Answers):
                self._known[node] = self._with_discovered(with_known(self._known.get(node), answer))
                walk.answers[node], walk.stamps[node] = self._known[node], walk.generation
            else:
                self._unanswered(walk, node, answer)
        for node in walk.answers.keys() & asked.keys():  # the first knew nothing yet of what the last told
            walk.answers[node] = self._known[node] = self._with_discovered(walk.answers[node])

    def _ask(self, step: Step) -> Answers:
        """Ask one step's questions; what was discovered on its node earlier in this line still holds."""
        others = {
            node: self._with_discovered(ask(self._around, node, questions))
            for node, questions in step.also.items()
        }
        return replace(self._with_discovered(ask(self._around, step.node, step.questions)), others=others)

    def _with_discovered(self, answers: Answers) -> Answers:
        own = {**self._discovered.get(answers.node, {}), **answers.discovered}
        self._discovered[answers.node] = own
        return replace(answers, discovered={**of_others(answers.node, self._discovered), **own})

    def _unanswered(self, walk: Walk, node: str, error: SparkyardError) -> None:
        if isinstance(error, Interrupted):
            raise error
        walk.statuses.append(error.status)
        walk.unreachable.add(node)
        kind: EventType = "node-unreachable" if isinstance(error, Unreachable) else "step-failed"
        self._emit(Event(kind, error.message, node, data=error_data(error)))

    # judging

    def _judge_all(self, walk: Walk) -> dict[str, Verdict]:
        reached = [step for step in walk.plan.steps if step.node not in walk.unreachable]
        return {step.id: judged(step, walk.seen(step)) for step in reached}

    def _refused(self, walk: Walk, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether something found by asking alone forbids to begin; it is shown then, all of it at once."""
        changing = {id_ for id_, verdict in verdicts.items() if verdict.state == "change"}
        bad = [
            s
            for s in walk.plan.steps
            if s.id in verdicts and is_final(s, walk.plan, changing) and is_bad(verdicts[s.id])
        ]
        if walk.plan.partial or not (bad or walk.unreachable):
            return False
        for step in walk.plan.steps:
            if step in bad:
                self._fail(walk, step, failure(step, verdicts[step.id]))
            elif step.id in verdicts and verdicts[step.id].state in ("ok", "skipped"):
                self._ok(walk, step, verdicts[step.id])
            else:
                self._skip(walk, step, "nothing was changed: see the failures of this run")
        return True

    # --check

    def _show(self, walk: Walk, verdicts: Mapping[str, Verdict]) -> int:
        for step in walk.plan.steps:
            if step.id in verdicts:
                self._show_step(walk, step, verdicts[step.id])
            else:
                self._skip(walk, step, "the node did not answer")
        return worst(walk.statuses)

    def _show_step(self, walk: Walk, step: Step, verdict: Verdict) -> None:
        after = next((self._pending[need] for need in step.needs if need in self._pending), "")
        earlier = self._pending.get(step.id, "")
        if is_bad(verdict) and earlier:
            said = (
                "is to be done first, as told above"
                if earlier == step.title
                else f"will be checked after: {earlier}"
            )
            self._skip(walk, step, said, verdict)
        elif is_bad(verdict) and after:
            self._would(walk, step, Verdict("change", verdict.reason, data=verdict.data), after)
        elif (
            verdict.state == "change"
            and not after
            and verdict.actions
            and all(isinstance(a, REQUESTS) for a in verdict.actions)
        ):
            self._skip(
                walk, step, f"sends requests, not under --check: {verdict.actions[0].shown()}", verdict
            )
        elif verdict.state == "change":
            self._would(walk, step, verdict, after)
        elif is_bad(verdict):
            self._fail(walk, step, failure(step, verdict))
        else:
            self._ok(walk, step, verdict)

    def _would(self, walk: Walk, step: Step, verdict: Verdict, after: str) -> None:
        walk.statuses.append(6)
        walk.outcomes[step.id] = "would-change"
        self._pending.setdefault(step.id, step.title)
        message = f"will run after: {after}" if after else verdict.reason
        data = self._data(step, verdict) | ({"after": after} if after else {})
        self._emit(Event("step-would-change", message, step.node, step.id, data))

    # acting

    def _act_all(self, walk: Walk) -> None:
        waiting = [step for step in walk.plan.steps if step.node not in walk.unreachable]
        running: dict[Future[None], Step] = {}
        with ThreadPoolExecutor(max(len(walk.plan.nodes()), 1)) as pool:
            while waiting or running:
                for step in self._ready(walk, waiting, running.values()):
                    running[pool.submit(self._act, walk, step)] = step
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    running.pop(future)
                    future.result()
        self._undo(walk)
        if self._around.interrupted.is_set():
            walk.statuses.append(Interrupted.status)

    def _ready(self, walk: Walk, waiting: list[Step], running: Iterable[Step]) -> list[Step]:
        """The steps to begin now; steps that can no longer run are taken out and shown."""
        busy = {step.node for step in running}
        ready: list[Step] = []
        for step in list(waiting):
            lost = next((n for n in step.needs if walk.outcomes.get(n) in ("failed", "skipped-lost")), "")
            if lost or self._around.stop.is_set():
                waiting.remove(step)
                reason = f"needs {lost}" if lost else "the run is ending"
                self._skip(walk, step, reason, lost=True)
            elif step.node not in busy and all(settled(walk, need) for need in step.needs):
                waiting.remove(step)
                busy.add(step.node)
                ready.append(step)
        return ready

    def _act(self, walk: Walk, step: Step) -> None:
        try:
            self._act_step(walk, step)
        except SparkyardError as error:
            if isinstance(error, Interrupted) and self._failing(walk):
                self._skip(walk, step, "ended because another step failed", lost=True)
                return
            self._fail(walk, step, error)
            if walk.plan.on_failure:
                self._around.stop.set()

    def _failing(self, walk: Walk) -> bool:
        """Whether this run is ending because of a failure of its own, and not because a person wants it to."""
        return "failed" in walk.outcomes.values() and not self._around.interrupted.is_set()

    def _act_step(self, walk: Walk, step: Step) -> None:
        began = time.monotonic()
        verdict = judged(step, self._fresh(walk, step))
        world: StepWorld | None = None
        acted: list[Action] = []
        for _round in range(ROUNDS):
            if verdict.state != "change" or (
                acted and tuple(acted[-len(verdict.actions) :]) == verdict.actions
            ):
                break
            if world is None:
                self._emit(Event("step-start", verdict.reason, step.node, step.id, self._data(step, verdict)))
                world = StepWorld(self._around, step, self._emit, walk.results.setdefault(step.id, {}))
            self._execute(walk, step, verdict, world)
            acted += verdict.actions
            if not step.recheck:
                verdict = Verdict("ok", verdict.reason, data={**verdict.data, **world.results})
                break
            verdict = judged(step, self._ask(step))
        if verdict.state not in ("ok", "skipped"):
            raise failure(step, verdict, acted=bool(acted))
        self._done(walk, step, verdict, acted, time.monotonic() - began)

    def _execute(self, walk: Walk, step: Step, verdict: Verdict, world: StepWorld) -> None:
        from sparkyard.executors import EXECUTORS  # noqa: PLC0415 - brings httpx2 and more

        for action in verdict.actions:
            if self._around.stop.is_set():
                raise Interrupted("interrupted", node=step.node)
            walk.started |= begun(step.node, action)
            EXECUTORS[type(action)](action, step.node, world)
            with self._results:
                if not isinstance(action, READS):
                    walk.generation += 1
                    self._known.clear()

    def _fresh(self, walk: Walk, step: Step) -> Answers:
        """The node's answers, asked again if anything has been changed since."""
        if not step.questions or walk.stamps[step.node] == walk.generation:
            return walk.seen(step)
        return self._ask(step)

    def _undo(self, walk: Walk) -> None:
        """After a failure: stop what this plan started, on every node at once."""
        if not walk.plan.on_failure or not {"failed", "skipped-lost"} & set(walk.outcomes.values()):
            return
        self._around.begin_undo()
        with ThreadPoolExecutor(max(len(walk.plan.on_failure), 1)) as pool:
            for node, actions in walk.plan.on_failure.items():
                pool.submit(self._undo_node, walk, node, actions)

    def _undo_node(self, walk: Walk, node: str, actions: Iterable[Action]) -> None:
        from sparkyard.executors import EXECUTORS  # noqa: PLC0415

        mine = [a for a in actions if not isinstance(a, StopContainer) or (node, a.container) in walk.started]
        for action in mine:
            step = Step("service", "undo", node, "stop what this run started", lambda _answers: Verdict("ok"))
            try:
                EXECUTORS[type(action)](action, node, StepWorld(self._around, step, self._emit, {}))
                self._emit(Event("finding", f"stopped again: {action.shown()}", node, data={"kind": "undo"}))
            except SparkyardError as error:
                self._emit(
                    Event("finding", str(error), node, data={"kind": "undo-failed", **error_data(error)})
                )

    # telling

    def _data(self, step: Step, verdict: Verdict) -> dict[str, object]:
        data: dict[str, object] = {"title": step.title, "reason": verdict.reason, **verdict.data}
        data["actions"] = [action.shown() for action in verdict.actions]
        if verdict.diff and self._mode.diff:
            data["diff"] = [list(parts) for parts in verdict.diff]
        if verdict.details:
            data["details"] = list(verdict.details)
        if verdict.destroys:
            data["destroys"] = verdict.destroys
        return data

    def _done(self, walk: Walk, step: Step, verdict: Verdict, acted: list[Action], seconds: float) -> None:
        if all(changes_nothing(action) for action in acted):
            self._ok(walk, step, verdict, seconds)
            return
        walk.outcomes[step.id] = "changed"
        data = self._data(step, verdict) | walk.results.get(step.id, {})
        data |= {"seconds": round(seconds, 3), "actions": [a.shown() for a in acted]}
        self._emit(Event("step-changed", verdict.reason, step.node, step.id, data))

    def _ok(self, walk: Walk, step: Step, verdict: Verdict, seconds: float = 0.0) -> None:
        walk.outcomes[step.id] = "ok"
        data = self._data(step, verdict) | ({"seconds": round(seconds, 3)} if seconds else {})
        kind: EventType = "step-skipped" if verdict.state == "skipped" else "step-ok"
        self._emit(Event(kind, verdict.reason, step.node, step.id, data))

    def _skip(
        self, walk: Walk, step: Step, reason: str, verdict: Verdict | None = None, lost: bool = False
    ) -> None:
        walk.outcomes[step.id] = "skipped-lost" if lost else "skipped"
        data = self._data(step, verdict) if verdict else {"title": step.title}
        self._emit(Event("step-skipped", reason, step.node, step.id, data | {"reason": reason}))

    def _fail(self, walk: Walk, step: Step, error: SparkyardError) -> None:
        walk.outcomes[step.id] = "failed"
        walk.statuses.append(error.status)
        kind: EventType = "node-unreachable" if isinstance(error, Unreachable) else "step-failed"
        self._emit(
            Event(
                kind,
                error.message,
                step.node,
                step.id,
                {"title": step.title, **walk.results.get(step.id, {}), **error_data(error)},
            )
        )
