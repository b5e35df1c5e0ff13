"""What watching threads share with those who wait: a count of news, and the saved log of a container."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sparkyard.command import mask


class News:
    """A count that grows with everything that happens; waiting ends when it has grown."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._count = 0

    @property
    def lock(self) -> threading.Condition:
        """Held while what the news is about is changed or read."""
        return self._changed

    @property
    def count(self) -> int:
        with self._changed:
            return self._count

    def tell(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seconds: float, after: int) -> None:
        """Return when the count is more than ``after``, at the latest after ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > after, seconds)


class LogFile:
    """The saved log of one container, 0600: its lines as Docker gives them, with their times; secrets masked."""

    def __init__(self, folder: Path, node: str, container: str, secrets: tuple[str, ...] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{node}-{container}.log"
        opened = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(opened, "w", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._secrets = secrets

    def add(self, line: str) -> None:
        with self._lock:
            if not self._file.closed:
                self._file.write(mask(line, self._secrets) + "\n")

    def close(self) -> None:
        with self._lock:
            self._file.close()
