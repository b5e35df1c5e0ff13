"""What is known of a lab: its file, and what is seen of it now."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from sparkyard.lab.files import replace
from sparkyard.lab.images import engine_client, tags
from sparkyard.lab.node import anchor, docker_answers, listens
from sparkyard.lab.places import HUB_URL, NodePlace, Place


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node as seen now. ``pid`` is 0 when it is down; ``engine`` is Docker's version, empty when it does not answer."""

    name: str
    pid: int
    management: str
    fabric: str
    docker: str
    ssh: bool
    engine: str = ""
    containers: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether both of its services answer."""
        return bool(self.pid and self.ssh and self.engine)


@dataclass(frozen=True, slots=True)
class LabState:
    """A lab as seen now."""

    folder: str
    id: str
    nodes: tuple[NodeState, ...]
    hub: str
    hub_ready: bool
    inventory: str
    base_image: str
    busybox_image: str

    @property
    def ready(self) -> bool:
        """Whether everything answers."""
        return self.hub_ready and all(node.ready for node in self.nodes)

    def node(self, name: str) -> NodeState:
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)


def see_node(node: NodePlace) -> NodeState:
    """Ask the node's namespaces and its engine."""
    alive = docker_answers(node)
    found = _ask_engine(node) if alive else {}
    return NodeState(
        name=node.name,
        pid=anchor(node) or 0,
        management=node.management,
        fabric=node.fabric,
        docker=f"unix://{node.socket}",
        ssh=listens(node, 22),
        **found,
    )


def _ask_engine(node: NodePlace) -> dict[str, Any]:
    client = engine_client(node)
    try:
        # The lists alone: the client's own objects ask for each one again, and one may be gone by then.
        found = client.api.containers(all=True)
        containers = tuple(
            f"{(each['Names'] or [each['Id']])[0].lstrip('/')} {each['State']}" for each in found
        )
        return {"engine": str(client.version()["Version"]), "containers": containers, "images": tags(client)}
    finally:
        client.close()


def see(place: Place, hub_ready: bool) -> LabState | None:
    """The lab as it is now, or None where none was made."""
    saved = load(place)
    if saved is None:
        return None
    return LabState(
        folder=str(place.folder),
        id=place.id,
        nodes=tuple(see_node(node) for node in place.nodes(saved["count"])),
        hub=HUB_URL,
        hub_ready=hub_ready,
        inventory=str(place.inventory),
        base_image=saved["base_image"],
        busybox_image=saved["busybox_image"],
    )


def load(place: Place) -> dict[str, Any] | None:
    """What the last `up` meant to make."""
    try:
        saved: dict[str, Any] = json.loads(place.state_file.read_text())
    except (OSError, ValueError):
        return None
    return saved


def save(place: Place, **values: Any) -> None:
    """Written whole or not at all."""
    replace(place.state_file, json.dumps(values, indent=2) + "\n")


def as_json(state: LabState) -> dict[str, Any]:
    """For `lab.status --json`."""
    return {**asdict(state), "ready": state.ready}
