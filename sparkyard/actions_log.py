"""Reading the log of a container that serves, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is rendered names plans, which name actions
    from sparkyard.rendered import RenderedLog


@dataclass(frozen=True, slots=True)
class CheckLog:
    """Read the whole log of a container and judge it by ``checks``. Changes nothing."""

    container: str
    checks: tuple[RenderedLog, ...]

    def shown(self) -> str:
        return f"docker logs {self.container}, for {len(self.checks)} expected lines"
