"""The words of ``docker build``, ``docker pull`` and ``docker run``, and the hash of a wanted container. Pure."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkyard.model import Container, RenderedFile

BUILD_LABEL = "sparkyard.build"
LABELS = ("lane", "rank", "node", "nodes", "service", "hash", "discovered")
"""Names behind ``sparkyard.`` in the labels of a container; that of a job has ``job`` in place of ``service``."""

OURS = (
    "detach",
    "name",
    "restart",
    "rm",
    "label",
    "label-file",
    "env",
    "env-file",
    "mount",
    "volume",
    "pull",
    "cidfile",
)
"""Options of ``docker run`` that sparkyard sets itself, or that would break what it relies on."""
SHORT = ("-d", "-e", "-l", "-v")
MARK = re.compile(r"<discovered: ([^>]+)>")


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount, rendered. ``create`` makes the folder on the node."""

    source: str
    target: str
    read_only: bool
    create: bool

    def word(self) -> str:
        return f"type=bind,source={self.source},target={self.target}" + (
            ",readonly" if self.read_only else ""
        )


@dataclass(frozen=True, slots=True)
class Service:
    """A rank's container, rendered: the parts of its ``docker run``. Of a ``job`` it runs once, else it serves."""

    lane: str
    name: str
    node: str
    nodes: tuple[str, ...]
    rank: int
    image: str
    image_mark: str
    options: tuple[str, ...]
    env: Mapping[str, str]
    env_files: tuple[RenderedFile, ...]
    mounts: tuple[Mount, ...]
    words: tuple[str, ...]
    job: bool = False

    @property
    def container(self) -> str:
        return f"sparkyard-{self.lane}-{'job-' if self.job else ''}{self.name}-{self.rank}"


def container(service: Service, files: Sequence[RenderedFile]) -> Container:
    """The container of a service. ``files`` are all rendered files of its node; those that it mounts count in its hash."""
    return finished(service, files, digest(wanted_state(service, files)))


def digest(wanted: object) -> str:
    """The hash of a wanted state (64 hex digits)."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def finished(service: Service, files: Sequence[RenderedFile], wanted: str) -> Container:
    """The container with its labels; ``wanted`` is the hash of everything that it is made of."""
    return Container(
        node=service.node,
        rank=service.rank,
        service=service.name,
        name=service.container,
        image=service.image,
        words=_run(service, _labels(service, files, wanted)),
        hash=wanted,
        folders=tuple(mount.source for mount in service.mounts if mount.create),
    )


def _run(service: Service, labels: Mapping[str, str]) -> tuple[str, ...]:
    return (
        *("docker", "run", "--detach", "--pull", "never", "--restart", "no", "--name", service.container),
        *(word for name, value in labels.items() for word in ("--label", f"sparkyard.{name}={value}")),
        *service.options,
        *(word for name, value in service.env.items() for word in ("--env", f"{name}={value}")),
        *(word for file in service.env_files for word in ("--env-file", file.path)),
        *(word for mount in service.mounts for word in ("--mount", mount.word())),
        service.image,
        *service.words,
    )


def _labels(service: Service, files: Sequence[RenderedFile], wanted: str) -> dict[str, str]:
    marks = {name: f"<discovered: {name}>" for name in used(service, files)}
    nodes = ",".join(service.nodes)
    values = (service.lane, str(service.rank), service.node, nodes, service.name, wanted, json.dumps(marks))
    names = tuple("job" if name == "service" and service.job else name for name in LABELS)
    return dict(zip(names, values, strict=True))


def wanted_state(service: Service, files: Sequence[RenderedFile]) -> list[object]:
    """Everything that a change of must replace the container for. Marks are not filled: discovered values do not count."""
    contents = {file.path: hashlib.sha256(file.content.encode()).hexdigest() for file in read(service, files)}
    return [list(_run(service, {})), contents, service.image_mark]


def read(service: Service, files: Sequence[RenderedFile]) -> tuple[RenderedFile, ...]:
    """The rendered files that a container reads: its environment files, and what lies at or below a mounted path."""
    sources = [mount.source for mount in service.mounts]
    return tuple(
        file
        for file in files
        if file in service.env_files or any(file.path == s or file.path.startswith(f"{s}/") for s in sources)
    )


def used(service: Service, files: Sequence[RenderedFile]) -> tuple[str, ...]:
    """The discovered values that a container depends on, home apart."""
    texts = [*_run(service, {}), *(file.content for file in read(service, files))]
    return tuple(sorted({name for text in texts for name in MARK.findall(text)} - {"home"}))


def option_faults(options: Sequence[str]) -> Iterator[str]:
    """What a recipe must not put among the options of ``docker run``."""
    for word in options:
        name = word.removeprefix("--").split("=", 1)[0] if word.startswith("--") else ""
        if name in OURS or word[:2] in SHORT:
            yield f"{word.split('=', 1)[0]} is set by sparkyard itself: use env, env_files, mounts or the recipe's order"


def mount_faults(mount: Mount) -> Iterator[str]:
    """Why a mount cannot be: relative, in /tmp, or with a character that ``--mount`` cannot carry."""
    for what, path in (("source", mount.source), ("target", mount.target)):
        yield from path_faults(path, what)
        if any(character in path for character in ',"\n'):
            yield f"{what} {path!r} holds a comma, a quote or a line break, which --mount cannot carry"


def path_faults(path: str, what: str) -> Iterator[str]:
    """Why a path of a node cannot be: not absolute, with ``..``, or in /tmp, which a reboot empties."""
    rest = path.removeprefix("<discovered: home>")
    if not rest.startswith("/") and path != "<discovered: home>":
        yield f"{what} {path!r} is not absolute"
    if ".." in path.split("/"):
        yield f"{what} {path!r} holds `..`"
    if posixpath.normpath(path).split("/")[:2] == ["", "tmp"] and what != "target":
        yield f"{what} {path!r} is in /tmp, which does not survive a reboot"


def build(
    *, reference: str, mark: str, base: str, arguments: Mapping[str, str], dockerfile: str, context: str
) -> tuple[str, ...]:
    """The ``docker build``, in words that the classic builder and BuildKit both take."""
    return (
        *("docker", "build", "--tag", reference, "--label", f"{BUILD_LABEL}={mark}"),
        *("--build-arg", f"BASE={base}"),
        *(word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")),
        *("--file", dockerfile, context),
    )
