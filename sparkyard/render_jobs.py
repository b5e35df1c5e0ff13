"""The jobs of a lane rendered: their containers with one hash over all ranks, what they leave, and what they need. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard import docker_words
from sparkyard.conditions import jobs_of
from sparkyard.lock import Lock
from sparkyard.model import Container, Lane, RenderedFile
from sparkyard.pins import git_specs, known_commit
from sparkyard.recipe import JobSpec, OutputSpec
from sparkyard.render_rank import Rank, RankRendering
from sparkyard.rendered import RenderedImage, RenderedPatch
from sparkyard.rendered_job import (
    RenderedBringing,
    RenderedJob,
    RenderedOutput,
    RenderedRoom,
    RenderedSays,
)
from sparkyard.scopes import commit_of, lane_root

VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
UNLOCKED = "<unlocked"
"""How a value begins that the lock does not answer yet."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One rank of a job, its container not finished yet."""

    rank: Rank
    service: docker_words.Service


class JobRendering:
    """Renders the jobs of one lane; ``templates`` collects the faults."""

    def __init__(
        self,
        lane: Lane,
        lock: Lock,
        ranks: RankRendering,
        image: RenderedImage,
        patches: Sequence[RenderedPatch],
    ) -> None:
        self.lane, self.lock, self.image, self.patches = lane, lock, image, patches
        self.ranks, self.templates = ranks, ranks.templates

    def jobs(self, ranks: Sequence[Rank]) -> tuple[RenderedJob, ...]:
        """The jobs that belong to the lane with its settings, each after those that it needs."""
        specs = jobs_of(self.lane)
        made = (self.job(name, specs[name], ranks) for name in in_order(specs))
        return tuple(job for job in made if job.containers)  # a lane of one node has no workers

    def job(self, name: str, spec: JobSpec, ranks: Sequence[Rank]) -> RenderedJob:
        """A job on its ranks, with one hash for all of them."""
        key = f"jobs.{name}"
        parts = [
            _Part(rank, self.ranks.parts(key, name, spec, rank, self.image, job=True))
            for rank in ranks
            if rank.node in self.lane.choose(spec.nodes)
        ]
        bound = self.bound(key, spec, parts)
        patches = [self.patches_of(part) for part in parts]
        mark = docker_words.digest([*(self.wanted(part) for part in parts), list(bound)])
        containers = tuple(self.container(key, part, mark) for part in parts)
        return RenderedJob(
            name=name, about=spec.about, at=spec.at, containers=containers, hash=mark, bound_to=bound, variant=self.variant(key, spec, parts),
            order=_groups(spec.order, [part.rank.number for part in parts]),
            timeout=spec.timeout, grace=spec.grace, log_silence=spec.log_silence, fresh=spec.fresh, frees_memory=spec.frees_memory,
            needs=tuple(need for need in spec.needs if need in jobs_of(self.lane)),
            makes=tuple(self.outputs(key, spec, parts)),
            room=tuple(self.room(key, spec, parts)),
            says=self.says(spec, parts),
            brings=self.brings(key, spec, parts),
            memory=spec.memory, gpu=spec.gpu,
            files=tuple(file for part in parts for file in self.read(part)),
            patches=tuple(dict.fromkeys(patch.name for each in patches for patch in each)),
            folders={part.rank.node.name: f"{lane_root(self.lane, part.rank.node)}/jobs" for part in parts},
            made_of=self.made_of(patches),
        )  # fmt: skip

    # what it is made of

    def bound(self, key: str, spec: JobSpec, parts: Sequence[_Part]) -> tuple[str, ...]:
        """The texts of ``bound_to``, over all ranks; what is the same on all of them stands once."""
        found = [
            self.templates.text(f"{key}.bound_to.{n}", text, part.rank.scope)
            for part in parts
            for n, text in enumerate(spec.bound_to)
        ]
        return tuple(dict.fromkeys(found))

    def variant(self, key: str, spec: JobSpec, parts: Sequence[_Part]) -> str:
        """Which of several results that lie side by side: a word that is the same on all ranks."""
        found = sorted(
            {self.templates.text(f"{key}.variant", spec.variant, part.rank.scope) for part in parts}
        )
        if len(found) > 1:
            self.templates.fault(f"{key}.variant", f"must be the same on all ranks, found {', '.join(found)}")
        elif found and found[0] and not VARIANT.fullmatch(found[0]):
            self.templates.fault(
                f"{key}.variant", f"a word for the name of a file is expected, found {found[0]!r}"
            )
        return found[0] if found else ""

    def wanted(self, part: _Part) -> list[object]:
        hashes = {patch.path: patch.patched for patch in self.patches_of(part)}
        return [docker_words.wanted_state(part.service, tuple(part.rank.files.values())), hashes]

    def read(self, part: _Part) -> tuple[RenderedFile, ...]:
        return docker_words.read(part.service, tuple(part.rank.files.values()))

    def patches_of(self, part: _Part) -> tuple[RenderedPatch, ...]:
        """The edited texts that a rank mounts, or that lie below a mounted folder."""
        sources = [mount.source for mount in part.service.mounts]
        return tuple(
            patch
            for patch in self.patches
            if patch.node == part.rank.node.name and any(_within(patch.path, source) for source in sources)
        )

    def container(self, key: str, part: _Part, mark: str) -> Container:
        made = docker_words.finished(part.service, tuple(part.rank.files.values()), mark)
        self.ranks.visible(key, made.words, part.rank.scope)
        return made

    def made_of(self, patches: Sequence[Sequence[RenderedPatch]]) -> dict[str, Any]:
        """The pins of the lane as far as they are known, for seals and sidecars."""
        recipe, known = self.lane.recipe, self.lock.manifests
        git = {key: known_commit(key, recipe, self.lock.git) for key in git_specs(recipe)}
        checkpoints = {name: commit_of(spec, known.get(name)) for name, spec in self.lane.checkpoints.items()}
        texts = {patch.name: patch.patched for each in patches for patch in each}
        mark = self.image.mark or self.image.pulled
        return {"image": mark, "git": git, "checkpoints": checkpoints, "patches": texts}

    # what it leaves and needs

    def outputs(self, key: str, spec: JobSpec, parts: Sequence[_Part]) -> list[RenderedOutput]:
        """The files that it leaves, by rank. Two at one path of a node are a fault."""
        found = [
            self.output(f"{key}.makes.{n}", output, part)
            for n, output in enumerate(spec.makes)
            for part in self.on(parts, output.nodes)
        ]
        places = [(output.node, output.path) for output in found]
        for node, path in sorted({place for place in places if places.count(place) > 1}):
            self.templates.fault(f"{key}.makes", f"two of them are {path}", node)
        return found

    def output(self, key: str, output: OutputSpec, part: _Part) -> RenderedOutput:
        """One file on one rank; one that the job could not write is a fault."""
        node, path = part.rank.node.name, self.ranks.place(f"{key}.path", output.path, part.rank)
        writable = [mount.source for mount in part.service.mounts if not mount.read_only]
        if path and not any(_within(path, source) for source in writable):
            message = f"{path} is below no mount that the job may write to (read_only: false)"
            self.templates.fault(f"{key}.path", message, node)
        exact = self.size(f"{key}.bytes", output.bytes, part)
        least = self.size(f"{key}.at_least", output.at_least, part) or 0
        return RenderedOutput(node, path, exact, least, output.sidecar, output.linked)

    def room(self, key: str, spec: JobSpec, parts: Sequence[_Part]) -> list[RenderedRoom]:
        """Free bytes that it needs, by rank."""
        found: list[RenderedRoom] = []
        for n, room in enumerate(spec.room):
            for part in self.on(parts, room.nodes):
                path = self.ranks.place(f"{key}.room.{n}.path", room.path, part.rank)
                size = self.size(f"{key}.room.{n}.bytes", room.bytes, part)
                found.append(RenderedRoom(part.rank.node.name, path, size))
        return found

    def size(self, key: str, source: str | None, part: _Part) -> int | None:
        """A number of bytes; None where there is none, where the lock must tell it first, and after a fault."""
        text = "" if source is None else self.templates.demanded(key, source, part.rank.scope).strip()
        if not text or UNLOCKED in text:
            return None
        if text.isascii() and text.isdecimal():
            return int(text)
        self.templates.fault(key, f"{text!r} is not a whole number of bytes", part.rank.node.name)
        return None

    def says(self, spec: JobSpec, parts: Sequence[_Part]) -> tuple[RenderedSays, ...]:
        return tuple(
            RenderedSays(one.what, one.pattern, tuple(part.rank.number for part in self.on(parts, one.nodes)))
            for one in spec.says
        )

    def brings(self, key: str, spec: JobSpec, parts: Sequence[_Part]) -> tuple[RenderedBringing, ...]:
        """What the inventory does not say yet and the job brings forth, looked for on the head."""
        first = parts[:1]
        return tuple(
            RenderedBringing(
                one.setting,
                self.ranks.place(f"{key}.brings.{n}.folder", one.folder, part.rank),
                part.service.container,
                one.log,
            )
            for n, one in enumerate(spec.brings)
            for part in first
            if not self.lane.settings[one.setting].value
        )

    def on(self, parts: Sequence[_Part], who: str | None) -> list[_Part]:
        """The ranks of the job that are meant; all of them when nothing is said."""
        nodes = self.lane.choose(who or "all")
        return [part for part in parts if part.rank.node in nodes]


def in_order(specs: Mapping[str, JobSpec]) -> list[str]:
    """The names, each after those that it needs. A circle, which the loader refuses, comes last as it stands."""
    found: list[str] = []
    left = list(specs)
    while left:
        free = [name for name in left if not (set(specs[name].needs) & set(left))] or left
        found += free[:1]
        left.remove(free[0])
    return found


def stages(lane: Lane, jobs: Sequence[RenderedJob]) -> tuple[tuple[str, ...], ...]:
    """What a start brings up, stage by stage: services that start together, or one job.

    Without ``stages``: the jobs of a start, then all services at once.
    """
    recipe, starting = lane.recipe, [job.name for job in jobs if job.at == "start"]
    if not recipe.stages:
        return (*((name,) for name in starting), tuple(recipe.services))
    return tuple((name,) for name in recipe.stages if name in recipe.services or name in starting)


def _groups(order: str, ranks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    head, workers = tuple(r for r in ranks if r == 0), tuple(r for r in ranks if r > 0)
    groups = {"together": (tuple(ranks),), "head-first": (head, workers), "workers-first": (workers, head)}
    return tuple(group for group in groups[order] if group)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
