"""Sends an image to workers: one ``docker save`` here, ``ssh … docker load`` for each worker, bytes counted in between.

Workers that look at the same image at the same time share one ``docker save``: reading and packing an image costs more than sending it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO

BLOCK = 1 << 20
"""Bytes moved at a time, and asked for as size of the pipes."""
LOOK = 0.1
"""Seconds between looks at the cancel signal, and between two reports of progress."""
GATHER = 5.0
"""Seconds that a worker waits at most for others that still compare."""
END = 2.0
"""Seconds between TERM and KILL."""


class Child:
    """One process of the pipeline, in a session of its own, with the last lines that it said."""

    def __init__(self, words: tuple[str, ...], *, source: bool) -> None:
        self.words = words
        pipe, said = subprocess.PIPE, subprocess.STDOUT
        if source:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
            )
        else:
            self.process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=said, start_new_session=True
            )
        self._said: deque[str] = deque(maxlen=20)
        talk = self.process.stderr if source else self.process.stdout
        assert talk is not None
        self._reader = threading.Thread(target=self._read, args=(talk,), daemon=True)
        self._reader.start()
        data = self.process.stdout if source else self.process.stdin
        assert data is not None
        self._data = data
        self.data = data.fileno()
        with contextlib.suppress(OSError):  # more than the limit for a person without privileges
            fcntl.fcntl(self.data, fcntl.F_SETPIPE_SZ, BLOCK)

    def _read(self, talk: IO[bytes]) -> None:
        with talk:
            for line in talk:
                self._said.append(line.decode(errors="replace").rstrip())

    def finish(self) -> None:
        """Close our side of the data and wait for its end."""
        with contextlib.suppress(OSError):
            self._data.close()
        self.process.wait()
        self._reader.join(END)

    def kill(self) -> None:
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def status(self) -> int | None:
        return self.process.returncode

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(line for line in self._said if line)


class Parcel:
    """One worker's part of a shipment. ``status`` and ``said`` hold for both ends once ``done`` is set."""

    def __init__(self, words: tuple[str, ...], on_bytes: Callable[[int], None]) -> None:
        self.words = words
        self.on_bytes = on_bytes
        self.sent = 0
        self.done = threading.Event()
        self.cancelled = False
        self.save: Child | None = None
        self.load: Child | None = None

    def add(self, block: bytes) -> bool:
        """Send a block; False when the worker's end is gone."""
        assert self.load is not None
        view = memoryview(block)
        try:
            while view:
                view = view[os.write(self.load.data, view) :]
        except OSError:
            return False
        self.sent += len(block)
        return True


class Gathering:
    """The workers that look at one image now. When nobody looks any more, one of those that wait sends to them all."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.looking = 0
        self.waiting: list[Parcel] = []

    def take(self, parcel: Parcel) -> list[Parcel]:
        """All parcels that wait, once nobody looks any more; none when another worker's thread has taken this one."""
        with self.changed:
            self.changed.wait_for(lambda: self.looking == 0 or parcel not in self.waiting, GATHER)
            if parcel not in self.waiting:
                return []
            taken, self.waiting = self.waiting, []
            self.changed.notify_all()
            return taken


class Visit:
    """One worker's part in a gathering: it looks, and then leaves or sends. A context manager."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._looks = False

    def __enter__(self) -> Visit:
        with self._gathering.changed:
            self._looks = True
            self._gathering.looking += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._end_look()

    def _end_look(self, parcel: Parcel | None = None) -> None:
        """In one move, so that nobody sends between a worker's last look and its parcel."""
        with self._gathering.changed:
            self._gathering.looking -= self._looks
            self._looks = False
            if parcel:
                self._gathering.waiting.append(parcel)
            self._gathering.changed.notify_all()

    def send(self, parcel: Parcel, save_words: tuple[str, ...], cancelled: threading.Event) -> None:
        """Return when the parcel has arrived, failed or was cancelled."""
        self._end_look(parcel)
        if taken := self._gathering.take(parcel):
            ship(taken, save_words, cancelled)
        parcel.done.wait()


def ship(parcels: list[Parcel], save_words: tuple[str, ...], cancelled: threading.Event) -> None:
    """Send one ``docker save`` to all parcels. Nothing is left running, whatever happens."""
    children: list[Child] = []
    stopped = True
    try:
        save = Child(save_words, source=True)
        children.append(save)
        for parcel in parcels:
            parcel.save, parcel.load = save, Child(parcel.words, source=False)
            children.append(parcel.load)
        pump = threading.Thread(target=_pump, args=(save, parcels), daemon=True)
        pump.start()
        while pump.is_alive() and not cancelled.is_set():
            pump.join(LOOK)
        stopped = pump.is_alive()
        for child in children:
            child.kill()
        pump.join()  # it reads and writes pipes whose other ends are gone now
    finally:
        for child in children:
            child.kill()
            child.finish()
        for parcel in parcels:
            parcel.cancelled = stopped
            parcel.done.set()


def _pump(save: Child, parcels: list[Parcel]) -> None:
    alive, told = list(parcels), 0.0
    while alive and (block := os.read(save.data, BLOCK)):
        alive = [parcel for parcel in alive if parcel.add(block)]
        if time.monotonic() - told >= LOOK:
            told = time.monotonic()
            for parcel in alive:
                parcel.on_bytes(parcel.sent)
    if not alive:
        save.kill()
    for parcel in parcels:
        assert parcel.load is not None
        parcel.load.finish()
    save.finish()
