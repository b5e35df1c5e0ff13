"""Steps that remove what the jobs of a lane left on its nodes: files that their records know, and no others. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparkyard.actions import Run
from sparkyard.actions_job import RemoveFiles
from sparkyard.command import Command, fill
from sparkyard.facts import CONTAINERS, containers
from sparkyard.job_facts import job_fact, job_question
from sparkyard.plan import Answers, Step, Verdict
from sparkyard.rendered_job import SIDECAR, RenderedJob
from sparkyard.reporting.amounts import size
from sparkyard.steps.job_standing import known, path


def purge_steps(jobs: Sequence[RenderedJob], node: str) -> tuple[Step, ...]:
    """A step for each job that leaves files on the node, before its records go with the lane's own folder."""
    return tuple(_step(job, node) for job in jobs if node in job.nodes and job.outputs_of(node))


def _step(job: RenderedJob, node: str) -> Step:
    asked = job_question(job, node)

    def judge(answers: Answers) -> Verdict:
        fact = job_fact(answers, asked)
        there = [output for output in job.outputs_of(node) if fact.made[output.path].kind != "missing"]
        ours = [o for o in there if known(fact, o, fact.made[o.path], answers) != "unknown"]
        left = tuple(_unknown(job, path(o, answers), answers) for o in there if o not in ours)
        if any(each.job == job.name for each in containers(answers)):
            return Verdict("blocked", f"job {job.name} still runs here", next_step="invoke stop")
        if not ours:
            return Verdict("ok", f"nothing that job {job.name} made is here", details=left)
        held = size(sum(fact.made[output.path].size for output in ours))
        paths = tuple(path(output, answers) for output in ours)
        words = f"{', '.join(paths)} ({held}) on {node}"
        above = tuple(dict.fromkeys(each.rpartition("/")[0] for each in paths))
        tidy = Command(("rmdir", "--ignore-fail-on-non-empty", "--", *above), timeout=30)
        remove = RemoveFiles((*paths, *(each + SIDECAR for each in paths)))
        actions = (remove, Run(f"remove {', '.join(above)} if empty", tidy))
        return Verdict("change", words, actions, destroys=words, details=left)

    title = f"job {job.name}: remove what it made"
    return Step("job", f"purge-{job.name}", node, title, judge, (CONTAINERS, asked))


def _unknown(job: RenderedJob, there: str, answers: Answers) -> str:
    """What becomes of a file that is not on record: below the lane's own folder it goes with that, which is asked for by itself."""
    own = fill(job.folders[answers.node], answers.discovered).rpartition("/")[0]
    if there.startswith(f"{own}/"):
        return f"{there} is not on record, and would go with {own}: move it away to keep it"
    return f"{there} is not on record and stays"
