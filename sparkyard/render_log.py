"""What the logs of a lane's ranks must say once it serves, rendered: one entry a check and container. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sparkyard.conditions import applies
from sparkyard.model import Lane
from sparkyard.recipe import LogCheck
from sparkyard.render_rank import Rank
from sparkyard.rendered import RenderedLog
from sparkyard.templating import Templates


def logs(lane: Lane, ranks: Sequence[Rank], templates: Templates) -> Iterator[RenderedLog]:
    """The checks that apply with these settings; faults of their patterns and expressions are collected."""
    settings = {name: value.value for name, value in lane.settings.items()}
    for service, spec in lane.recipe.services.items():
        for number, check in enumerate(spec.log):
            key = f"services.{service}.log.{number}"
            there = applies(key, check.when, settings, templates)
            if there and _sound(key, check, ranks[0], templates):
                yield from _of(lane, service, check, ranks)


def _of(lane: Lane, service: str, check: LogCheck, ranks: Sequence[Rank]) -> Iterator[RenderedLog]:
    for rank in ranks:
        if rank.node not in lane.choose(check.nodes):
            continue
        for container in (each for each in rank.containers if each.service == service):
            yield RenderedLog(
                rank.node.name, container.name, check.what, check.pattern, check.must, check.message,
                check.source, rank.scope,
            )  # fmt: skip


def _sound(key: str, check: LogCheck, rank: Rank, templates: Templates) -> bool:
    try:
        re.compile(check.pattern)
    except re.error as error:
        templates.fault(f"{key}.pattern", f"is no regular expression: {error}")
        return False
    names = ("found", *rank.scope)
    if check.must:
        templates.later(f"{key}.must", "{{" + check.must + "}}", names)
    templates.later(f"{key}.message", check.message, names)
    return True
