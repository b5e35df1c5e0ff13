"""Builds the engine image on the head, and looks at what images are made of."""

from __future__ import annotations

import io
import json
import tarfile
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparkyard.actions_image import BuildImage
from sparkyard.build_log import failing_instruction
from sparkyard.command import Command, mask
from sparkyard.errors import StepFailed
from sparkyard.executors.memory import run_watched
from sparkyard.world import Shell, World

LAST_LINES = 15
CONTEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of a build context that goes by standard input; more belongs into a base image."""
FACTS = "{{json .RootFS.Layers}}\n{{json .Config.Labels}}\n{{.Size}}"


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What two images are compared by. The id is not: it differs between Docker's image stores for equal content."""

    layers: tuple[str, ...]
    labels: Mapping[str, str]
    size: int

    def same(self, other: ImageFacts | None) -> bool:
        return other is not None and self.layers == other.layers and self.labels == other.labels


def build_image(action: BuildImage, node: str, world: World) -> None:
    """Build with the words of the action; when they end in ``-`` the context goes in as a tar that has no times or owners.

    Raises StepFailed with the instruction that failed and the last lines.
    """
    command = action.command
    if command.words[-1] == "-":
        command = replace(command, stdin=context_tar(Path(action.context)))
    lines: deque[str] = deque(maxlen=200)

    def on_line(line: str) -> None:
        shown = mask(line.rstrip(), command.secrets)
        if shown:
            lines.append(shown)
            world.say(shown)

    done = run_watched(
        world.shell(node), command, action.guard, f"docker build of {action.reference}", on_line
    )
    if done.status != 0:
        where = failing_instruction(lines)
        raise StepFailed(
            f"docker build of {action.reference} failed with status {done.status}{f' at: {where}' if where else ''}",
            node=node,
            details=[f"command: {command.shown()}", *list(lines)[-LAST_LINES:]],
            next_step="correct what the last lines name, then type the same line again: finished layers are kept",
        )


def context_tar(folder: Path) -> bytes:
    """The folder as a tar with paths in order and no times or owners, so that equal files give equal bytes.

    Raises StepFailed when it is larger than ``CONTEXT_LIMIT``.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_plain)
            if buffer.tell() > CONTEXT_LIMIT:
                raise StepFailed(
                    f"the build context {folder} is larger than {CONTEXT_LIMIT >> 20} MiB",
                    next_step="move large files out of it, into the base image",
                )
    return buffer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def image_facts(shell: Shell, reference: str) -> ImageFacts | None:
    """Layers, labels and bytes of an image; None when the node has no such image.

    Raises StepFailed when Docker does not answer, or answers something else.
    """
    done = shell.run(Command.of("docker", "image", "inspect", "--format", FACTS, reference, timeout=60))
    said = done.err.decode(errors="replace")
    if done.status != 0 and "no such image" in said.lower():
        return None
    lines = done.text.splitlines()
    if done.status != 0 or len(lines) != 3:
        details = done.last_lines()
        raise StepFailed(
            f"could not look at image {reference}",
            node=shell.node.name,
            details=details,
            next_step="docker info on that node",
        )
    return ImageFacts(tuple(json.loads(lines[0]) or ()), json.loads(lines[1]) or {}, int(lines[2]))
