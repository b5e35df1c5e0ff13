"""Real faults for tests: cut cables, slow ones, small disks, changed host keys, dead nodes, a hub that misbehaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkyard.lab import control
from sparkyard.lab import node as nodes
from sparkyard.lab.hardware import set_available, set_hca_state
from sparkyard.lab.network import set_links, set_rate
from sparkyard.lab.places import HCAS, here
from sparkyard.lab.processes import cgroup_pids, end, send

DATA = "home/.local/share/sparkyard"


def shape(node: str, rate: str | None) -> None:
    """Limit the node's fabric both ways, in tc's words (``800mbit``); None lifts the limit."""
    set_rate(here().node(node), rate)


def cut_link(node: str) -> None:
    """Pull the node's fabric cable at the switch."""
    set_links(here().node(node), up=False)


def mend_link(node: str) -> None:
    """Plug it in again."""
    set_links(here().node(node), up=True)


def small_disk(node: str, size: int, folder: str = DATA) -> Path:
    """Mount a real filesystem of that many bytes over a folder of the node (relative to its own root); its path there."""
    place = here().node(node)
    path = place.lab.common / folder
    nodes.inside(place, "mkdir", "-p", str(path))
    nodes.inside(place, "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
    return path


def whole_disk(node: str, folder: str = DATA) -> None:
    """Take the small filesystem away; what was there before shows again."""
    place = here().node(node)
    nodes.inside(place, "umount", "--lazy", str(place.lab.common / folder))


def new_host_key(node: str) -> None:
    """Give the node's sshd another host key; nobody is told."""
    place = here().node(node)
    for name in ("hostkey", "hostkey.pub"):
        (place.folder / name).unlink(missing_ok=True)
    nodes.make_key(place.folder / "hostkey", place.name)
    nodes.restart_sshd(place)


def kill_node(node: str) -> None:
    """Power off: every process of the node is gone at once. `up` brings it back."""
    nodes.end_processes(here().node(node), grace=0)


def kill_container(node: str, name: str) -> None:
    """SIGKILL a container's processes behind its engine's back."""
    place = here().node(node)
    identity = nodes.inside(place, "docker", "inspect", "--format", "{{.Id}}", name).strip()
    cgroup = f"{place.lab.cgroup}/{place.name}/{identity}"
    end(lambda: cgroup_pids(cgroup), grace=0, what=name)


def kill_dockerd(node: str) -> None:
    """SIGKILL the node's engine; its containers go on."""
    import signal  # noqa: PLC0415

    place = here().node(node)
    pid = int(nodes.inside(place, "cat", "/run/docker.pid"))
    send({pid} & nodes.pids(place), signal.SIGKILL)


def low_memory(node: str, available: int) -> None:
    """Let the node have so many bytes of memory available."""
    set_available(here().node(node), available // 1024)


def whole_memory(node: str) -> None:
    """Give it back."""
    set_available(here().node(node), None)


def hca_down(node: str, hca: str = next(iter(HCAS))) -> None:
    """Let an HCA's port show DOWN."""
    set_hca_state(here().node(node), hca, "1: DOWN")


def hca_up(node: str, hca: str = next(iter(HCAS))) -> None:
    """ACTIVE again."""
    set_hca_state(here().node(node), hca, "4: ACTIVE")


def ssh_connections(node: str) -> int:
    """How many ssh logins the node has accepted since it was made."""
    return nodes.connections(here().node(node))


def hub_faults(**values: Any) -> dict[str, Any]:
    """Change how the hub misbehaves (names: ``hub_faults.FaultSettings``); without a value, all is right again."""
    answer: dict[str, Any] = control.ask(
        here(), "POST" if values else "DELETE", "/lab/faults", values or None
    )
    return answer


def hub_requests(*, forget: bool = False) -> list[dict[str, Any]]:
    """What the hub was asked; with ``forget`` the record starts anew."""
    answer: list[dict[str, Any]] = control.ask(here(), "DELETE" if forget else "GET", "/lab/requests")
    return answer
