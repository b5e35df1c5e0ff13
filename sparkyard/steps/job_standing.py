"""How a job stands, judged from what its nodes say: sealed, going on, or to be run anew, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sparkyard.command import fill
from sparkyard.facts import ContainerFact, containers
from sparkyard.job_changes import what_changed
from sparkyard.job_facts import JobFact, Made, job_fact, job_question, sealed_identities
from sparkyard.model import Lane
from sparkyard.plan import Answers
from sparkyard.rendered_job import RenderedJob, RenderedOutput


@dataclass(frozen=True, slots=True)
class Standing:
    """How a job stands on all its nodes together.

    ``sealed``: done, and what it made is untouched. ``going``: the containers of this very job run, or ended with status 0, on every
    rank, and are to be waited for. ``anew``: it must run. ``cut``: a node is not part of the plan.
    """

    state: Literal["sealed", "going", "anew", "cut"]
    reason: str


def standing(job: RenderedJob, lane: Lane, told: Mapping[str, Answers]) -> Standing:
    """``told`` are the answers of the job's nodes. Raises CouldNotCheck for answers that cannot be used."""
    lost = [node for node in job.nodes if node not in told]
    if lost:
        return Standing(
            "cut", f"--limit leaves out {', '.join(lost)}, and job {job.name} needs all its ranks"
        )
    why = {node: unsealed(job, told[node]) for node in job.nodes}
    if not any(why.values()) and not _serves(lane, told):
        why = {node: _stale(job, told[node]) for node in job.nodes}
    if not any(why.values()):
        return Standing("sealed", f"job {job.name} is sealed")
    if all(_goes_on(job, lane, told[node], why[node]) for node in job.nodes):
        return Standing("going", f"job {job.name} was begun and never sealed: it is waited for")
    return Standing("anew", _reason(job, why))


def _serves(lane: Lane, told: Mapping[str, Answers]) -> bool:
    """Whether a service of the lane runs on one of the nodes."""
    found = (fact for answers in told.values() for fact in containers(answers))
    return any(fact.lane == lane.name and not fact.job and fact.state == "running" for fact in found)


def _stale(job: RenderedJob, answers: Answers) -> str:
    """Why a seal that holds is of an earlier start; empty for one that is fresh, and for jobs of which it does not count."""
    age = job_fact(answers, job_question(job, answers.node)).age
    if job.fresh is None or abs(age) <= job.fresh:
        return ""
    return "was done for an earlier start, and no service of the lane runs"


def _reason(job: RenderedJob, why: Mapping[str, str]) -> str:
    """Why it must run, with the nodes unless it is the same on all of them."""
    if len(set(why.values())) == 1:
        return f"job {job.name} {next(iter(why.values()))}"
    return f"job {job.name}: " + "; ".join(f"on {node} {text}" for node, text in why.items() if text)


def unsealed(job: RenderedJob, answers: Answers) -> str:
    """Why a node's seal does not hold; empty when it does."""
    fact = job_fact(answers, job_question(job, answers.node))
    if fact.seal is None:
        if fact.begun is not None:
            return "was begun and not finished"
        return "has a seal that cannot be read (was it edited?)" if fact.damaged else "was not done yet"
    if fact.seal.get("hash") != job.hash:
        parts = ", ".join(what_changed(job, fact.seal))
        return f"was done otherwise: what it is made of has changed since{f' ({parts})' if parts else ''}"
    identities = sealed_identities(fact.seal)
    faults = (
        changed(output, fact.made[output.path], identities.get(path(output, answers)))
        for output in job.outputs_of(answers.node)
    )
    return next(
        (
            f"{path(output, answers)} {fault}"
            for output, fault in zip(job.outputs_of(answers.node), faults, strict=True)
            if fault
        ),
        "",
    )


def changed(wanted: RenderedOutput, seen: Made, sealed: tuple[int, int, int, int] | None) -> str:
    """How an output is not what was sealed; empty when it is."""
    if seen.kind == "missing":
        return "is gone"
    if seen.kind != "regular":
        return "is no regular file"
    if misfit := wanted.misfit(seen.size):
        return misfit
    if sealed is None:
        return "was not an output when it was sealed"
    return "" if _same(wanted, seen, sealed) else "was changed since it was sealed"


def _same(wanted: RenderedOutput, seen: Made, sealed: tuple[int, int, int, int] | None) -> bool:
    """Whether a file is the sealed one: by all that changes with it, the last of which (ctime) changes with links as well."""
    if sealed is None:
        return False
    return seen.identity[:3] == sealed[:3] if wanted.linked else seen.identity == sealed


def path(output: RenderedOutput, answers: Answers) -> str:
    """Where an output lies on the node."""
    return fill(output.path, answers.discovered)


def ours(job: RenderedJob, lane: Lane, answers: Answers) -> list[ContainerFact]:
    """The containers of the job on a node, whatever they were made of."""
    return [fact for fact in containers(answers) if fact.lane == lane.name and fact.job == job.name]


def _goes_on(job: RenderedJob, lane: Lane, answers: Answers, why: str) -> bool:
    """Whether the rank of a node runs, or ended well, for the run whose seal is not whole yet."""
    fact = job_fact(answers, job_question(job, answers.node))
    found = [each for each in ours(job, lane, answers) if each.name == job.container_of(answers.node).name]
    fit = [each for each in found if each.labels.get("sparkyard.hash") == job.hash and _goes(each)]
    if not fit or len(found) != 1:
        return False
    return not why or (fact.seal is None and begun_for(job, fact))


def _goes(fact: ContainerFact) -> bool:
    return (fact.state == "running" and not fact.restarts) or (fact.state == "exited" and fact.exit_code == 0)


def begun_for(job: RenderedJob, fact: JobFact) -> bool:
    """Whether the record that it was begun is of the job as it is now."""
    return fact.begun is not None and fact.begun.get("hash") == job.hash


def known(
    fact: JobFact, output: RenderedOutput, seen: Made, answers: Answers
) -> Literal["unfinished", "sealed", "unknown"]:
    """Whose file lies at the path of an output: one that a begun job of ours left, one that we sealed, or nobody knows."""
    if fact.begun is not None and output.path in fact.begun.get("outputs", ()):
        return "unfinished"
    sealed = sealed_identities(fact.seal) if fact.seal else {}
    return "sealed" if _same(output, seen, sealed.get(path(output, answers))) else "unknown"
