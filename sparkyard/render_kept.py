"""The folders that a lane's services fill and keep, rendered for a node. Pure."""

from __future__ import annotations

from sparkyard import docker_words
from sparkyard.errors import ConfigError
from sparkyard.kept import Kept
from sparkyard.model import Lane, Node
from sparkyard.scopes import Commits, rank_scope
from sparkyard.templating import Templates


def kept_folders(
    lane: Lane, node: Node, commits: Commits, templates: Templates | None = None
) -> tuple[Kept, ...]:
    """The folders that the lane keeps on a node.

    Faults go to ``templates`` when it is given; else ConfigError is raised with all of them.
    """
    if not lane.recipe.kept:
        return ()
    collecting = templates or Templates(str(lane.recipe_folder / "recipe.yml"), (), lambda key: 0)
    scope = rank_scope(lane, node, commits, "")
    found: list[Kept] = []
    for name, spec in lane.recipe.kept.items():
        path = collecting.text(f"kept.{name}.path", spec.path, scope)
        for message in docker_words.path_faults(path, "path") if path else ():
            collecting.fault(f"kept.{name}.path", message, node.name)
        size = collecting.text(f"kept.{name}.bytes", spec.bytes, scope)
        if size and not (size.isascii() and size.isdecimal()):
            collecting.fault(f"kept.{name}.bytes", f"{size!r} is not a whole number of bytes", node.name)
            size = ""
        found.append(Kept(name, path, int(size or 0)))
    if templates is None and collecting.faults():
        raise ConfigError(collecting.faults())
    return tuple(found)
