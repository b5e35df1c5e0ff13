"""Steps that run the jobs of a lane: each node made ready, then all ranks run to their end and sealed. Pure.

A job is one thing on several nodes: whether it must run is judged from the answers of all of them, and only the step on its first
rank's node runs it. What a killed run left is told by two records on each node (``rendered_job.RenderedJob.seal`` and ``begun``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from sparkyard.actions import Action, Run, StopContainer, WriteFile
from sparkyard.actions_job import RemoveFiles
from sparkyard.command import Command, fill
from sparkyard.docker_words import MARK
from sparkyard.facts import CONTAINERS, containers, folder, folder_question
from sparkyard.job_facts import JobFact, begun_text, job_fact, job_question
from sparkyard.model import Lane
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import SIDECAR, RenderedJob, RenderedOutput
from sparkyard.steps.files import not_discovered
from sparkyard.steps.job_action import run_action
from sparkyard.steps.job_gates import refused, room_questions
from sparkyard.steps.job_standing import known, ours, path, standing, unsealed
from sparkyard.system import SYSTEM

NOUN = "job"
UNLOCKED = re.compile(r"<unlocked: ([^<>]*)>")
"""The mark of a value that the lock does not answer yet."""


def job_steps(
    lane: Lane,
    rendered: RenderedLane,
    jobs: Sequence[RenderedJob],
    needs: Sequence[str] = (),
    beside: Collection[str] = (),
) -> tuple[Step, ...]:
    """The steps of some jobs, one job after the other. ``beside`` are services of the lane that may run meanwhile."""
    found: list[Step] = []
    before = tuple(needs)
    for job in jobs:
        gates = [_gates_step(lane, rendered, job, node, before, beside) for node in job.nodes]
        before = (*before, *(step.id for step in gates))
        ready = [_ready_step(lane, job, node, before) for node in job.nodes]
        before = (*before, *(step.id for step in ready))
        run = _run_step(lane, rendered, job, before)
        found += [*gates, *ready, run]
        before = (*before, run.id)
    return tuple(found)


def build_jobs(rendered: RenderedLane) -> tuple[RenderedJob, ...]:
    """The jobs of ``build``."""
    return tuple(job for job in rendered.jobs if job.at == "build")


def sealed_steps(jobs: Sequence[RenderedJob]) -> tuple[Step, ...]:
    """A step for each job and node that demands its seal, for what comes after it.

    It has the name of the step that makes the node ready: under ``--check``, what that one would do earlier in the line is waited for.
    """
    return tuple(_sealed_step(job, node) for job in jobs for node in job.nodes)


def _sealed_step(job: RenderedJob, node: str) -> Step:
    def judge(answers: Answers) -> Verdict:
        why = unsealed(job, answers)
        return (
            Verdict("change", f"job {job.name} {why}") if why else Verdict("ok", f"job {job.name} is sealed")
        )

    asked = (job_question(job, node),)
    return Step(NOUN, f"{job.name}-ready", node, f"job {job.name}: sealed", judge, asked)


# --- what is asked ----------------------------------------------------------------------------------------------------


def questions(job: RenderedJob, node: str) -> tuple[Question, ...]:
    """What every step of the job asks of a node, its own or another one."""
    return (SYSTEM, CONTAINERS, job_question(job, node))


def _others(job: RenderedJob, node: str) -> dict[str, tuple[Question, ...]]:
    return {other: questions(job, other) for other in job.nodes if other != node}


def _told(answers: Answers) -> dict[str, Answers]:
    """The answers of every node, by its name."""
    return {answers.node: answers, **answers.others}


def _folders(job: RenderedJob, node: str) -> tuple[str, ...]:
    """Folders that must be there: of mounts that say so, and of outputs."""
    parents = (output.path.rpartition("/")[0] for output in job.outputs_of(node))
    return tuple(dict.fromkeys((*job.container_of(node).folders, *parents)))


# --- whether it may begin ---------------------------------------------------------------------------------------------


def _gates_step(
    lane: Lane,
    rendered: RenderedLane,
    job: RenderedJob,
    node: str,
    needs: Sequence[str],
    beside: Collection[str],
) -> Step:
    """Asked on every node before anything is removed on any of them."""

    def judge(answers: Answers) -> Verdict:
        stands = standing(job, lane, _told(answers))
        if stands.state != "anew":
            return Verdict("skipped" if stands.state == "cut" else "ok", stands.reason)
        fact = job_fact(answers, job_question(job, node))
        blocked = (
            _not_whole(lane, rendered, job, answers)
            or _foreign(job, lane, answers)
            or _no_file(job, fact, answers)
            or refused(job, lane, answers, fact, beside)
        )
        return blocked or Verdict("ok", f"what job {job.name} needs is free")

    asked = (*questions(job, node), *room_questions(job, node))
    title = f"job {job.name}: may begin"
    return Step(NOUN, f"{job.name}-gates", node, title, judge, asked, tuple(needs), also=_others(job, node))


# --- a node made ready ------------------------------------------------------------------------------------------------


def _ready_step(lane: Lane, job: RenderedJob, node: str, needs: Sequence[str]) -> Step:
    folders = tuple(folder_question(each) for each in _folders(job, node))

    def judge(answers: Answers) -> Verdict:
        stands = standing(job, lane, _told(answers))
        if stands.state == "cut":
            return Verdict("skipped", stands.reason)
        if stands.state == "going":
            return Verdict("ok", stands.reason)
        if stands.state == "sealed":
            return _tidied(job, lane, answers)
        fact = job_fact(answers, job_question(job, node))
        return _prepared(job, lane, answers, fact, stands.reason, folders)

    asked = (*questions(job, node), *folders)
    title = f"job {job.name}: make ready"
    return Step(NOUN, f"{job.name}-ready", node, title, judge, asked, tuple(needs), also=_others(job, node))


def _tidied(job: RenderedJob, lane: Lane, answers: Answers) -> Verdict:
    """What a run left that was killed between its seals and its end is removed."""
    left = ours(job, lane, answers)
    begun = job_fact(answers, job_question(job, answers.node)).begun is not None
    stops = tuple(StopContainer(fact.name, job.grace) for fact in left)
    forget = (RemoveFiles((fill(job.begun(answers.node), answers.discovered),)),) if begun else ()
    if stops or forget:
        return Verdict("change", f"job {job.name} is sealed; what its run left is removed", (*stops, *forget))
    count = len(job.outputs_of(answers.node))
    made = f", {count} output{'' if count == 1 else 's'} as sealed" if count else ""
    return Verdict("ok", f"job {job.name} is sealed{made}", data={"hash": job.hash})


def _not_whole(lane: Lane, rendered: RenderedLane, job: RenderedJob, answers: Answers) -> Verdict | None:
    """Blocked while a pin or a discovered value is not known."""
    if rendered.unlocked:
        return Verdict(
            "blocked",
            f"not locked yet: {', '.join(rendered.unlocked)}",
            next_step=f"invoke lock --lane={lane.name}",
        )
    words = Command(job.container_of(answers.node).words).filled(answers.discovered).words
    marks = sorted({mark for word in words for mark in UNLOCKED.findall(word)})
    if marks:
        why = f"{', '.join(marks)} of job {job.name} is not locked yet"
        return Verdict(
            "blocked", why, next_step=f"invoke lock --lane={lane.name}, then invoke build --lane={lane.name}"
        )
    unknown = sorted({name for word in words for name in MARK.findall(word)})
    return not_discovered(unknown, answers.node) if unknown else None


def _foreign(job: RenderedJob, lane: Lane, answers: Answers) -> Verdict | None:
    """Blocked when a container has our name and is not ours; it is never touched."""
    name = job.container_of(answers.node).name
    mine = {fact.id for fact in ours(job, lane, answers)}
    if not any(fact.name == name and fact.id not in mine for fact in containers(answers)):
        return None
    return Verdict(
        "blocked",
        f"a container named {name} has not the labels of job {job.name}: it is not ours, and was left alone",
        next_step=f"on {answers.node}: docker rename {name} {name}-other, or remove it",
    )


def _no_file(job: RenderedJob, fact: JobFact, answers: Answers) -> Verdict | None:
    """Blocked when something else than a file lies where an output belongs."""
    for output in job.outputs_of(answers.node):
        if fact.made[output.path].kind == "other":
            there = path(output, answers)
            return Verdict(
                "blocked",
                f"{there} is no regular file, and job {job.name} makes one there",
                next_step=f"look at it and remove it: {Command(('rm', '-r', '--', there)).line()}",
            )
    return None


def _prepared(
    job: RenderedJob,
    lane: Lane,
    answers: Answers,
    fact: JobFact,
    reason: str,
    folders: tuple[Question, ...],
) -> Verdict:
    """Ok when nothing is in the way and the job is on record as begun; else what makes it so, records before files.

    A record that says it already stays as it is: its time tells what was written since the job was begun first.
    """
    missing = [each.arguments[0] for each in folders if folder(answers, each).kind == "missing"]
    there = [output for output in job.outputs_of(answers.node) if fact.made[output.path].kind != "missing"]
    seal, begun = (
        fill(each, answers.discovered) for each in (job.seal(answers.node), job.begun(answers.node))
    )
    text = begun_text(job, answers.node)
    left = ours(job, lane, answers)
    if not (left or there or missing or fact.seal is not None) and fact.begun == json.loads(text):
        return Verdict("ok", f"job {job.name} is on record as begun; nothing is in its way")
    actions: tuple[Action, ...] = (
        *(StopContainer(each.name, job.grace) for each in left),
        RemoveFiles((seal,)),
        *(_make_folder(fill(each, answers.discovered)) for each in missing),
        *(() if fact.begun == json.loads(text) else (WriteFile(begun, text.encode()),)),
        *(RemoveFiles((where, where + SIDECAR)) for where in (path(output, answers) for output in there)),
    )
    destroyed = filter(None, (_destroyed(job, fact, output, answers, reason) for output in there))
    return Verdict("change", reason, actions, destroys="; ".join(destroyed))


def _destroyed(job: RenderedJob, fact: JobFact, output: RenderedOutput, answers: Answers, reason: str) -> str:
    """What a person is asked about a file that would be removed; nothing for what a begun run left unfinished."""
    seen = fact.made[output.path]
    whose = known(fact, output, seen, answers)
    if whose == "unfinished":
        return ""
    what = f"{path(output, answers)} on {answers.node} ({seen.size} bytes)"
    if whose == "sealed":
        return f"{what} is a sealed output and would be made again: {reason}"
    return f"{what} is not on record as job {job.name} left it, and would be removed"


def _make_folder(where: str) -> Run:
    return Run(f"make {where}", Command.of("mkdir", "-p", "--", where, timeout=30))


# --- the run ----------------------------------------------------------------------------------------------------------


def _run_step(lane: Lane, rendered: RenderedLane, job: RenderedJob, needs: Sequence[str]) -> Step:
    node = job.nodes[0]

    def judge(answers: Answers) -> Verdict:
        told = _told(answers)
        stands = standing(job, lane, told)
        if stands.state == "cut":
            return Verdict("skipped", stands.reason)
        if stands.state == "sealed":
            return Verdict("ok", stands.reason, data={"hash": job.hash})
        action = run_action(lane, rendered, job, told, attach=stands.state == "going")
        return Verdict("change", stands.reason, (action,))

    title = f"job {job.name}: run"
    return Step(
        NOUN, job.name, node, title, judge, questions(job, node), tuple(needs), also=_others(job, node)
    )
