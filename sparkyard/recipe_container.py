"""The shape of what a recipe runs in containers: services, which serve, and jobs, which run once and leave files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sparkyard.recipe_base import Bytes, Name, Part, Seconds, Source, Template, Who


class MountSpec(Part):
    """A bind mount. ``source`` is absolute on the node and never in /tmp; ``create`` makes the folder.

    ``when`` is a Jinja expression over the settings; without it the mount is always there. A ``source`` that is empty because of a
    ``{% if %}`` leaves the mount out on that rank.
    """

    source: Template
    target: Template
    read_only: bool = True
    create: bool = False
    when: str = ""


class GateSpec(Part):
    """What must be seen of a rank before the next ranks start: a log line or an open TCP port on the node's loopback or link."""

    timeout: Seconds
    log: str | None = None
    port: Template | None = None

    @model_validator(mode="after")
    def _one_sign(self) -> GateSpec:
        if (self.log is None) == (self.port is None):
            raise ValueError("exactly one of `log` and `port` is needed")
        return self


class ContainerSpec(Part):
    """A container of each chosen rank; the engine is its main process.

    ``options`` are words of ``docker run`` before the image, ``words`` follow it. ``env_files`` name entries of ``files``.
    ``argv_secrets`` name the secret settings that the program takes only among its own words: people are told.
    """

    nodes: Who
    options: list[Template] = []
    env: dict[str, Template] = {}
    env_files: list[str] = []
    mounts: list[MountSpec] = []
    words: list[Template] = []
    argv_secrets: list[Name] = []
    gate: GateSpec | None = None


class LogCheck(Part):
    """One thing that the log of a rank must say once it serves: a line that matches ``pattern``.

    ``must`` is a Jinja expression over ``found`` (the pattern's named groups, numbers where they are numbers) and everything that
    templates may name; ``message`` is what is said when it does not hold. A check that fails is reported by ``start`` and
    ``verify`` with exit status 3: the lane serves, but not as its settings say.
    """

    what: str
    pattern: str
    source: str
    nodes: Who = "all"
    must: str = ""
    message: Template = ""
    when: str = ""


class ServiceSpec(ContainerSpec):
    """A rank's container that serves until it is stopped.

    ``differ`` names the words (by flag) and variables that may differ between ranks; where it is given, all others must be equal.
    """

    differ: list[str] | None = None
    log: list[LogCheck] = []


class AgreeSpec(Part):
    """Variables, and words by their flag, that must have one value wherever they stand: in every service, on every rank."""

    what: str
    names: Annotated[list[str], Field(min_length=1)]
    source: str


class OutputSpec(Part):
    """A file that a job leaves on each of its nodes: absolute, of exactly ``bytes`` or of ``at_least`` so many (numbers or templates).

    With ``sidecar``, a JSON file beside it says what it was made of (commits, hashes of patched texts, image, argv of every rank).
    ``linked``: its engine makes and removes hard links to it, which changes its ctime: that alone is no change of the file then.
    """

    path: Template
    bytes: Template | None = None
    at_least: Template | None = None
    nodes: Who | None = None
    sidecar: bool = False
    linked: bool = False


class RoomSpec(Part):
    """Free bytes that a job needs on the filesystem of ``path`` before it begins; what it has made already is taken off."""

    path: Template
    bytes: Template
    nodes: Who | None = None


class SaysSpec(Part):
    """A line that the log of a job must have on each of its ranks (or of ``nodes``), and what that means; all that is missing is told at once."""

    what: str
    pattern: str
    nodes: Who | None = None


class BringsSpec(Part):
    """A value of the lane that only the job brings forth and that a person must write into the inventory: which ``setting``, and where it
    is found: among the files of ``folder`` on the head, or in lines of the log of the job's first rank that match ``log``."""

    setting: Name
    folder: Template
    log: str


class JobSpec(ContainerSpec):
    """A container of each chosen rank that runs once, ends with status 0 and leaves files; sealed when all ranks have.

    It runs in ``build`` after the image is there, or in ``start`` at its place in ``stages``. A sealed job runs again only when what
    it is made of has changed: its words, environment, mounts, image, or a text of ``bound_to``. Results that lie side by side are told
    apart by ``variant``: each is sealed by itself, so going back to one finds it done. What is of one start alone says ``fresh``: a seal
    older than that counts only while the lane's services run. After one that ``frees_memory`` the memory that a start needs is asked
    for again, and before it a lack of it stops nothing.
    """

    about: str
    source: Source
    timeout: Seconds
    at: Literal["build", "start"] = "build"
    when: str = ""
    order: Literal["together", "head-first", "workers-first"] = "together"
    needs: list[Name] = []
    makes: list[OutputSpec] = []
    bound_to: list[Template] = []
    variant: Template = ""
    says: list[SaysSpec] = []
    brings: list[BringsSpec] = []
    room: list[RoomSpec] = []
    memory: Bytes = 0
    gpu: bool = False
    grace: Seconds = 30.0
    log_silence: Annotated[float, Field(ge=0)] = 0.0
    fresh: Seconds | None = None
    frees_memory: bool = False

    @model_validator(mode="after")
    def _before_ranks(self) -> JobSpec:
        if self.frees_memory and self.at != "start":
            raise ValueError("`frees_memory` is for a job of a start (at: start)")
        return self


class HostSpec(Part):
    """Something of a node that sparkyard never changes: a file's text or sha256, a ``getconf`` value or a systemd unit's state, and what
    it must be.

    ``must`` is a Jinja expression over ``seen`` (the text, without the last line end; none when there is no such file, value or
    unit) and everything that templates may name. One that does not hold stops a start, or is only said when ``blocks`` is false.
    """

    what: str
    must: str
    why: str
    source: str
    next_step: Template = ""
    read: Template | None = None
    sha256: Template | None = None
    getconf: str | None = None
    unit: str | None = None
    blocks: bool = True
    when: str = ""
    nodes: Who = "all"

    @model_validator(mode="after")
    def _one_place(self) -> HostSpec:
        if sum(place is not None for place in (self.read, self.sha256, self.getconf, self.unit)) != 1:
            raise ValueError("exactly one of `read`, `sha256`, `getconf` and `unit` is needed")
        return self
