"""Turns pins into what they are: commits, digests and lists of files, asked from hubs, git hosts and registries."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sparkyard import git_words
from sparkyard.asking import ask
from sparkyard.command import fill
from sparkyard.errors import SparkyardError, StepFailed
from sparkyard.facts import folder_question
from sparkyard.lock import Lock, Locked, LockedGit, LockedImage
from sparkyard.manifest import COMMIT
from sparkyard.mirrors import mirrored
from sparkyard.model import Lane
from sparkyard.patience import Wait, waiting
from sparkyard.pins import git_specs
from sparkyard.recipe import GitSpec
from sparkyard.resolve import asks_config, image_references

if TYPE_CHECKING:
    from sparkyard.hub import Hub
    from sparkyard.step_world import Surroundings


class Resolver:
    """Resolves the pins of one lane.

    Args:
        around: shells (git runs on the head) and the cancel signal.
        say: gets a line for each thing that takes a while.
        wait: sleeps between tries; raises Interrupted when the run is cancelled.
    """

    def __init__(
        self, lane: Lane, around: Surroundings, say: Callable[[str], None], wait: Wait | None = None
    ) -> None:
        self.lane, self.around, self.say = lane, around, say
        self.wait = wait or waiting(around.stop)
        self._commits: dict[tuple[str, str], LockedGit] = {}

    def lock(self, keys: Collection[str]) -> Lock:
        """What is behind each of these dotted keys. Raises StepFailed, each cause in its own words."""
        specs, images = git_specs(self.lane.recipe), image_references(self.lane)
        return Lock(
            {n: self.checkpoint(n) for n in self.lane.checkpoints if f"checkpoints.{n}" in keys},
            {key: self.git(key, spec) for key, spec in specs.items() if key in keys},
            {key: self.image(name) for key, name in images.items() if key in keys},
        )

    # checkpoints

    @cached_property
    def hub(self) -> Hub:
        from sparkyard.hub import Hub  # noqa: PLC0415 - 0.4 s that a locked lane does not pay

        return Hub(self.lane.inventory.hub_endpoint, say=self.say, wait=self.wait)

    def checkpoint(self, name: str) -> Locked:
        """The commit and the files of a checkpoint, which agree with each other."""
        from sparkyard import consistency  # noqa: PLC0415

        spec = self.lane.checkpoints[name]
        try:
            manifest = self.hub.manifest(spec.repo, spec.revision, spec.files)
            consistency.check(self.hub, manifest, spec.files, self.say)
            if asks_config(self.lane):
                manifest = replace(manifest, config=consistency.config(self.hub, manifest))
        except SparkyardError as error:
            error.details = (*error.details, f"asked for checkpoint {name} of lane {self.lane.name}")
            raise
        return Locked(spec.revision, manifest, tuple(spec.files))

    # git

    @cached_property
    def root(self) -> str:
        """The head's own folder, its home filled in."""
        node = self.lane.head
        return fill(node.root, ask(self.around, node.name, (folder_question(node.root),)).discovered)

    def git(self, key: str, spec: GitSpec) -> LockedGit:
        """The commit of a pin. Pins that are the same (a lane's many files of one repository) are looked for once."""
        asked = (spec.url, spec.commit)
        if asked not in self._commits:
            self._commits[asked] = self._git(key, spec)
        return self._commits[asked]

    def _git(self, key: str, spec: GitSpec) -> LockedGit:
        """The one commit that begins as the pin does, among all refs and in the full clone."""
        from sparkyard.actions_image import GitFetch  # noqa: PLC0415
        from sparkyard.executors import git  # noqa: PLC0415

        shell = self.around.shell(self.lane.head.name)
        place = mirrored(spec.url, self.lane.inventory.mirrors)
        folder = git_words.bare_folder(self.root, spec.url)
        wanted = GitFetch(spec.url, spec.commit, folder, place)
        self.say(f"{spec.url}: looking for commit {spec.commit}")
        if COMMIT.fullmatch(spec.commit):
            git.bring(wanted, shell)
            self.tell_moved(spec.url, git.origin(shell, folder))
            return LockedGit(spec.url, spec.commit, spec.commit)
        git.fill(wanted, shell)
        refs = shell.run(git_words.remote_refs(place))
        if refs.status != 0:
            raise git.unreachable(spec.url, place, shell.node.name, refs)
        known = {*shell.run(git_words.commits(folder)).text.split(), *_peeled(refs.text)}
        commit = _only(key, spec, sorted(c for c in known if c.startswith(spec.commit)))
        git.bring(GitFetch(spec.url, commit, folder, place), shell)
        self.tell_moved(spec.url, git.origin(shell, folder))
        return LockedGit(spec.url, spec.commit, commit)

    def tell_moved(self, url: str, origin: str) -> None:
        """A renamed project's old address leads to the new one, and nobody notices."""
        if origin and origin != git_words.plain(url):
            self.say(f"{url} leads to {origin} now; a commit is the same under both names")

    # images

    def image(self, reference: str) -> LockedImage:
        """The digest that the reference's tag has now."""
        from sparkyard.registry import Registry  # noqa: PLC0415

        return LockedImage(reference, Registry(self.lane.inventory.mirrors).digest(reference))


def _peeled(refs: str) -> set[str]:
    """The commits of ``git ls-remote``: of an annotated tag the commit behind it, not the tag's own object."""
    rows = [line.split("\t", 1) for line in refs.splitlines() if "\t" in line]
    behind = {name.removesuffix("^{}") for _, name in rows if name.endswith("^{}")}
    return {commit for commit, name in rows if name not in behind}


def _only(key: str, spec: GitSpec, found: list[str]) -> str:
    if len(found) == 1:
        return found[0]
    seen = f"fits {len(found)} commits" if found else "is no commit on any branch, tag or other ref"
    raise StepFailed(
        f"{spec.commit} {seen} of {spec.url}",
        details=[*found, f"asked for {key}"],
        next_step="write the full 40-hex commit in the recipe",
    )
