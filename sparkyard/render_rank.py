"""One rank of a lane rendered: its environment, files and containers. Pure but for the template files it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkyard import docker_words, env_dialects
from sparkyard.kept import Kept
from sparkyard.lock import Lock
from sparkyard.model import Container, Lane, Node, RenderedFile
from sparkyard.recipe import ContainerSpec, FileSpec, ServiceSpec
from sparkyard.render_kept import kept_folders
from sparkyard.render_patches import patch_scope
from sparkyard.rendered import RenderedGate, RenderedImage
from sparkyard.scopes import Commits, lane_root, rank_scope, with_names
from sparkyard.templating import Scope, Templates

HIDDEN_FILE = "secret.env"
SHORTEST_SECRET = 4
"""Characters of a secret that is still looked for inside of other words; a shorter one must be the whole word."""


@dataclass
class Rank:
    """One rank while it is rendered."""

    node: Node
    number: int
    scope: Scope
    env: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    files: dict[str, RenderedFile] = field(default_factory=dict)
    containers: list[Container] = field(default_factory=list)
    kept: tuple[Kept, ...] = ()


class RankRendering:
    """Renders the ranks of one lane; ``templates`` collects the faults, ``gates`` what each container must show."""

    def __init__(self, lane: Lane, commits: Commits, templates: Templates, lock: Lock | None = None) -> None:
        self.lock = lock or Lock()
        self.lane, self.commits, self.recipe, self.templates = lane, commits, lane.recipe, templates
        self.secrets = lane.secrets()
        self.gates: dict[str, RenderedGate] = {}

    def rank(self, number: int, node: Node, image: RenderedImage) -> Rank:
        rank = Rank(node, number, rank_scope(self.lane, node, self.commits, image.reference))
        self.environment(rank)
        rank.scope = with_names(rank.scope, env=Scope("env", {**rank.env, **rank.hidden}))
        rank.kept = kept_folders(self.lane, node, self.commits, self.templates)
        rank.scope = with_names(rank.scope, kept=self.kept(rank.kept))
        patched = patch_scope(self.lane, self.lock, rank, self.templates)
        rank.scope = with_names(rank.scope, patches=patched)
        self.files(rank)
        for name, spec in self.recipe.services.items():
            if node in self.lane.choose(spec.nodes):
                rank.containers.append(self.service(name, spec, rank, image))
        return rank

    def kept(self, folders: tuple[Kept, ...]) -> Scope:
        return Scope("kept", {each.name: Scope(f"kept.{each.name}", {"path": each.path}) for each in folders})

    def environment(self, rank: Rank) -> None:
        """The lane's environment on a rank; what holds a secret goes apart, into a 0600 file."""
        given = {name: (f"env.{name}", text) for name, text in self.recipe.env.items()}
        for name, set_here in self.lane.env.items():
            given.pop(name, None)
            if set_here.value is not None:  # null takes a variable of the recipe away
                given[name] = (f"env.{name}", _word(set_here.value))
        for name, (key, source) in given.items():
            value = self.templates.optional(key, source, rank.scope)
            secret = name in self.lane.env and self.lane.env[name].secret
            if value is not None:
                (rank.hidden if secret or self.holds_secret(value) else rank.env)[name] = value
        self.refuse_env("env", {**rank.env, **rank.hidden}, "docker-env", rank)

    def refuse_env(self, key: str, values: Mapping[str, str], dialect: str, rank: Rank) -> None:
        for name, message in env_dialects.faults(values, dialect):
            self.templates.fault(f"{key}.{name}", message, rank.node.name)

    # files

    def files(self, rank: Rank) -> None:
        specs = {
            name: spec
            for name, spec in self.recipe.files.items()
            if rank.node in self.lane.choose(spec.nodes)
        }
        paths = {name: self.path(f"files.{name}.path", spec.path, rank) for name, spec in specs.items()}
        places = {name: Scope(f"files.{name}", {"path": path}) for name, path in paths.items()}
        rank.scope = with_names(rank.scope, files=Scope("files", places))
        for name, spec in specs.items():
            rank.files[name] = self.file(name, spec, paths[name], rank)
        if rank.hidden:
            path = f"{lane_root(self.lane, rank.node)}/{HIDDEN_FILE}"
            text = env_dialects.text(rank.hidden, "docker-env")
            rank.files[HIDDEN_FILE] = RenderedFile(
                rank.node.name, HIDDEN_FILE, path, text, 0o600, secret=True
            )
        self.refuse_shared_paths(rank)

    def refuse_shared_paths(self, rank: Rank) -> None:
        seen: dict[str, str] = {}
        for name, file in rank.files.items():
            if file.path in seen:
                self.templates.fault(
                    f"files.{name}.path", f"is the path of {seen[file.path]} too: {file.path}", rank.node.name
                )
            seen[file.path] = name

    def path(self, key: str, source: str, rank: Rank) -> str:
        path = self.templates.text(key, source, rank.scope)
        for message in docker_words.path_faults(path, "path") if path else ():
            self.templates.fault(key, message, rank.node.name)
        return path

    def place(self, key: str, source: str, rank: Rank) -> str:
        """A path that is asked of a node: there must be one, and it must be one line; empty after a fault."""
        path = self.templates.demanded(key, source, rank.scope)
        if not path.strip():
            return ""
        for message in docker_words.path_faults(path, "path"):
            self.templates.fault(key, message, rank.node.name)
        if not path.isprintable():
            message = f"path {path!r} holds a line break or another character that cannot be shown"
            self.templates.fault(key, message, rank.node.name)
        return path

    def file(self, name: str, spec: FileSpec, path: str, rank: Rank) -> RenderedFile:
        key = f"files.{name}"
        if spec.template is not None:
            text = self.templates.file(f"{key}.template", spec.template, rank.scope)
        else:
            text = self.values(f"{key}.values", spec, rank)
        if self.holds_secret(text) and not spec.secret:
            self.templates.fault(key, "holds a secret and must say `secret: true`", rank.node.name)
        mode = 0o600 if spec.secret else 0o644
        return RenderedFile(rank.node.name, name, path, text, mode, secret=spec.secret)

    def values(self, key: str, spec: FileSpec, rank: Rank) -> str:
        found: dict[str, str] = {}
        for name, source in spec.values.items():
            value = self.templates.optional(f"{key}.{name}", source, rank.scope)
            if value is not None:
                found[name] = value
        self.refuse_env(key, found, spec.dialect, rank)
        return env_dialects.text(found, spec.dialect)

    # services

    def service(self, name: str, spec: ServiceSpec, rank: Rank, image: RenderedImage) -> Container:
        key = f"services.{name}"
        made = docker_words.container(self.parts(key, name, spec, rank, image), tuple(rank.files.values()))
        self.visible(key, made.words, rank.scope)
        return made

    def parts(
        self, key: str, name: str, spec: ContainerSpec, rank: Rank, image: RenderedImage, *, job: bool = False
    ) -> docker_words.Service:
        """What a container of a service or job is made of on a rank; its gate is noted beside."""
        node = rank.node.name
        own = self.own_env(key, spec, rank)
        if not job:
            self.without_effect(own, rank)
        rendered = docker_words.Service(
            lane=self.lane.name,
            name=name,
            node=node,
            nodes=tuple(each.name for each in self.lane.nodes),
            rank=rank.number,
            image=image.reference,
            image_mark=image.mark or image.pulled,
            options=self.words(f"{key}.options", spec.options, rank),
            env=own if job else {**rank.env, **own},
            env_files=(*self.env_files(key, spec, rank), *(() if job else self.hidden_file(rank))),
            mounts=self.mounts(key, spec, rank),
            words=self.words(f"{key}.words", spec.words, rank),
            job=job,
        )
        for message in docker_words.option_faults(rendered.options):
            self.templates.fault(f"{key}.options", message, node)
        self.gate(key, spec, rank, rendered.container)
        return rendered

    def own_env(self, key: str, spec: ContainerSpec, rank: Rank) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, source in spec.env.items():
            value = self.templates.optional(f"{key}.env.{name}", source, rank.scope)
            if value is not None:
                found[name] = value
        self.refuse_env(f"{key}.env", found, "shell", rank)
        return found

    def without_effect(self, found: Mapping[str, str], rank: Rank) -> None:
        """A fault for each variable that an inventory sets and a service overrides."""
        for name in (self.lane.env.keys() - self.recipe.env.keys()) & found.keys():
            place = str(self.lane.env[name].origin)
            message = f"{name} is set by the recipe's service itself, so {place} would be without effect; change the setting that it comes from"
            self.templates.fault(f"env.{name}", message, rank.node.name)

    def words(self, key: str, sources: list[str], rank: Rank) -> tuple[str, ...]:
        found = (self.templates.optional(f"{key}.{n}", text, rank.scope) for n, text in enumerate(sources))
        return tuple(word for word in found if word is not None)

    def env_files(self, key: str, spec: ContainerSpec, rank: Rank) -> tuple[RenderedFile, ...]:
        found: list[RenderedFile] = []
        for name in spec.env_files:
            told = self.recipe.files.get(name)
            if name not in rank.files or told is None:
                self.templates.fault(f"{key}.env_files", f"{name} is not a file of this node", rank.node.name)
            elif told.dialect != "docker-env":
                self.templates.fault(
                    f"{key}.env_files", f"{name} is in the dialect {told.dialect}, not docker-env"
                )
            else:
                found.append(rank.files[name])
        return tuple(found)

    def hidden_file(self, rank: Rank) -> tuple[RenderedFile, ...]:
        """The secrets of the lane's environment, which services read."""
        return tuple(file for name, file in rank.files.items() if name == HIDDEN_FILE)

    def mounts(self, key: str, spec: ContainerSpec, rank: Rank) -> tuple[docker_words.Mount, ...]:
        found: list[docker_words.Mount] = []
        for n, mount in enumerate(spec.mounts):
            if mount.when and not self.templates.holds(f"{key}.mounts.{n}.when", mount.when, rank.scope):
                continue
            source = self.templates.optional(f"{key}.mounts.{n}.source", mount.source, rank.scope)
            if source is None:  # not on this rank
                continue
            target = self.templates.text(f"{key}.mounts.{n}.target", mount.target, rank.scope)
            made = docker_words.Mount(source, target, mount.read_only, mount.create)
            for message in docker_words.mount_faults(made) if source else ():
                self.templates.fault(f"{key}.mounts.{n}", message, rank.node.name)
            if made.target in [other.target for other in found]:
                self.templates.fault(
                    f"{key}.mounts.{n}", f"{made.target} is the target of two mounts", rank.node.name
                )
            found.append(made)
        return tuple(found)

    def gate(self, key: str, spec: ContainerSpec, rank: Rank, container: str) -> None:
        if spec.gate is None:
            return
        port = None
        if spec.gate.port is not None:
            number = self.port(f"{key}.gate.port", spec.gate.port, rank.scope)
            port = (rank.node.link.address, number) if number else None
        self.gates[container] = RenderedGate(spec.gate.timeout, spec.gate.log or "", port)

    # ports and secrets

    def port(self, key: str, source: str, scope: Scope) -> int | None:
        """The number; None for a rank that has no such port, and after a fault."""
        text = self.templates.optional(key, source, scope)
        if not text:
            return None
        if text.isascii() and text.isdecimal() and 0 < int(text) < 65536:
            return int(text)
        self.templates.fault(key, f"{text!r} is not a port: expected 1 to 65535", scope.path)
        return None

    def holds_secret(self, text: str) -> bool:
        return any(s == text or (len(s) >= SHORTEST_SECRET and s in text) for s in self.secrets)

    def visible(self, key: str, words: tuple[str, ...], scope: Scope) -> None:
        """A fault when a word that everybody can read holds a secret."""
        if any(self.holds_secret(word) for word in words):
            message = "a secret would stand in the command line, where everybody can read it: use a file with `secret: true`"
            self.templates.fault(key, message, scope.path)


def _word(value: Any) -> str:
    """A value of the inventory as an environment variable: true and false as 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)
