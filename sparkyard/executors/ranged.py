"""Own download: ranged HTTP over several connections, resumed in mid-file, also after a kill."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import httpx2

from sparkyard.errors import Interrupted, StepFailed
from sparkyard.executors.parts import Folder, Part
from sparkyard.hub import Hub
from sparkyard.hub_refusals import Refusal
from sparkyard.manifest import digest
from sparkyard.model import Manifest, RemoteFile
from sparkyard.patience import Patience, told_to_wait
from sparkyard.ranges import Range, pieces

CONNECTIONS = 4
LEAST_PIECE, MOST_PIECE = 16 << 20, 256 << 20
RATE_LIMIT = "rate limit"
RATE_LIMIT_TRIES = 20
"""How often a hub may make one piece wait before it is given up."""
TIMEOUT = httpx2.Timeout(connect=10, read=60, write=60, pool=None)


class Passing(Exception):
    """The server or the network failed in a way that may pass; ``status`` is the server's, 0 when there was no answer."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Job:
    """One piece of one file."""

    part: Part
    span: Range


@dataclass
class Download:
    """One download of files of a manifest.

    Attributes:
        hub: for addresses, headers and the meaning of refusals.
        progress: gets (bytes here, bytes in all), ten times a second at most.
        look: raises Interrupted when the run is cancelled.
    """

    hub: Hub
    manifest: Manifest
    folder: Folder
    say: Callable[[str], None]
    progress: Callable[[int, int], None]
    cancelled: threading.Event
    patience: Patience = field(default_factory=Patience)
    connections: int = CONNECTIONS
    _jobs: deque[Job] = field(default_factory=deque)
    _open: dict[int, int] = field(default_factory=dict)
    _streams: set[socket.socket] = field(default_factory=set)
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _failed: threading.Event = field(default_factory=threading.Event)
    _not_before: float = 0.0
    _here: int = 0
    _total: int = 0
    _told: float = 0.0

    def run(self, files: Sequence[RemoteFile]) -> None:
        """Fetch, verify and settle the files. Raises StepFailed, Interrupted, OSError; what has arrived is kept."""
        parts = [Part(self.folder, file) for file in files]
        self._total = sum(file.size for file in files)
        self._here = sum(part.there for part in parts)
        for part in parts:
            self._enqueue(part)
        limits = httpx2.Limits(max_connections=self.connections)
        try:
            with (
                httpx2.Client(
                    timeout=TIMEOUT, limits=limits, follow_redirects=True, headers=self.hub.headers()
                ) as client,
                ThreadPoolExecutor(self.connections) as pool,
            ):
                self._watch([pool.submit(self._work, client) for _ in range(self.connections)])
        finally:
            for part in parts:
                part.close()
        self.progress(self._total, self._total)

    def _enqueue(self, part: Part) -> None:
        """A file in pieces; one that is whole already is one empty piece, so that a worker proves it."""
        size = part.file.size // (2 * self.connections)
        spans = pieces(part.missing(), min(MOST_PIECE, max(LEAST_PIECE, size))) or ((0, 0),)
        with self._busy:
            self._open[id(part)] = len(spans)
            self._jobs.extend(Job(part, span) for span in spans)

    def _watch(self, workers: Collection[Future[None]]) -> None:
        """Wait for the workers; on a cancel or a failure, wake those that wait for bytes. Raises what the first to fail raised."""
        running = set(workers)
        while running:
            _, running = wait(running, timeout=0.1)
            if self.cancelled.is_set() or self._failed.is_set():
                self._failed.set()
                self._hang_up()
        errors = [error for worker in workers if (error := worker.exception())]
        if errors:
            raise next((error for error in errors if not isinstance(error, Interrupted)), errors[0])

    def _hang_up(self) -> None:
        with self._busy:
            for stream in self._streams:
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)

    def look(self) -> None:
        """Raises Interrupted when this download must end."""
        if self.cancelled.is_set() or self._failed.is_set():
            raise Interrupted("interrupted")

    def _work(self, client: httpx2.Client) -> None:
        try:
            while (job := self._next()) is not None:
                self._fetch(client, job)
                self._settle(job.part)
        except BaseException:
            self._failed.set()
            raise

    def _next(self) -> Job | None:
        self.look()
        with self._busy:
            return self._jobs.popleft() if self._jobs else None

    def _settle(self, part: Part) -> None:
        """After a file's last piece: prove it; fetch it once more when its content is wrong."""
        with self._busy:
            self._open[id(part)] -= 1
            if self._open[id(part)]:
                return
        seen = part.finish(self.look)
        if seen in (part.file.sha256, part.file.blob):
            return
        words = f"{part.file.path}: content differs: expected {digest(part.file)}, got {seen}"
        if part.tries == 2:
            raise StepFailed(
                f"{words}, twice",
                next_step=f"type the same line again later, or set another `hub_endpoint` than {self.hub.endpoint}",
            )
        self.say(f"{words}; thrown away, fetched once more")
        part.tries += 1
        self._count(-part.file.size)
        self._enqueue(part)

    def _fetch(self, client: httpx2.Client, job: Job) -> None:
        """Fetch one piece, from where it is, until it is whole."""
        at, end = job.span
        failures = 0
        while at < end:
            self._wait_turn()
            before, why, status = at, "the answer ended too soon", 0
            try:
                for data in self._body(client, job.part.file, at, end):
                    job.part.write(at, data)
                    at += len(data)
                    self._count(len(data))
            except (Passing, httpx2.TransportError) as error:
                self.look()
                why, status = str(error) or type(error).__name__, getattr(error, "status", 0)
            failures = 1 if at > before else failures + 1
            if at < end:
                self._again(failures, job.part.file, why, status)

    def _again(self, failures: int, file: RemoteFile, why: str, status: int) -> None:
        if why == RATE_LIMIT and failures < RATE_LIMIT_TRIES:
            return
        if failures >= self.patience.tries:
            refusal = Refusal(self.manifest.repo, self.manifest.commit, self.hub.endpoint, token=False)
            raise refusal.by_status(status, None) if status else refusal.no_network(f"{file.path}: {why}")
        pause = self.patience.pause(failures)
        self.say(f"{file.path}: {why}; goes on in {pause:g} s from where it is")
        self._sleep(pause)

    def _body(self, client: httpx2.Client, file: RemoteFile, at: int, end: int) -> Iterator[bytes]:
        """The bytes of one range as they come."""
        url = self.hub.url(self.manifest, file)
        with client.stream("GET", url, headers={"Range": f"bytes={at}-{end - 1}"}) as response:
            skip = self._skip(response, file, at)
            with self._hanging(response):
                left = end - at
                for data in response.iter_raw():
                    self.look()
                    useful = data[skip:][:left]
                    skip -= min(skip, len(data))
                    left -= len(useful)
                    if useful:
                        yield useful
                    if not left:
                        return

    def _skip(self, response: httpx2.Response, file: RemoteFile, at: int) -> int:
        """How many bytes of the answer come before those that were asked for. Raises for an answer that is not the file."""
        status = response.status_code
        if status == 429:
            self._hold(told_to_wait(response.headers))
            raise Passing(RATE_LIMIT, status)
        if status >= 500:
            raise Passing(f"the hub answered {status}", status)
        span = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", response.headers.get("Content-Range", ""))
        total = int(span.group(2)) if span else int(response.headers.get("Content-Length", file.size))
        if status in (200, 206, 416) and total != file.size:
            raise StepFailed(
                f"{file.path}: the hub sends {total} bytes, its listing says {file.size}",
                next_step=f"look at {self.hub.endpoint}/{self.manifest.repo}/tree/{self.manifest.commit}",
            )
        if status == 200 or (status == 206 and span and span.group(1) == str(at)):
            return at if status == 200 else 0
        response.read()
        raise self.hub.refusal(response, self.manifest)

    @contextlib.contextmanager
    def _hanging(self, response: httpx2.Response) -> Iterator[None]:
        """While it is read, the connection can be ended from outside."""
        stream = response.extensions.get("network_stream")
        handle = stream.get_extra_info("socket") if stream else None
        with self._busy:
            self._streams |= {handle} if handle else set()
        try:
            yield
        finally:
            with self._busy:
                self._streams.discard(handle)

    def _hold(self, told: float | None) -> None:
        """All connections wait as long as the hub asks for."""
        seconds = self.patience.pause(5) if told is None else told
        if seconds > self.patience.longest:
            raise Refusal(self.manifest.repo, "", self.hub.endpoint, token=True).by_status(429, seconds)
        with self._busy:
            until = time.monotonic() + seconds
            if until <= self._not_before + 0.5:
                return
            self._not_before = until
        self.say(f"{self.hub.endpoint} limits the rate (429): waiting {seconds:g} s as it asks")

    def _wait_turn(self) -> None:
        while (left := self._not_before - time.monotonic()) > 0:
            self._sleep(min(left, 0.5))

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.cancelled.wait(min(left, 0.5))
            self.look()

    def _count(self, amount: int) -> None:
        with self._busy:
            self._here += amount
            if (now := time.monotonic()) < self._told + 0.1:
                return
            self._told = now
        self.progress(self._here, self._total)


def still_to_come(files: Sequence[RemoteFile], folder: Folder) -> int:
    """Bytes of the files that have not arrived."""
    missing = [file for file in files if not (folder.path / file.path).is_file()]
    return sum(file.size - Part(folder, file).there for file in missing)
