"""What surrounds a line and its steps: shells, folders, secrets, cancel signals, and the events that a step sends."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkyard.command import mask
from sparkyard.events import Emit, Event
from sparkyard.model import Inventory, Node
from sparkyard.plan import Step
from sparkyard.world import Result, Shell

if TYPE_CHECKING:
    from sparkyard.executors.watch import Watches
    from sparkyard.known_hosts import Keys


@dataclass
class Surroundings:
    """What every step of a line shares.

    ``stop`` ends what runs now (interrupt, failure of the plan); ``interrupted`` says that a person asked for the end.
    """

    inventory: Inventory
    own_folder: Path
    run_folder: Path
    keys: Keys
    secrets: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    _shells: dict[str, Any] = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _watches: Any = None

    def shell(self, node: str) -> Shell:
        with self._opening:
            if node not in self._shells:
                self._shells[node] = self._open(self.inventory.node(node))
            shell: Shell = self._shells[node]
            return shell

    def _open(self, node: Node) -> Shell:
        from sparkyard.shell import LocalShell, RemoteShell  # noqa: PLC0415

        if node.local:
            return LocalShell(node, self.stop)
        return RemoteShell(node, self.keys, self.stop)

    @property
    def watches(self) -> Watches:
        from sparkyard.executors.watch import Watches  # noqa: PLC0415

        with self._opening:  # ranks start in parallel and must share one
            if self._watches is None:
                self._watches = Watches(self.run_folder / "logs")
            watches: Watches = self._watches
            return watches

    def begin_undo(self) -> None:
        """Let commands run again after a failure or a first interrupt; a second interrupt ends the process."""
        self.stop.clear()

    def close(self) -> None:
        if self._watches is not None:
            self._watches.close()
        for shell in self._shells.values():
            shell.close()


class StepWorld:
    """The ``World`` of one step that acts."""

    def __init__(self, around: Surroundings, step: Step, emit: Emit, results: dict[str, Any]) -> None:
        self._around = around
        self._step = step
        self._emit = emit
        self.results = results

    @property
    def inventory(self) -> Inventory:
        return self._around.inventory

    @property
    def cancelled(self) -> threading.Event:
        return self._around.stop

    @property
    def interrupted(self) -> threading.Event:
        return self._around.interrupted

    @property
    def run_folder(self) -> Path:
        return self._around.run_folder

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._around.secrets

    @property
    def own_folder(self) -> Path:
        return self._around.own_folder

    @property
    def watches(self) -> Watches:
        return self._around.watches

    def shell(self, node: str) -> Shell:
        return self._around.shell(node)

    def ssh_words(self, node: str) -> tuple[str, ...]:
        from sparkyard.ssh_words import ssh_words  # noqa: PLC0415

        merged = self._around.keys.write_merged(self._around.inventory.nodes)
        return ssh_words(self._around.inventory.node(node), merged)

    def tell(self, lines: Sequence[str], **facts: Mapping[str, int]) -> None:
        """Lines below the step once it has ended, and facts for machines beside them."""
        shown = [mask(line, self._around.secrets) for line in lines]
        self.results |= {**facts, "details": shown}

    def say(self, line: str) -> None:
        text = mask(line, self._around.secrets)
        self._output(text, {"line": text})

    def progress(
        self,
        done: int,
        total: int,
        label: str,
        unit: str = "bytes",
        *,
        node: str = "",
        rate: float = 0.0,
        at_most: bool = False,
    ) -> None:
        told: dict[str, Any] = {"done": done, "total": total, "label": label, "unit": unit}
        told |= {"rate": rate} if rate else {}
        told |= {"at_most": True} if at_most else {}
        self._output("", {"progress": told}, node)

    def verdict(
        self, asked: str, answered: str, result: Result, found: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """What a verify check asked, what came back, and pass, fail, not supported (published) or could not check."""
        told = {"asked": asked, "answered": answered, "result": result}
        self.results |= {name: mask(text, self._around.secrets) for name, text in told.items()}
        if found:
            self.results["found"] = [dict(part) for part in found]

    def _output(self, message: str, data: dict[str, Any], node: str = "") -> None:
        self._emit(Event("step-output", message, node or self._step.node, self._step.id, data))
