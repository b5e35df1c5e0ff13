"""The action that runs a job: every rank's words with what its node said in them, and what the seals will say. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkyard.actions_job import JobRank, RunJob
from sparkyard.command import Command, fill, mask
from sparkyard.job_facts import VERSION
from sparkyard.job_written import expected, places
from sparkyard.model import Lane
from sparkyard.plan import Answers
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedJob

RUN_LIMIT = 300.0
"""Seconds that ``docker run --detach`` may take before the program itself starts."""


def run_action(
    lane: Lane, rendered: RenderedLane, job: RenderedJob, told: Mapping[str, Answers], *, attach: bool
) -> RunJob:
    """The action that runs a job on every node, or with ``attach`` waits for the ranks that run already."""

    def filled(text: str, node: str) -> str:
        return fill(text, told[node].discovered)

    return RunJob(
        job=job.name,
        ranks=tuple(_measured(job, _rank(rendered, job, told[node]), told[node]) for node in job.nodes),
        order=job.order,
        attach=attach,
        lasting=job.at == "build",
        timeout=job.timeout,
        log_silence=job.log_silence,
        grace=job.grace,
        says=job.says,
        makes=tuple(replace(output, path=filled(output.path, output.node)) for output in job.makes),
        seals={node: filled(job.seal(node), node) for node in job.nodes},
        begun={node: filled(job.begun(node), node) for node in job.nodes},
        record=_record(lane, rendered, job),
        guard=lane.recipe.limits.guard,
    )


def _rank(rendered: RenderedLane, job: RenderedJob, answers: Answers) -> JobRank:
    wanted = job.container_of(answers.node)
    command = Command(wanted.words, secrets=rendered.secrets, timeout=RUN_LIMIT).filled(answers.discovered)
    gate = rendered.gates.get(wanted.name)
    if gate is None:
        return JobRank(answers.node, wanted.rank, wanted.name, command)
    return JobRank(answers.node, wanted.rank, wanted.name, command, gate.log, gate.port, gate.timeout)


def _measured(job: RenderedJob, rank: JobRank, answers: Answers) -> JobRank:
    """The rank with where it is measured, and how much it will be."""
    where = tuple(fill(place, answers.discovered) for place in places(job, answers.node))
    return replace(rank, places=where, expected=expected(job, answers.node))


def _record(lane: Lane, rendered: RenderedLane, job: RenderedJob) -> dict[str, object]:
    """What every seal says; argv of every rank as rendered, with its marks, secrets masked."""
    ranks = [
        {
            "rank": each.rank,
            "node": each.node,
            "argv": [mask(word, rendered.secrets) for word in each.words],
        }
        for each in job.containers
    ]
    return {
        "version": VERSION,
        "lane": lane.name,
        "job": job.name,
        "about": job.about,
        "hash": job.hash,
        "made_of": dict(job.made_of),
        "bound_to": [mask(text, rendered.secrets) for text in job.bound_to],
        "ranks": ranks,
    }
