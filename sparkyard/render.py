"""A lane rendered for its nodes: files, containers, readiness and checks, as data. Reads the recipe's folder; connects to nothing.

Every fault of every rank is collected; there is one ConfigError with all of them, or a whole RenderedLane.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from sparkyard import alike
from sparkyard.conditions import applies
from sparkyard.errors import ConfigError
from sparkyard.loading.yaml_file import shown
from sparkyard.lock import Lock
from sparkyard.model import Lane
from sparkyard.pins import unlocked_pins
from sparkyard.ports import port_faults, twins, typed_at
from sparkyard.recipe import CheckSpec
from sparkyard.render_host import host
from sparkyard.render_image import ImageRendering
from sparkyard.render_jobs import JobRendering, stages
from sparkyard.render_log import logs
from sparkyard.render_patches import patches
from sparkyard.render_rank import Rank, RankRendering
from sparkyard.render_scripts import ScriptsRendering
from sparkyard.rendered import RenderedImage, RenderedLane, RenderedReady
from sparkyard.scopes import Commits, rank_scope, unlocked
from sparkyard.templating import Scope, Templates

RECIPE = "recipe.yml"


def render_lane(lane: Lane, commits: Commits, lock: Lock | None = None) -> RenderedLane:
    """The lane with all its templates rendered.

    ``lock`` is what is known of its pins; ``commits`` goes before it, checkpoint by checkpoint. What is missing renders as
    ``<unlocked: revision>``, a base image as the recipe names it.
    Raises ConfigError with every fault of the recipe's templates and rules, on every rank.
    """
    lock = lock or Lock()
    rendering = Rendering(lane, {**lock.manifests, **commits}, lock)
    rendered = rendering.run()
    faults = rendering.templates.faults()
    if faults:
        raise ConfigError(faults)
    return rendered


def line_finder(path: Path) -> Any:
    """A function from a dotted key to its line in a YAML file; 0 for what is not there. The file is read on first use."""
    lines: dict[str, int] = {}

    def find(key: str) -> int:
        if not lines and path.is_file():
            lines[""] = 1
            _collect(yaml.compose(path.read_text(encoding="utf-8")), "", lines)
        while key not in lines and "." in key:
            key = key.rpartition(".")[0]
        return lines.get(key, 0) if key else 0

    return find


def _collect(node: Any, key: str, lines: dict[str, int]) -> None:
    pairs: list[tuple[str, Any, int]] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(name.value, value, name.start_mark.line) for name, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        pairs = [(str(n), value, value.start_mark.line) for n, value in enumerate(node.value)]
    for name, value, line in pairs:
        inner = f"{key}.{name}" if key else name
        lines[inner] = line + 1
        _collect(value, inner, lines)


class Rendering:
    """Renders one lane; ``templates`` collects its faults."""

    def __init__(self, lane: Lane, commits: Commits, lock: Lock) -> None:
        self.lane, self.commits, self.recipe, self.lock = lane, commits, lane.recipe, lock
        recipe = lane.recipe_folder / RECIPE
        shared = lane.recipe_folder.parent.parent / "templates"
        self.templates = Templates(shown(recipe), (lane.recipe_folder, shared), line_finder(recipe))
        self.starting = Templates(shown(recipe), (), self.templates.line_of)  # what would only stop a start
        self.ranks = RankRendering(lane, commits, self.templates, lock)
        self.scopes: tuple[Scope, ...] = ()
        """The names that templates of each rank have, once it is rendered."""

    def run(self) -> RenderedLane:
        """The lane, judged: what its rules, its ports and the equality of its ranks forbid is a fault."""
        rendered, ranks = self.unjudged()
        self.judge(rendered, ranks)
        return replace(rendered, start_faults=self.starting.faults())

    def judge(self, rendered: RenderedLane, ranks: list[Rank]) -> None:
        """Note what the lane is refused for as a whole."""
        self.rules(ranks)
        for key, message in alike.faults(self.lane, rendered):
            self.templates.fault(key, message)
        for key, message, node in port_faults(self.lane, rendered):
            self.templates.fault(key, message, node)

    def unjudged(self) -> tuple[RenderedLane, list[Rank]]:
        """The lane as its templates make it, and its ranks."""
        image = self.image()
        ranks = [self.ranks.rank(number, node, image) for number, node in enumerate(self.lane.nodes)]
        scripts = None
        if self.recipe.scripts is not None:
            kit = ScriptsRendering(self.lane, self.recipe.scripts, self.templates, ranks)
            scripts = kit.run()
            made = kit.containers(scripts, image)
        else:
            made = tuple(container for rank in ranks for container in rank.containers)
        self.scopes = tuple(rank.scope for rank in ranks)
        texts = tuple(patches(self.lane, self.lock, ranks, self.templates))
        jobs = JobRendering(self.lane, self.lock, self.ranks, image, texts).jobs(ranks)
        head = ranks[0].scope
        rendered = RenderedLane(
            lane=self.lane.name,
            image=image,
            files=tuple(file for rank in ranks for file in rank.files.values()),
            containers=made,
            gates=self.ranks.gates,
            order=self.order(),
            ready=self.ready(head),
            checks=tuple(self.check(n, check, head) for n, check in self.wanted_checks()),
            ports={rank.node.name: self.ports(rank.scope) for rank in ranks},
            unlocked=(*unlocked(self.lane, self.commits), *unlocked_pins(self.lane, self.lock)),
            kept={rank.node.name: rank.kept for rank in ranks},
            secrets=self.ranks.secrets,
            scripts=scripts,
            patches=texts,
            host=tuple(host(self.lane, ranks, self.templates)),
            logs=tuple(logs(self.lane, ranks, self.templates)),
            jobs=jobs,
            stages=stages(self.lane, jobs),
        )
        return rendered, ranks

    # image

    def image(self) -> RenderedImage:
        scope = rank_scope(self.lane, self.lane.head, self.commits, "")
        return ImageRendering(self.lane, self.lock, scope, self.templates, self.ranks.visible).image()

    # the whole lane

    def ports(self, scope: Scope) -> dict[str, int]:
        found = {
            name: self.ranks.port(f"ports.{name}", text, scope) for name, text in self.recipe.ports.items()
        }
        numbers = {name: number for name, number in found.items() if number is not None}
        for first, second in twins(numbers):
            self._twin(first, second, numbers[second], scope.path)
        return numbers

    def _twin(self, first: str, second: str, number: int, node: str) -> None:
        """A port for two things: at the line where a person set one of them, else at the recipe's."""
        for name, other in ((second, first), (first, second)):
            if typed := typed_at(self.lane, self.recipe.ports[name]):
                key, at = typed
                message = f"{number}, the port of {name}, is the port of {other} too; give one of them another number"
                self.templates.fault(key, message, node, file=at.place, line=at.line)
                return
        message = f"{number} is the port of {first} too; give one of them another number"
        self.templates.fault(f"ports.{second}", message, node)

    def order(self) -> tuple[tuple[int, ...], ...]:
        world = len(self.lane.nodes)
        everyone, head, workers = tuple(range(world)), (0,), tuple(range(1, world))
        order = self.recipe.order
        if not isinstance(order, str):
            if sorted(rank for group in order for rank in group) != list(everyone):
                self.templates.fault("order", f"must name each rank from 0 to {world - 1} once")
            return tuple(tuple(group) for group in order if group)
        groups = {"workers-first": (workers, head), "head-first": (head, workers), "together": (everyone,)}[
            order
        ]
        return tuple(group for group in groups if group)

    def ready(self, scope: Scope) -> RenderedReady:
        spec = self.recipe.ready
        model = self.templates.text("ready.model", spec.model, scope)
        body = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}
        return RenderedReady(
            url=self.templates.text("ready.url", spec.url, scope),
            health=spec.health,
            body={**body, **self.templates.value("ready.body", spec.body, scope)},
            timeout=spec.timeout,
            log_silence=spec.log_silence,
            api_key=self.templates.text("ready.api_key", spec.api_key, scope),
        )

    def wanted_checks(self) -> list[tuple[int, CheckSpec]]:
        """The checks that belong to the lane with its settings, each with its number in the recipe."""
        settings = {name: value.value for name, value in self.lane.settings.items()}
        every = enumerate(self.recipe.verify)
        return [
            (n, check) for n, check in every if applies(f"verify.{n}", check.when, settings, self.templates)
        ]

    def check(self, number: int, check: CheckSpec, scope: Scope) -> CheckSpec:
        key = f"verify.{number}"
        expect = [
            one.model_copy(
                update={
                    "equals": self.templates.value(f"{key}.expect.{n}.equals", one.equals, scope),
                    "contains": self.templates.value(f"{key}.expect.{n}.contains", one.contains, scope),
                }
            )
            for n, one in enumerate(check.expect)
        ]
        body = self.templates.value(f"{key}.body", check.body, scope)
        return check.model_copy(update={"body": body, "expect": expect})

    def rules(self, ranks: list[Rank]) -> None:
        for n, rule in enumerate(self.recipe.rules):
            faults = self.starting if rule.at == "start" else self.templates
            for rank in ranks:
                if rank.node not in self.lane.inventory.nodes:
                    continue  # one that is missing, and is told of
                if not self.templates.holds(f"rules.{n}.must", rule.must, rank.scope):
                    message = self.templates.text(f"rules.{n}.message", rule.message, rank.scope)
                    faults.fault(
                        f"rules.{n}", f"{message} (must be: {rule.must}; {rule.source})", rank.node.name
                    )
