"""The shape of ``recipes/<name>/recipe.yml``: frozen pydantic models, which are also its reference.

A string marked ``Template`` may hold Jinja expressions in ``{{ }}``; they are rendered per rank (see ``render.py``).
Sizes are bytes, times are seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sparkyard.recipe_base import Bytes, GitSpec, Name, Part, Seconds, Source, Template, Who
from sparkyard.recipe_container import (
    AgreeSpec,
    ContainerSpec,
    GateSpec,
    HostSpec,
    JobSpec,
    LogCheck,
    MountSpec,
    OutputSpec,
    RoomSpec,
    SaysSpec,
    ServiceSpec,
)
from sparkyard.recipe_image import BuildSpec, ImageSpec, MadeSpec, PullSpec
from sparkyard.recipe_patch import EditSpec, PatchSpec, PythonEdit
from sparkyard.recipe_published import DifferenceSpec, ProfileSpec, PublishedSpec

__all__ = [
    "AgreeSpec", "BuildSpec", "CheckSpec", "CheckpointSpec", "ContainerSpec", "DifferenceSpec", "EditSpec", "ExpectSpec", "ExpectedFigure",
    "FileSpec", "GateSpec", "GitSpec", "HostSpec", "ImageSpec", "JobSpec", "KeptSpec", "LimitsSpec", "LogCheck", "MadeSpec",
    "MountSpec", "NodesSpec", "OutputSpec", "Part", "PatchSpec", "ProfileSpec", "PublishedSpec", "PullSpec", "PythonEdit",
    "ReadySpec", "Recipe", "RoomSpec", "RuleSpec", "SaysSpec", "ScriptContainer", "ScriptsSpec", "ServiceSpec", "Setting",
    "Source", "StopSpec", "Template", "Who",
]  # fmt: skip


class Setting(Part):
    """One setting of a lane, changeable from the inventory (``lanes.X.<name>``), the environment and ``--set``.

    ``pattern`` is a regular expression that the whole text must match; ``looks_like`` says the same in words.
    A ``generated`` secret that nobody sets is made once, and kept in a 0600 file below the head's ``root``.
    """

    default: str | int | float | bool | None
    about: str
    source: Source
    choices: list[str | int] = []
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    looks_like: str = ""
    secret: bool = False
    generated: bool = False


class CheckpointSpec(Part):
    """Files of a Hugging Face repository. ``files`` are glob patterns; ``bytes`` is the sum, where it is known.

    ``when`` is a Jinja expression over the settings (``lane.weights == 'mia'``): the checkpoint belongs to the lane only if it holds.
    """

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: str
    source: Source
    files: list[str] = ["*"]
    nodes: Who = "all"
    bytes: Bytes | None = None
    when: str = ""


class ScriptContainer(Part):
    """A container that a kit's own scripts start: known by its exact name, on the chosen nodes."""

    name: str
    nodes: Who


class ScriptsSpec(Part):
    """A kit that is driven by its own scripts, from a clone on the head at a pinned commit.

    ``env_file`` names an entry of ``files`` that is written into the clone as ``env_path``; ``start`` and ``stop`` are run there.
    """

    git: GitSpec
    env_file: str
    start: list[Template]
    stop: list[Template]
    containers: list[ScriptContainer]
    env_path: str = ".env"
    exceptions: list[str] = []


class FileSpec(Part):
    """A file rendered for each node: from ``template``, or from ``values`` in the dialect of its one reader."""

    path: Template
    nodes: Who = "all"
    template: str | None = None
    values: dict[str, Template] = {}
    dialect: Literal["plain", "docker-env", "shell"] = "plain"
    secret: bool = False

    @model_validator(mode="after")
    def _one_content(self) -> FileSpec:
        if (self.template is None) == (not self.values):
            raise ValueError("exactly one of `template` and `values` is needed")
        if self.values and self.dialect == "plain":
            raise ValueError("`values` needs the dialect docker-env or shell")
        return self


class ReadySpec(Part):
    """When the lane serves: ``health`` answers 200 and a real generation of ``model`` answers with a token."""

    url: Template
    model: Template
    timeout: Seconds
    log_silence: Seconds
    health: str = "/health"
    api_key: Template = ""
    body: dict[str, Any] = {}


class ExpectSpec(Part):
    """One thing that must hold of a reply. ``path`` is dotted with list indexes and ``*``; ``json`` parses the text there first."""

    path: str = ""
    json_text: bool = False
    equals: Any = None
    contains: Template | None = None
    matches: str | None = None
    at_least: float | None = None
    valid_for: dict[str, Any] | None = None
    present: bool | None = None
    distinct_at_most: int | None = None
    distinct_at_least: int | None = None


class CheckSpec(Part):
    """One check of ``verify``: a request (``at_once`` copies at the same time, ``repeats`` one after the other) and what its replies must be."""

    name: str
    path: str
    expect: list[ExpectSpec]
    method: Literal["GET", "POST"] = "POST"
    body: dict[str, Any] = {}
    stream: bool = False
    at_once: Annotated[int, Field(ge=1, le=64)] = 1
    repeats: Annotated[int, Field(ge=1, le=64)] = 1
    timeout: Seconds = 60.0
    not_supported: str = ""
    when: str = ""


class StopSpec(Part):
    """``grace`` is what a container gets between TERM and KILL; all nodes at once unless an order is given."""

    grace: Seconds
    order: Literal["together", "head-first", "workers-first"] = "together"


class LimitsSpec(Part):
    """What each node must have: free memory for a start, and free disk beyond checkpoints and image.

    Below ``guard`` bytes of available memory, what is being started, run as a job or built on that node is killed; 0 for no guard.
    """

    memory: Bytes = 0
    disk: Bytes = 0
    guard: Bytes = 0


class KeptSpec(Part):
    """A folder on every node that services fill and that outlives them. ``bytes`` is what it grows to, a number or a template
    over the settings; ``lost_with`` names the settings whose change makes the engine begin a new one."""

    path: Template
    bytes: Template
    about: str
    source: Source
    lost_with: list[Name] = []


class RuleSpec(Part):
    """A relation between values that must hold: a Jinja expression, rendered for every rank.

    ``at`` is ``start`` where only a start depends on it: a value, for instance, that a job of ``build`` brings forth.
    """

    must: str
    message: Template
    source: str
    at: Literal["always", "start"] = "always"


class ExpectedFigure(Part):
    """A published figure with its conditions; quoted, never asserted."""

    what: str
    value: str
    conditions: str
    source: str


class NodesSpec(Part):
    """How many ranks the lane has."""

    at_least: Annotated[int, Field(ge=1)]
    at_most: Annotated[int, Field(ge=1)]


class Recipe(Part):
    """A lane: one way to serve.

    ``sources`` says where values come from that have no ``source`` of their own: dotted key, or a pattern of keys
    (``services.rank.options.*``) → Source. ``stages`` are services and jobs of ``start`` in order; without it all services are one stage.
    """

    lane: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    title: str
    nodes: NodesSpec
    settings: dict[Name, Setting]
    image: ImageSpec
    ready: ReadySpec
    stop: StopSpec
    services: dict[Name, ServiceSpec] = {}
    jobs: dict[Name, JobSpec] = {}
    agree: list[AgreeSpec] = []
    stages: list[Name] = []
    host: list[HostSpec] = []
    profiles: dict[Name, ProfileSpec] = {}
    published: list[PublishedSpec] = []
    scripts: ScriptsSpec | None = None
    gpu: bool = True
    rdma: bool = True
    checkpoints: dict[Name, CheckpointSpec] = {}
    files: dict[Name, FileSpec] = {}
    patches: dict[Name, PatchSpec] = {}
    sources: dict[str, Source] = {}
    env: dict[str, Template] = {}
    order: Literal["workers-first", "head-first", "together"] | list[list[int]] = "workers-first"
    ports: dict[str, Template] = {}
    verify: list[CheckSpec] = []
    limits: LimitsSpec = LimitsSpec()
    kept: dict[Name, KeptSpec] = {}
    rules: list[RuleSpec] = []
    expect: list[ExpectedFigure] = []
