"""What a lane would be refused for besides the faults of its inventory and settings, so that a person reads all of it at once. Connects to nothing.

A value that is at fault is judged as the recipe's default, a node that is missing as one like the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sparkyard.errors import ConfigError, Fault
from sparkyard.model import Lane, Node, Value
from sparkyard.render import Rendering, render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.resolve import known_lock


def besides(lane: Lane, faults: Collection[Fault]) -> tuple[Fault, ...]:
    """The faults of the lane's templates, rules, ports and ranks; nothing where there is no node to judge them on."""
    if not lane.nodes:
        return ()
    judged = _with_nodes(_without(lane, {fault.key.rpartition(".")[2] for fault in faults}))
    try:
        render_lane(judged, {}, known_lock(judged))
    except ConfigError as error:
        return error.faults
    return ()


def told_of(lane: Lane, faults: Collection[Fault]) -> tuple[Lane, RenderedLane, tuple[Fault, ...]]:
    """A lane that may be refused, as it would be: with the nodes that it lacks, and with everything that it is refused for.

    Raises ConfigError where that would tell of another lane than the one that was asked for: for faults other than of its nodes, and for
    templates that cannot be rendered.
    """
    if not lane.nodes or any(fault.key and fault.key != f"lanes.{lane.name}.nodes" for fault in faults):
        raise ConfigError([*faults, *besides(lane, faults)])
    whole = _with_nodes(lane)
    lock = known_lock(whole)
    rendering = Rendering(whole, lock.manifests, lock)
    rendered, ranks = rendering.unjudged()
    broken = bool(rendering.templates.faults())
    rendering.judge(rendered, ranks)
    found = tuple(dict.fromkeys((*faults, *rendering.templates.faults())))
    if broken:
        raise ConfigError(found)
    return whole, rendered, found


def _without(lane: Lane, names: Collection[str]) -> Lane:
    """The lane without the values that are at fault."""
    specs = lane.recipe.settings
    settings = {
        name: Value(specs[name].default, value.origin, value.secret) if name in names else value
        for name, value in lane.settings.items()
    }
    recipe_env = {name: Value(text, lane.env[name].origin) for name, text in lane.recipe.env.items()}
    env = {
        name: recipe_env.get(name, value) if name in names else value
        for name, value in lane.env.items()
        if name not in names or name in recipe_env
    }
    return replace(lane, settings=settings, env=env)


def _with_nodes(lane: Lane) -> Lane:
    """The lane on as many nodes as it needs."""
    least, most = lane.recipe.nodes.at_least, lane.recipe.nodes.at_most
    nodes = [*lane.nodes[:most], *_missing(lane.nodes, least)]
    return replace(lane, nodes=tuple(nodes))


def _missing(nodes: tuple[Node, ...], least: int) -> Iterable[Node]:
    for number in range(len(nodes), least):
        yield replace(nodes[-1], name=f"missing-{number + 1}", rank=nodes[-1].rank + number)
