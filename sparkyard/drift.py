"""What runs and lies on the nodes, against what would be made today: the logic of ``invoke status``. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sparkyard.command import fill
from sparkyard.errors import CouldNotCheck
from sparkyard.facts import CONTAINERS, ContainerFact, containers, file, image, image_question
from sparkyard.job_facts import job_question
from sparkyard.model import Container
from sparkyard.plan import Answers, Question
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedJob
from sparkyard.steps.files import question
from sparkyard.steps.image_found import difference
from sparkyard.steps.job_standing import unsealed
from sparkyard.steps.patch import question as patch_question
from sparkyard.steps.service import moved
from sparkyard.system import SYSTEM, system


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank's container.

    Attributes:
        state: Docker's word; ``absent`` when there is none, ``unknown`` when the node could not be asked.
        since: when it came into that state, as Docker gives it (RFC 3339); empty when it never did.
        health: Docker's own health word, empty without a health check.
        drift: what differs from what would be made today, a line each.
        trouble: what is wrong with it as it runs, a line each.
    """

    node: str
    rank: int
    service: str
    container: str
    state: str
    since: str = ""
    image: str = ""
    health: str = ""
    drift: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def as_wanted(self) -> bool:
        return self.state == "running" and not self.drift and not self.trouble


def status_questions(rendered: RenderedLane, node: str) -> tuple[Question, ...]:
    """What to ask a node for its status."""
    files = (question(each) for each in rendered.files_of(node))
    texts = (patch_question(each) for each in rendered.patches if each.node == node)
    jobs = (job_question(each, node) for each in _jobs(rendered, node))
    return (SYSTEM, CONTAINERS, image_question(rendered.image.reference), *files, *texts, *jobs)


def _jobs(rendered: RenderedLane, node: str) -> tuple[RenderedJob, ...]:
    """The jobs of a build that left something on a node for its ranks to read."""
    return tuple(each for each in rendered.jobs if each.at == "build" and each.outputs_of(node))


def rank_states(rendered: RenderedLane, answers: Mapping[str, Answers]) -> tuple[RankState, ...]:
    """Every rank's state, in rank order. Nodes that are not in ``answers`` did not answer."""
    return tuple(_state(rendered, wanted, answers.get(wanted.node)) for wanted in rendered.containers)


def _state(rendered: RenderedLane, wanted: Container, answers: Answers | None) -> RankState:
    place = (wanted.node, wanted.rank, wanted.service, wanted.name)
    if answers is None:
        return RankState(*place, "unknown", trouble=("the node did not answer",))
    try:
        found = {fact.name: fact for fact in containers(answers)}
    except CouldNotCheck as error:
        return RankState(*place, "unknown", trouble=(f"could not check: {error.message}",))
    fact = found.get(wanted.name)
    if fact is None:
        return RankState(*place, "absent", trouble=("no container",))
    return RankState(
        *place,
        fact.state,
        since=_time(fact.started if fact.running else fact.finished),
        image=fact.image,
        health=fact.health,
        drift=(
            *_container_drift(fact, wanted, answers),
            *_files_drift(rendered, answers),
            *_patches_drift(rendered, answers),
            *_jobs_drift(rendered, answers),
            *_image_drift(rendered, fact, answers),
        ),
        trouble=_trouble(fact, rendered.lane),
    )


def _time(text: str) -> str:
    """A time as Docker gives it; empty for its year 1, which is no time."""
    return "" if text.startswith("0001-") else text


def _trouble(fact: ContainerFact, lane: str) -> tuple[str, ...]:
    found: list[str] = []
    if fact.lane != lane:
        found.append("it has our name and not our label: not sparkyard's")
    if fact.state in ("exited", "dead"):
        found.append(ended(fact))
    elif fact.state != "running":
        stands = "was created and never started" if fact.state == "created" else f"is {fact.state}"
        found.append(f"it {stands}" + (f": {fact.error}" if fact.error else ""))
    if fact.restarts:
        found.append(f"crash loop: restarted {fact.restarts} times; a rank cannot rejoin alone")
    if fact.health == "unhealthy":
        found.append("its own health check fails")
    return tuple(found)


def ended(fact: ContainerFact) -> str:
    """How a container ended, in words. Status 0 is no better: a service does not end by itself."""
    if fact.out_of_memory:
        return "ended: the kernel killed it, out of memory"
    if fact.exit_code == 0:
        return "ended by itself (exit code 0)"
    if fact.exit_code == 137:
        return "ended: killed (exit code 137), not by the kernel for memory: a person, or a user-space memory guard"
    return f"ended with exit code {fact.exit_code}" + (f": {fact.error}" if fact.error else "")


def _container_drift(fact: ContainerFact, wanted: Container, answers: Answers) -> tuple[str, ...]:
    if fact.labels.get("sparkyard.hash") == wanted.hash:
        return moved(fact, answers)
    return ("it was started with other settings than today's", *moved(fact, answers))


def _files_drift(rendered: RenderedLane, answers: Answers) -> tuple[str, ...]:
    found: list[str] = []
    for each in rendered.files_of(answers.node):
        path = fill(each.path, answers.discovered)
        content = fill(each.content, answers.discovered).encode()
        try:
            fact = file(answers, question(each))
        except CouldNotCheck as error:
            found.append(f"could not check {path}: {error.message}")
            continue
        if fact.kind != "regular":
            found.append(f"file {path} is {fact.kind}")
        elif fact.sha256 != hashlib.sha256(content).hexdigest():
            found.append(f"file {path} has other content")
        elif fact.mode & 0o7777 != each.mode:
            found.append(f"file {path} has mode {fact.mode:04o}, not {each.mode:04o}")
    return tuple(found)


def _jobs_drift(rendered: RenderedLane, answers: Answers) -> tuple[str, ...]:
    """What jobs left on a node and is not as it was sealed, or would be made otherwise today."""
    found: list[str] = []
    for each in _jobs(rendered, answers.node):
        try:
            why = unsealed(each, answers)
        except CouldNotCheck as error:
            why = f"could not be checked: {error.message}"
        found += [f"job {each.name}: {why}"] if why else []
    return tuple(found)


def _patches_drift(rendered: RenderedLane, answers: Answers) -> tuple[str, ...]:
    """Edited texts of a node that are not what was locked."""
    found: list[str] = []
    for each in (patch for patch in rendered.patches if patch.node == answers.node and patch.patched):
        path = fill(each.path, answers.discovered)
        try:
            fact = file(answers, patch_question(each))
        except CouldNotCheck as error:
            found.append(f"could not check {path}: {error.message}")
            continue
        if fact.kind != "regular":
            found.append(f"edited text {path} is {fact.kind}")
        elif fact.sha256 != each.patched:
            stands = "pristine" if fact.sha256 == each.pristine else "neither pristine nor patched"
            found.append(f"edited text {path} is {stands}")
    return tuple(found)


def _image_drift(rendered: RenderedLane, fact: ContainerFact, answers: Answers) -> tuple[str, ...]:
    wanted = rendered.image
    try:
        lies = image(answers, image_question(wanted.reference))
        reason = difference(wanted, lies, system(answers))
    except CouldNotCheck as error:
        return (f"could not check the image: {error.message}",)
    if reason:
        return (f"image {wanted.reference} {reason}",)
    if lies is not None and fact.image_id and lies.id != fact.image_id:
        return (f"it runs another image than the {wanted.reference} of today",)
    return ()
