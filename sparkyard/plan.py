"""Steps and plans: questions to a node, what their answers mean, and the actions that would make it right. All data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sparkyard.actions import Action
from sparkyard.errors import CouldNotCheck

State = Literal["ok", "change", "blocked", "unknown", "skipped"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question to the facts script: the name of an ``ask_*`` function in ``scripts/facts.sh`` and its arguments.

    Paths may start with ``<discovered: home>``; the script puts the node's home there.
    """

    ask: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the node said: exit status and both outputs of the ``ask_*`` function."""

    status: int
    out: str
    err: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of one node, from one round trip, plus what was discovered on it.

    ``discovered`` holds ``home`` always, and whatever preflight finds (``gid``, ``hcas``, free ports); what other nodes told
    stands there with their names (``home@spark-2``). ``others`` holds the answers of other nodes that a step asks (``Step.also``).
    """

    node: str
    given: Mapping[Question, Answer] = field(default_factory=dict)
    discovered: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Answers] = field(default_factory=dict)

    def of(self, question: Question) -> Answer:
        """The answer. Raises CouldNotCheck when there is none or it was cut short."""
        try:
            return self.given[question]
        except KeyError:
            asked = " ".join((question.ask, *question.arguments))[:200]
            raise CouldNotCheck(f"no answer to: {asked}", node=self.node) from None


def with_known(known: Answers | None, new: Answers) -> Answers:
    """What was known of a node and what it has said now; the newer word holds."""
    if known is None:
        return new
    return Answers(new.node, {**known.given, **new.given}, {**known.discovered, **new.discovered})


def of_others(node: str, discovered: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What all nodes but one have told, as that one may name it: ``home@spark-2``."""
    return {
        f"{name}@{other}": value
        for other, told in discovered.items()
        if other != node
        for name, value in told.items()
        if "@" not in name
    }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the answers mean for a step.

    Attributes:
        state: ``ok`` as wanted; ``change`` the actions would make it so; ``blocked`` it cannot be made so from here;
            ``unknown`` could not be checked (counts as failed); ``skipped`` does not apply.
        reason: one line for people: what differs, what is missing, what was proven.
        actions: in order.
        diff: (path, before, after) of small text files, secrets already masked.
        destroys: what the actions would destroy or interrupt, in words that a person is asked to confirm.
        next_step: for ``blocked`` and ``unknown``.
        data: machine-readable details for ``--json``.
    """

    state: State
    reason: str = ""
    actions: tuple[Action, ...] = ()
    diff: tuple[tuple[str, str, str], ...] = ()
    destroys: str = ""
    next_step: str = ""
    details: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


Judge = Callable[[Answers], Verdict]


@dataclass(frozen=True, slots=True)
class Step:
    """Asks a node; if the answer is not what is wanted, acts; asks again.

    Attributes:
        noun: preflight, checkpoint, image, file, patch, job, service or verify; what ``--only`` selects.
        name: which one of them (``gemma``).
        node: where it is asked and where it acts.
        title: what people read, without the node's name: ``checkpoint gemma: download``.
        questions: read-only; all questions of a node go in one round trip.
        judge: pure; may raise CouldNotCheck.
        needs: ids of steps that must be right before.
        recheck: ask again after acting (False for steps whose action is itself the proof, such as verify requests).
        also: questions to other nodes, whose answers the judge finds in ``answers.others`` (not there when that node is not
            part of the plan): for what must be the same on both.
        together: a name shared by steps that are right only together (the ranks of a lane). When one of them would change,
            each that has ``again`` is judged by what ``again`` makes of the answers at that moment.
    """

    noun: str
    name: str
    node: str
    title: str
    judge: Judge
    questions: tuple[Question, ...] = ()
    needs: tuple[str, ...] = ()
    recheck: bool = True
    together: str = ""
    again: Callable[[Answers], Judge] | None = None
    also: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)

    def asks(self, node: str) -> tuple[Question, ...]:
        """What it asks a node, its own or another one."""
        return (*(self.questions if node == self.node else ()), *self.also.get(node, ()))

    @property
    def id(self) -> str:
        return f"{self.noun}:{self.name}@{self.node}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of one verb, in an order in which every step follows its needs.

    ``on_failure`` are actions, by node, that undo what the plan started when a later step fails (stop the ranks it started).
    ``partial`` plans (stop) go on with the nodes that answer; all others demand every node before anything acts.
    """

    verb: str
    lane: str
    steps: tuple[Step, ...]
    on_failure: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    partial: bool = False

    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.node for step in self.steps))

    def questions(self, node: str) -> tuple[Question, ...]:
        """Every question for a node, each once."""
        return tuple(dict.fromkeys(q for step in self.steps for q in step.asks(node)))

    def chosen(self, nodes: Sequence[str], nouns: Sequence[str]) -> Plan:
        """The plan cut to some nodes and nouns (``--limit``, ``--only``); needs, and questions to nodes, that are cut away are dropped."""
        kept = [s for s in self.steps if s.node in nodes and (not nouns or s.noun in nouns)]
        ids, left = {step.id for step in kept}, {step.node for step in kept}
        steps = tuple(
            replace(
                s,
                needs=tuple(n for n in s.needs if n in ids),
                also={node: asked for node, asked in s.also.items() if node in left},
            )
            for s in kept
        )
        return replace(self, steps=steps)


def joined(plan: Plan, answers: Mapping[str, Answers], verdicts: Mapping[str, Verdict]) -> Plan:
    """The plan in which steps that are right only together are judged again where one of them would change."""
    changing = {
        s.together for s in plan.steps if s.together and s.id in verdicts and verdicts[s.id].state == "change"
    }
    steps = tuple(
        replace(s, judge=s.again(answers[s.node]))
        if s.again and s.together in changing and s.node in answers
        else s
        for s in plan.steps
    )
    return replace(plan, steps=steps)


def required(step: Step, verb: str) -> Step:
    """The step as a requirement: what it would change is instead a reason to type ``invoke VERB`` first."""

    def judge(answers: Answers) -> Verdict:
        verdict = step.judge(answers)
        if verdict.state != "change":
            return verdict
        return replace(verdict, state="blocked", actions=(), destroys="", diff=(), next_step=f"invoke {verb}")

    return replace(step, judge=judge)
