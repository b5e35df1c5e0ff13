"""Actions as data: what the engine can do. Each kind has one executor, in ``executors/``.

Paths are absolute on the node, with no ``<discovered: …>`` mark left in them: judges fill them from the answers.
Sizes are bytes, times are seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from sparkyard.actions_image import BuildImage, GitFetch, GitTree, MakeContext, MakeImage, ShipImage
from sparkyard.actions_job import RemoveFiles, RunJob
from sparkyard.actions_log import CheckLog
from sparkyard.command import Command, discovered
from sparkyard.model import Manifest, RemoteFile
from sparkyard.reporting.amounts import gigabytes


def amount(files: Collection[RemoteFile]) -> str:
    """How many files and how many bytes, in words."""
    return f"{len(files)} file{'' if len(files) == 1 else 's'}, {sum(file.size for file in files)} bytes,"


@dataclass(frozen=True, slots=True)
class Run:
    """Run words on the node. ``title`` is what people read while it runs; output is streamed when ``stream``."""

    title: str
    command: Command
    stream: bool = False

    def shown(self) -> str:
        return self.command.shown()


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a file atomically (0600 from the first byte when secret), making its folder."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o644

    def shown(self) -> str:
        return f"write {self.path} ({len(self.content)} bytes, mode {self.mode:04o})"


@dataclass(frozen=True, slots=True)
class Fetch:
    """Download files of a checkpoint into ``folder`` on the head; each is verified before it gets its name.

    ``way``: by the hub client, by own ranged HTTP, or as fits the endpoint. ``ledger`` gets a line for each verified file.
    """

    manifest: Manifest
    folder: str
    files: tuple[RemoteFile, ...]
    endpoint: str | None = None
    ledger: str = ""
    way: Literal["auto", "client", "http"] = "auto"

    def shown(self) -> str:
        what = f"download {amount(self.files)} of {self.manifest.repo}@{self.manifest.commit}"
        return f"{what} to {self.folder}"


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Copy files from the head's ``source`` folder to ``target`` on the node, by rsync over the link address.

    ``source`` alone may start with ``<discovered: home>``: it is the head's home, which the node's answers do not tell.
    """

    source: str
    target: str
    files: tuple[RemoteFile, ...]
    address: str

    def shown(self) -> str:
        source = self.source.replace(discovered("home"), "~")
        return f"rsync {amount(self.files)} from {source} to {self.address}:{self.target}"


@dataclass(frozen=True, slots=True)
class Offer:
    """A file at ``origin`` that somebody already has and that may be ``file``."""

    file: RemoteFile
    origin: str


@dataclass(frozen=True, slots=True)
class Prove:
    """Read files on the node, compare their content with the manifest, keep the proofs in the node's ledger.

    Attributes:
        files: read in their places; one whose content differs is removed, to be fetched or copied again.
        ledger: the node's file of proofs for this checkpoint.
        arrived: read in ``.incoming``, then given their names.
        offered: read where they are, then hard-linked (copied from another filesystem); the originals are left alone.
        held: every file that must be proven before ``seal`` is written with ``seal_text``.
        patterns: of the recipe; a shard that an index names and that fits one of them must be among ``held``.
    """

    folder: str
    files: tuple[RemoteFile, ...]
    ledger: str
    arrived: tuple[RemoteFile, ...] = ()
    offered: tuple[Offer, ...] = ()
    held: tuple[RemoteFile, ...] = ()
    seal: str = ""
    seal_text: str = field(default="", repr=False)
    patterns: tuple[str, ...] = ()

    def shown(self) -> str:
        reading = (*self.files, *self.arrived, *(offer.file for offer in self.offered))
        if not reading:
            return f"write {self.seal}"
        where = self.folder if not self.offered else str(PurePosixPath(self.offered[0].origin).parent)
        return f"read {amount(reading)} in {where}, compare their content, write {self.seal}"


@dataclass(frozen=True, slots=True)
class StartContainer:
    """Run ``docker run --detach …`` on the node and watch it: log lines, exit, silence. Then wait for its gate.

    It is killed when less than ``guard`` bytes of memory are available there, until the lane is ready; 0 for never.
    """

    container: str
    command: Command
    gate_log: str = ""
    gate_port: tuple[str, int] | None = None
    gate_timeout: float = 0.0
    log_silence: float = 0.0
    guard: int = 0

    def shown(self) -> str:
        return self.command.shown()


@dataclass(frozen=True, slots=True)
class StopContainer:
    """Save the container's logs into the run record, stop it within ``grace`` seconds, remove it. Only with our label.

    One that a kit's own scripts started has no label: it is stopped only if it has exactly this ``image``.
    """

    container: str
    grace: float
    image: str = ""

    def shown(self) -> str:
        return f"docker stop -t {self.grace:.0f} {self.container} && docker rm {self.container}"


@dataclass(frozen=True, slots=True)
class StartScripts:
    """Run a kit's own start script on the head, its lines streamed, and watch ``containers`` (node, name) as they appear.

    It is ended when one of them ends or all are silent for longer than ``log_silence``.
    """

    command: Command
    containers: tuple[tuple[str, str], ...]
    log_silence: float

    def shown(self) -> str:
        return self.command.shown()


@dataclass(frozen=True, slots=True)
class StopScripts:
    """Run a kit's own stop script. Its failure is said and is no failure of the step: what is left is stopped one by one."""

    command: Command

    def shown(self) -> str:
        return self.command.shown()


@dataclass(frozen=True, slots=True)
class SaveLogs:
    """Save the whole log and the state of a container into the run record, and watch it no more."""

    container: str

    def shown(self) -> str:
        return f"docker logs --timestamps {self.container}"


@dataclass(frozen=True, slots=True)
class WaitMemory:
    """Wait until ``wanted`` bytes of memory are available on the node, for ``timeout`` seconds at most."""

    wanted: int
    timeout: float

    def shown(self) -> str:
        return f"wait until {gigabytes(self.wanted)} of memory are free, {self.timeout:g} s at most"


@dataclass(frozen=True, slots=True)
class WaitReady:
    """Wait until the API answers ``health`` and then a real generation with at least one token.

    ``containers`` are (node, container) of every rank: those that this run did not start are watched from here on. While nothing
    listens at the API, they are killed when less than ``guard`` bytes of memory are available on their node.
    """

    url: str
    health: str
    body: dict[str, Any]
    timeout: float
    log_silence: float
    api_key: str = field(default="", repr=False)
    containers: tuple[tuple[str, str], ...] = ()
    guard: int = 0

    def shown(self) -> str:
        return f"wait for {self.url}{self.health} and one generated token, {self.timeout:g} s at most"


@dataclass(frozen=True, slots=True)
class Request:
    """Send the request of one verify check and judge the reply. ``check`` is a rendered recipe.CheckSpec."""

    url: str
    check: Any
    api_key: str = field(default="", repr=False)

    def shown(self) -> str:
        return f"{self.check.method} {self.url}{self.check.path}"


Action = (
    Run
    | WriteFile
    | Fetch
    | CopyFiles
    | Prove
    | GitFetch
    | GitTree
    | MakeContext
    | BuildImage
    | MakeImage
    | ShipImage
    | StartContainer
    | StopContainer
    | StartScripts
    | StopScripts
    | SaveLogs
    | WaitMemory
    | WaitReady
    | Request
    | CheckLog
    | RemoveFiles
    | RunJob
)
