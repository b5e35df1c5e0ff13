"""Sends an image to workers: one ``docker save`` here, ``ssh … docker load`` for each worker, bytes counted in between.

Workers that look at the same image at the same time share one ``docker save``: reading and packing an image costs more than sending it.
Layers that all of them have are left out by one filter behind it (scripts/node/trim.py).
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
from dataclasses import dataclass
from typing import IO

from sparkyard.layer_words import trim_head

BLOCK = 1 << 20
"""Bytes moved at a time, and asked for as size of the pipes."""
LOOK = 0.1
"""Seconds between looks at the cancel signal, and between two reports of progress."""
GATHER = 5.0
"""Seconds that a worker waits at most for others that still compare."""
END = 2.0
"""Seconds between TERM and KILL."""


@dataclass(frozen=True, slots=True)
class Cargo:
    """What is sent: the words that write the archive, those that filter it, and the layers of the image, the lowest first."""

    save: tuple[str, ...]
    trim: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Child:
    """One process of the pipeline, in a session of its own, with the last lines that it said.

    Args:
        stdin: where it reads: PIPE for a sink that we write to, else a file or DEVNULL.
        stdout: where it writes: PIPE for a source that we read, or a file. A sink's is what it says.
        on_line: gets each line that it says.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        pipe, sink = subprocess.PIPE, stdin == subprocess.PIPE
        said = subprocess.STDOUT if sink else pipe
        self.words = words
        self.process = subprocess.Popen(
            words, stdin=stdin, stdout=stdout, stderr=said, start_new_session=True
        )
        self._on_line = on_line
        self._said: deque[str] = deque(maxlen=20)
        talk = self.process.stdout if sink else self.process.stderr
        assert talk is not None
        self._reader = threading.Thread(target=self._read, args=(talk,), daemon=True)
        self._reader.start()
        self._data = self.process.stdin if sink else self.process.stdout
        if self._data is not None:
            wide(self.data)

    @property
    def data(self) -> int:
        """Our side of what it reads or writes."""
        assert self._data is not None
        return self._data.fileno()

    def _read(self, talk: IO[bytes]) -> None:
        with talk:
            for line in talk:
                text = line.decode(errors="replace").rstrip()
                self._said.append(text)
                if self._on_line:
                    self._on_line(text)

    def finish(self) -> None:
        """Close our side of the data and wait for its end."""
        if self._data is not None:
            with contextlib.suppress(OSError):
                self._data.close()
        self.process.wait()
        self._reader.join(END)

    def end_soon(self) -> None:
        """Wait a little for its own end, which tells why; then kill it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END)
        self.kill()

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


def wide(pipe: int) -> None:
    """Let a pipe hold a whole block."""
    with contextlib.suppress(OSError):  # more than the limit for a person without privileges
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BLOCK)


class Parcel:
    """One worker's part of a shipment. ``status`` and ``said`` of its processes hold once ``done`` is set.

    ``held`` is how many of the image's first layers the worker has; ``sent`` and ``left_out`` are bytes, ``layers_left_out`` layers;
    ``whole`` says that nothing is to be left out, ``unbegun`` why a program could not be started at all.
    """

    def __init__(self, words: tuple[str, ...], on_bytes: Callable[[int], None], held: int = 0) -> None:
        self.words = words
        self.on_bytes = on_bytes
        self.held = held
        self.sent = 0
        self.left_out = 0
        self.layers_left_out = 0
        self.done = threading.Event()
        self.cancelled = False
        self.whole = True
        self.unbegun = ""
        self.save: Child | None = None
        self.trim: Child | None = None
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

    def send(self, parcel: Parcel, cargo: Cargo, cancelled: threading.Event) -> None:
        """Return when the parcel has arrived, failed or was cancelled."""
        self._end_look(parcel)
        if taken := self._gathering.take(parcel):
            ship(taken, cargo, cancelled)
        parcel.done.wait()


def ship(parcels: list[Parcel], cargo: Cargo, cancelled: threading.Event) -> None:
    """Send one ``docker save`` to all parcels. Nothing is left running, whatever happens."""
    children: list[Child] = []
    stopped = True
    try:
        sources = _sources(parcels, cargo, children)
        for parcel in parcels:
            parcel.load = Child(parcel.words, stdin=subprocess.PIPE)
            children.append(parcel.load)
        pump = threading.Thread(target=_pump, args=(sources, parcels), daemon=True)
        pump.start()
        while pump.is_alive() and not cancelled.is_set():
            pump.join(LOOK)
        stopped = pump.is_alive()
        for child in children:
            child.kill()
        pump.join()  # it reads and writes pipes whose other ends are gone now
    except OSError as error:  # a program that is missing or may not be run
        stopped = False
        for parcel in parcels:
            parcel.unbegun = str(error)
    finally:
        for child in children:
            child.kill()
            child.finish()
        for parcel in parcels:
            parcel.cancelled = stopped
            parcel.done.set()


def _sources(parcels: list[Parcel], cargo: Cargo, children: list[Child]) -> tuple[Child, ...]:
    """Start what writes the archive, and the filter behind it when all parcels' workers have layers of it.

    Of a chain only its first layers count, so the worker that has the fewest lacks all that any other lacks: one filter serves them all.
    """
    held = min(parcel.held for parcel in parcels)
    for parcel in parcels:
        parcel.whole = not held
    if held:
        sources = _trimmed(parcels, cargo, held, children)
    else:
        sources = (Child(cargo.save),)
        children.append(sources[0])
    for parcel in parcels:
        parcel.save, parcel.trim = sources[0], sources[-1] if held else None
    return sources


def _trimmed(parcels: list[Parcel], cargo: Cargo, held: int, children: list[Child]) -> tuple[Child, ...]:
    def on_line(line: str) -> None:
        if line.startswith("left-out\t"):
            for parcel in parcels:
                parcel.left_out += int(line.split("\t")[1])
                parcel.layers_left_out += 1

    out, into = os.pipe()
    try:
        wide(into)
        trim = Child(cargo.trim, stdin=out, on_line=on_line)
        children.append(
            trim
        )  # it reads before it is written to: a busy person's pipes may hold one page only
        os.close(out)
        out = -1
        with contextlib.suppress(BrokenPipeError):  # it fell over: its status says so
            _give(into, trim_head(cargo.layers, held))
        save = Child(cargo.save, stdout=into)
        children.append(save)
    finally:
        if out >= 0:
            os.close(out)
        os.close(into)
    return save, trim


def _give(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _pump(sources: tuple[Child, ...], parcels: list[Parcel]) -> None:
    alive, told = list(parcels), 0.0
    while alive and (block := os.read(sources[-1].data, BLOCK)):
        alive = [parcel for parcel in alive if parcel.add(block)]
        if time.monotonic() - told >= LOOK:
            told = time.monotonic()
            for parcel in alive:
                parcel.on_bytes(parcel.sent)
    if not alive:
        for source in sources:
            source.kill()
    for parcel in parcels:
        assert parcel.load is not None
        parcel.load.finish()
    sources[-1].finish()
    if sources[-1].status != 0:  # a filter that fell over; what feeds it may not have begun to write
        sources[0].end_soon()
    sources[0].finish()
