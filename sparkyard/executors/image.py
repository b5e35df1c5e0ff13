"""Builds the engine image on the head and ships it to workers; equal layers and labels move nothing."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparkyard.actions_image import BuildImage, ShipImage
from sparkyard.build_log import failing_instruction
from sparkyard.command import Command, mask
from sparkyard.errors import Interrupted, StepFailed, Unreachable
from sparkyard.executors.memory import run_watched
from sparkyard.executors.shipment import Gathering, Parcel, Visit
from sparkyard.world import Shell, World

LAST_LINES = 15
CONTEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of a build context that goes by standard input; more belongs into a base image."""
FACTS = "{{json .RootFS.Layers}}\n{{json .Config.Labels}}\n{{.Size}}"

_gatherings: defaultdict[str, Gathering] = defaultdict(Gathering)
_opening = threading.Lock()


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


def ship_image(action: ShipImage, node: str, world: World) -> None:
    """Send the image from the head and prove that it arrived.

    Raises StepFailed when either end fails or the result differs, Unreachable when ssh fails, Interrupted.
    """
    head = next((n.name for n in world.inventory.nodes if n.local), world.inventory.head.name)
    with _opening:
        gathering = _gatherings[action.reference]
    with Visit(gathering) as visit:
        here = image_facts(world.shell(head), action.reference)
        if here is None:
            raise StepFailed(
                f"image {action.reference} is not on the head", node=head, next_step="invoke build"
            )
        if here.same(image_facts(world.shell(node), action.reference)):
            world.say(f"{action.reference} is there already: same layers, same labels")
            return
        _send(action, node, world, visit, here)
    there = image_facts(world.shell(node), action.reference)
    if not here.same(there):
        raise StepFailed(
            f"image {action.reference} arrived and differs from the head's",
            node=node,
            details=[*_differences(here, there)],
            next_step=f"docker image rm {action.reference} on {node}, then invoke build",
        )


def _send(action: ShipImage, node: str, world: World, visit: Visit, here: ImageFacts) -> None:
    def on_bytes(sent: int) -> None:
        world.progress(sent, max(here.size, sent), f"image to {node}")

    words = (*world.ssh_words(node), action.address, Command.of("docker", "load").line())
    parcel = Parcel(words, on_bytes)
    visit.send(parcel, ("docker", "save", action.reference), world.cancelled)
    if parcel.cancelled or world.cancelled.is_set():
        raise Interrupted(
            "interrupted while an image was on its way; what arrived of it was thrown away", node=node
        )
    _judge(action, node, parcel)
    world.progress(parcel.sent, parcel.sent, f"image to {node}")


def _judge(action: ShipImage, node: str, parcel: Parcel) -> None:
    """Look at both ends. Raises for the one that failed first: the other one only saw its pipe break."""
    save, load = parcel.save, parcel.load
    assert save is not None
    assert load is not None
    if load.status == 255:
        raise _ssh_failed(action, node, load.said)
    broken = save.status != 0 and any("broken pipe" in line.lower() for line in save.said)
    ends = [("docker load", node, load), ("docker save", "the head", save)]
    if save.status not in (0, -13, -15) and not broken:
        ends.reverse()
    for name, where, child in ends:
        if child.status != 0:
            full = any("no space left" in line.lower() for line in child.said)
            raise StepFailed(
                f"{name} on {where} failed with status {child.status}{': its disk is full' if full else ''}",
                node=node,
                details=[f"{parcel.sent} bytes were sent", *child.said[-LAST_LINES:]],
                next_step=f"docker system df on {where}"
                if full
                else "invoke build, once Docker there is well",
            )


def _ssh_failed(action: ShipImage, node: str, said: tuple[str, ...]) -> Unreachable:
    key = any("host key verification failed" in line.lower() for line in said)
    text = "its host key is not the one on record" if key else "ssh failed (status 255)"
    return Unreachable(
        f"the image could not be sent to {action.address}: {text}",
        node=node,
        details=said[-LAST_LINES:],
        next_step="invoke trust"
        if key
        else f"look whether {action.address} answers and the link is up, then type the same line again",
    )


def _differences(here: ImageFacts, there: ImageFacts | None) -> tuple[str, ...]:
    if there is None:
        return ("there is no image of that name on the worker",)
    common = len(set(here.layers) & set(there.layers))
    return (
        f"layers: {len(here.layers)} on the head, {len(there.layers)} on the worker, {common} of them the same",
        f"labels on the head: {dict(here.labels)}",
        f"labels on the worker: {dict(there.labels)}",
    )
