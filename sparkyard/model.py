"""What is wanted, as frozen data: nodes, the inventory, and a lane resolved against it.

Sizes are bytes, times are seconds. Nothing here reads a file or connects to anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pydantic takes its time, and the inventory alone needs none of it
    from sparkyard.recipe import CheckpointSpec, Recipe

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set: a file and 1-based line, or a name such as ``--set`` or ``SPARKYARD_PORT`` with line 0."""

    place: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.place}:{self.line}" if self.line else self.place


@dataclass(frozen=True, slots=True)
class Value:
    """A value with the place that set it. ``secret`` values are masked wherever they are shown."""

    value: Any
    origin: Origin
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """The RoCE link of a node: its IPv4 address, the network interface that has it, and the HCAs (RDMA devices) of the port.

    ``mtu`` is what the link must carry, in bytes: less than 9000 only where its address is on another network than its HCAs.
    """

    address: str
    interface: str
    hcas: tuple[str, ...]
    mtu: int = 9000


@dataclass(frozen=True, slots=True)
class Node:
    """One Spark.

    Attributes:
        name: the one name by which ssh, rsync and fabric know it (HostKeyAlias).
        rank: its place in the inventory, 0 is the head.
        local: ``ansible_connection: local``.
        host, port, user, key: how ssh reaches it on the management network; None leaves it to ``~/.ssh/config``.
        link: the RoCE link; bulk copies go there.
        root: folder of everything sparkyard keeps on the node; may start with ``<discovered: home>``.
        models: folder of the checkpoints; likewise.
        vars: the merged Ansible variables, for templates.
    """

    name: str
    rank: int
    local: bool
    host: str
    link: Link
    root: str
    models: str
    port: int | None = None
    user: str | None = None
    key: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The nodes and their settings.

    ``values`` holds every merged variable of every node with its origin, for ``invoke config``: node → dotted key → Value.
    ``mirrors``: prefix of a git URL or image reference → what stands in its place (``mirrors.mirrored``).
    """

    folder: Path
    nodes: tuple[Node, ...]
    groups: Mapping[str, tuple[str, ...]]
    default_lane: str | None
    revert_to: str | None
    hub_endpoint: str | None = None
    lab: bool = False
    stand_in: bool = False
    values: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    mirrors: Mapping[str, str] = field(default_factory=dict)

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError for an unknown one."""
        return {node.name: node for node in self.nodes}[name]

    @property
    def head(self) -> Node:
        return min(self.nodes, key=lambda node: node.rank)


@dataclass(frozen=True, slots=True)
class Lane:
    """A recipe resolved against an inventory: which nodes, with which settings.

    Attributes:
        nodes: in rank order of the lane; ``nodes[0]`` is its rank 0.
        settings: every setting of the recipe with its value and origin.
        env: the lane's extra environment of the engine, merged by key.
        profile: the name of the chosen profile with the place that chose it; None for none.
        image_folder: where the image's ``dockerfile`` and ``context`` lie, if that is not the recipe's folder (stand-ins).
        image_origin: what the recipe's own image is made of, where a stand-in takes its place.
    """

    name: str
    recipe: Recipe
    recipe_folder: Path
    inventory: Inventory
    nodes: tuple[Node, ...]
    settings: Mapping[str, Value]
    env: Mapping[str, Value] = field(default_factory=dict)
    image_folder: Path | None = None
    image_origin: str = ""
    profile: Value | None = None

    @property
    def build_folder(self) -> Path:
        """What the paths of ``image.build`` are relative to."""
        return self.image_folder or self.recipe_folder

    @property
    def checkpoints(self) -> Mapping[str, CheckpointSpec]:
        """The checkpoints that belong to the lane with these settings (``when``); every reader asks here, not the recipe."""
        from sparkyard.conditions import belonging  # noqa: PLC0415 - Jinja comes with it

        return belonging(self)

    @property
    def head(self) -> Node:
        return self.nodes[0]

    @property
    def workers(self) -> tuple[Node, ...]:
        return self.nodes[1:]

    def rank(self, node: Node) -> int:
        return self.nodes.index(node)

    def choose(self, who: str) -> tuple[Node, ...]:
        """The nodes meant by ``all``, ``head`` or ``workers``."""
        return {"all": self.nodes, "head": self.nodes[:1], "workers": self.nodes[1:]}[who]

    def secrets(self) -> tuple[str, ...]:
        """Every secret value of the lane, to be masked in whatever is shown."""
        values = (*self.settings.values(), *self.env.values())
        return tuple(str(v.value) for v in values if v.secret and v.value)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a checkpoint: POSIX path relative to its root, bytes, and its sha256 (LFS) or git blob id (small files)."""

    path: str
    size: int
    sha256: str = ""
    blob: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one checkpoint at a 40-hex commit, sorted by path, and its parsed ``config.json``; None where that is not known."""

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]
    config: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file that the lane puts on a node. ``path`` is absolute there (may start with ``<discovered: home>``)."""

    node: str
    name: str
    path: str
    content: str
    mode: int = 0o644
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    """A rank's service as it shall run: ``words`` are the whole ``docker run`` with labels, ``hash`` the wanted state.

    A container that a kit's own scripts start has no ``words``.
    """

    node: str
    rank: int
    service: str
    name: str
    image: str
    words: tuple[str, ...]
    hash: str
    folders: tuple[str, ...] = ()
