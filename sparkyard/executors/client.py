"""The hub client's own download (Xet where the hub offers it), in a process of its own that is watched and can be ended."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkyard.command import Command
from sparkyard.errors import Interrupted, StepFailed
from sparkyard.executors.parts import Folder
from sparkyard.model import Manifest, RemoteFile
from sparkyard.patience import EndSignal
from sparkyard.world import Shell

STALLED = 120.0
"""Seconds without a byte after which the client is taken for hung."""
PACKAGE = Path(__file__).resolve().parents[2]


@dataclass
class ClientDownload:
    """One download of files by the client into ``.incoming``, not yet proven.

    Attributes:
        progress: gets bytes that arrived in this run.
        stalled: seconds without a byte until it is ended and tried once more without Xet.
    """

    shell: Shell
    endpoint: str
    manifest: Manifest
    folder: Folder
    say: Callable[[str], None]
    progress: Callable[[int], None]
    cancelled: threading.Event
    stalled: float = STALLED
    _arrived: int = 0
    _last: float = 0.0
    _fault: dict[str, Any] | None = None
    _done: bool = False

    def run(self, files: Sequence[RemoteFile]) -> None:
        """Fetch the files. Raises StepFailed and Interrupted; files that are whole stay in ``.incoming``."""
        for env in ((), (("HF_HUB_DISABLE_XET", "1"),)):
            if self._once(files, env):
                return
            self.say(
                f"no byte came for {self.stalled:g} s: the client was ended and starts again without Xet"
            )
        raise StepFailed(
            f"no byte came for {self.stalled:g} s from {self.endpoint}, twice",
            next_step="look at this node's connection, then type the same line again",
        )

    def _once(self, files: Sequence[RemoteFile], env: tuple[tuple[str, str], ...]) -> bool:
        """Run the client once; False when it stalled."""
        self._last = time.monotonic()
        try:
            done = self.shell.run(
                self._command(files, env), on_line=self._hear, cancel=EndSignal(self._must_end)
            )
        except Interrupted:
            if self.cancelled.is_set():
                raise
            return False
        if self._fault:
            raise self._failure(self._fault)
        if done.status or not self._done:
            raise StepFailed(f"the hub client ended with status {done.status}", details=done.last_lines())
        return True

    def _command(self, files: Sequence[RemoteFile], env: tuple[tuple[str, str], ...]) -> Command:
        order = {
            "repo": self.manifest.repo,
            "commit": self.manifest.commit,
            "endpoint": self.endpoint,
            "folder": str(self.folder.incoming),
            "files": [file.path for file in files],
        }
        path = ("PYTHONPATH", str(PACKAGE))
        words = (sys.executable, "-m", "sparkyard.hub")
        return Command(words, env=(path, *env), stdin=json.dumps(order).encode())

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        self._last = time.monotonic()
        if "bytes" in told:
            self._arrived += told["bytes"]
            self.progress(self._arrived)
        elif "said" in told:
            self.say(told["said"])
            told_to_wait = re.search(r"Waiting (\d+(?:\.\d+)?)s", told["said"])
            self._last += float(told_to_wait.group(1)) if told_to_wait else 0.0
        elif "error" in told:
            self._fault = told
        self._done = self._done or "done" in told

    def _failure(self, told: dict[str, Any]) -> Exception:
        if told.get("errno"):
            return OSError(told["errno"], told["error"])
        return StepFailed(f"{told['path']}: {told['error']}", next_step=told["next"])

    def _must_end(self) -> bool:
        return self.cancelled.is_set() or time.monotonic() - self._last > self.stalled
