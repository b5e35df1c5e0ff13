"""What a lane demands of its nodes' hosts, rendered: one entry a requirement and node, with the names that its expression may use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparkyard.conditions import applies
from sparkyard.model import Lane
from sparkyard.recipe import HostSpec
from sparkyard.render_rank import Rank
from sparkyard.rendered import HostWay, RenderedHost
from sparkyard.templating import Templates

FILES = ("read", "sha256")
"""Ways that look at a file."""


def host(lane: Lane, ranks: Sequence[Rank], templates: Templates) -> Iterator[RenderedHost]:
    """The requirements that apply with these settings; faults of their expressions are collected."""
    settings = {name: value.value for name, value in lane.settings.items()}
    for number, spec in enumerate(lane.recipe.host):
        key = f"host.{number}"
        if not applies(key, spec.when, settings, templates):
            continue
        templates.later(f"{key}.must", "{{" + spec.must + "}}", ("seen", *ranks[0].scope))
        way, place = _place(spec)
        for rank in ranks:
            if rank.node in lane.choose(spec.nodes):
                name = _name(f"{key}.{way}", way, place, rank, templates)
                yield RenderedHost(
                    rank.node.name, number, spec.what, way, name, spec.must, spec.why,
                    templates.text(f"{key}.next_step", spec.next_step, rank.scope),
                    spec.source, spec.blocks, rank.scope,
                )  # fmt: skip


def _name(key: str, way: HostWay, place: str, rank: Rank, templates: Templates) -> str:
    """What is asked for on this node: a name as it stands, or the path of a file, which may be a template."""
    if way not in FILES:
        return place
    path = templates.text(key, place, rank.scope)
    if path and not path.startswith("/"):
        templates.fault(key, f"{path!r} is not absolute", rank.node.name)
    return path


def _place(spec: HostSpec) -> tuple[HostWay, str]:
    if spec.read is not None:
        return "read", spec.read
    if spec.sha256 is not None:
        return "sha256", spec.sha256
    return ("getconf", spec.getconf) if spec.getconf is not None else ("unit", spec.unit or "")
