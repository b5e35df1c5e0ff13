"""The lab: simulated Sparks on one machine, with real sshd, real Docker engines, real networks and a local hub.

The folder is ``SPARKYARD_LAB`` (default /var/lib/sparkyard-lab), what is fetched once lies in ``SPARKYARD_LAB_CACHE`` (default
/var/cache/sparkyard-lab). Everything acts on the lab of the environment, needs root, and may be repeated.
"""

from __future__ import annotations

# ruff: noqa: PLC0415  (every line that is typed outside of a lab's head goes through here to enter it)
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sparkyard.lab.errors import LabError, require_root
from sparkyard.lab.places import MOST_NODES, current_node, here

if TYPE_CHECKING:
    from sparkyard.lab.state import LabState

__all__ = [
    "MOST_NODES", "LabError", "current_node", "down", "enter_words", "here", "prepare", "shell_words", "status", "up",
]  # fmt: skip


def up(nodes: int, report: Callable[[str], None], *, trust: bool = True, base: bool = True) -> LabState:
    """Bring a lab of that many nodes up; twice changes nothing, and what a killed run left half done is mended.

    Args:
        trust: write node 1's known_hosts; else every host key is unknown, as on new Sparks.
        base: fetch the model and make the engine's base image; tests that need neither save a minute.
    """
    from sparkyard.lab import building

    return building.up(here(), nodes, report, trust=trust, base=base)


def prepare(report: Callable[[str], None]) -> None:
    """Fill the cache only: base images and the model."""
    from sparkyard.lab import building

    building.prepare(here(), report, base=True)


def down(report: Callable[[str], None]) -> None:
    """End and delete the lab; only the cache stays."""
    from sparkyard.lab import building

    building.down(here(), report)


def status() -> LabState | None:
    """The lab as it is now; None if there is none."""
    from sparkyard.lab import control, state

    require_root("status")
    return state.see(here(), control.healthy(here()))


def enter_words(node: str, command: Sequence[str], cwd: str | None = None) -> tuple[str, ...]:
    """Words that run a command in a node's network, mount and host-name namespaces, with its home and PATH."""
    from sparkyard.lab.node import enter

    require_root("shell")
    return enter(here().node(node), command, cwd)


def shell_words(node: str) -> tuple[str, ...]:
    """Words that open a shell in a node, in its home."""
    return enter_words(node, ("bash",), cwd=str(here().common / "home"))
