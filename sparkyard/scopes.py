"""What the templates of a recipe may name, per rank. Pure.

================================= ===========================================================================================
``node``, ``head``, ``nodes``     name, rank (in the lane), host, user, home, root, models, link (address, interface, hcas), vars,
                                  checkpoints and discovered (of that node: also where another node's file is rendered)
``rank``, ``world``, ``peers``    this rank, how many there are, the other nodes
``lane``                          the settings by name
``env``                           the lane's environment, merged by key
``checkpoints.<name>``            path (absolute, on this node), commit, repo, shards (how many safetensors files),
                                  files (their paths; none while it is unlocked), hashes (path → ``sha256:…`` or ``blob:…``),
                                  config (its parsed ``config.json``)
``image.reference``               what ``docker run`` gets
``image.origin``                  what it is made of: git commits or digest, 12 digits each; for names of folders
``kept.<name>.path``              where a kept folder lies on this node
``patches.<name>``                path (where the edited text lies on this node), pristine and patched (sha256 of both states)
``files.<name>.path``             where a rendered file lies on this node
``root``                          the lane's own folder on this node: ``<node.root>/lanes/<lane>``
``discovered.<name>``             known only on the node: ``gid``, or ``discovered["gid.<hca>"]``
================================= ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkyard.command import discovered
from sparkyard.manifest import digest
from sparkyard.model import Lane, Manifest, Node
from sparkyard.recipe import CheckpointSpec, ImageSpec
from sparkyard.templating import Discovered, Scope
from sparkyard.unlocked import Unlocked

Commits = Mapping[str, Manifest | str]
"""Checkpoint name → its manifest, or its commit alone."""
CONFIG = "config.json"


def lane_root(lane: Lane, node: Node) -> str:
    """The folder of a lane on a node: rendered files, and whatever its services keep."""
    return f"{node.root}/lanes/{lane.name}"


def node_scope(lane: Lane, node: Node, commits: Commits, here: Node) -> Scope:
    """A node as the files of ``here`` see it: what only it can tell is marked with its name (``<discovered: home@spark-2>``)."""
    other = "" if node == here else f"@{node.name}"
    link = Scope(
        "node.link",
        {"address": node.link.address, "interface": node.link.interface, "hcas": list(node.link.hcas)},
    )
    names: dict[str, Any] = {
        "name": node.name,
        "rank": lane.rank(node),
        "host": node.host,
        "user": node.user or "",
        "home": discovered(f"home{other}"),
        "root": told_by(node.root, other),
        "models": told_by(node.models, other),
        "link": link,
        "vars": Scope("node.vars", node.vars),
        "checkpoints": checkpoint_scope(lane, node, commits, other),
        "discovered": Discovered(other),
    }
    return Scope("node", names)


def told_by(path: str, other: str) -> str:
    """The path with the home's mark as that of another node (``@spark-2``)."""
    return path.replace(discovered("home"), discovered(f"home{other}"))


def shards(known: Manifest | str | None) -> str:
    """How many safetensors files a checkpoint has, or a mark that says that it is not known yet."""
    if not isinstance(known, Manifest):
        return Unlocked.of("shards")
    return str(sum(file.path.endswith(".safetensors") for file in known.files))


def commit_of(spec: CheckpointSpec, known: Manifest | str | None) -> str:
    """The 40-hex commit, or a mark that says that it is not known yet."""
    if isinstance(known, Manifest):
        return known.commit
    return known or (spec.revision if len(spec.revision) == 40 else f"<unlocked: {spec.revision}>")


def unlocked(lane: Lane, commits: Commits) -> tuple[str, ...]:
    """The checkpoints whose commit is not known yet."""
    specs = lane.checkpoints
    return tuple(name for name, spec in specs.items() if commit_of(spec, commits.get(name)).startswith("<"))


def checkpoint_scope(lane: Lane, node: Node, commits: Commits, other: str = "") -> Scope:
    """The checkpoints that this node has, and that belong to the lane with its settings."""
    found: dict[str, Any] = {}
    for name, spec in lane.checkpoints.items():
        if node in lane.choose(spec.nodes):
            commit = commit_of(spec, commits.get(name))
            path = f"{told_by(node.models, other)}/{spec.repo.replace('/', '--')}/{commit}"
            known = commits.get(name)
            about: dict[str, Any] = {
                "path": path,
                "commit": commit,
                "repo": spec.repo,
                "shards": shards(known),
            }
            about["files"] = [file.path for file in known.files] if isinstance(known, Manifest) else None
            about |= contents(name, known)
            found[name] = Scope(f"checkpoints.{name}", about)
    return Scope("checkpoints", found)


def contents(name: str, known: Manifest | str | None) -> dict[str, Any]:
    """What is in a checkpoint's files, or marks; without ``config`` when it is known to have none."""
    if not isinstance(known, Manifest):
        return {"hashes": Unlocked.of("hashes"), "config": Unlocked.of("config")}
    path = f"checkpoints.{name}"
    found = {"hashes": Scope(f"{path}.hashes", {file.path: digest(file) for file in known.files})}
    if known.config is not None:
        return {**found, "config": scoped(f"{path}.config", known.config)}
    return {**found, "config": Unlocked.of("config")} if CONFIG in found["hashes"] else found


def scoped(path: str, value: Any) -> Any:
    """A JSON value whose objects say which name they lack."""
    if isinstance(value, Mapping):
        return Scope(path, {name: scoped(f"{path}.{name}", item) for name, item in value.items()})
    return [scoped(path, item) for item in value] if isinstance(value, list) else value


def origin(image: ImageSpec) -> str:
    """What an image is made of, fit for the name of a folder: its git commits or its digest, 12 digits of each, else its name.

    The recipe's own pins, so that locking them changes no name.
    """
    if image.pull is not None:
        return image.pull.digest.removeprefix("sha256:")[:12]
    if image.made is not None:
        return image.made.git.commit[:12]
    commits = [git.commit[:12] for git in image.build.git.values()] if image.build is not None else []
    return "-".join(commits) or image.name


def rank_scope(lane: Lane, node: Node, commits: Commits, image: str) -> Scope:
    """Everything but ``env`` and ``files``, which are rendered with it and then added."""
    scopes = [node_scope(lane, each, commits, node) for each in lane.nodes]
    rank = lane.rank(node)
    names: dict[str, Any] = {
        "node": scopes[rank],
        "head": scopes[0],
        "nodes": scopes,
        "peers": [scope for scope in scopes if scope["rank"] != rank],
        "rank": rank,
        "world": len(scopes),
        "lane": Scope("lane", {name: value.value for name, value in lane.settings.items()}),
        "checkpoints": checkpoint_scope(lane, node, commits),
        "image": Scope(
            "image", {"reference": image, "origin": lane.image_origin or origin(lane.recipe.image)}
        ),
        "root": lane_root(lane, node),
        "discovered": Discovered(),
    }
    return Scope(node.name, names)


def with_names(scope: Scope, **names: Any) -> Scope:
    """The scope with more names."""
    return Scope(scope.path, {**scope, **names})
