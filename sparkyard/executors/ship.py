"""Ships the engine image to workers: equal layers and labels move nothing, and of another image only the layers that a worker lacks.

What a worker has is what it says; should that be wrong, its Docker refuses the archive, and everything is sent once more.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from dataclasses import dataclass

from sparkyard.actions_image import ShipImage
from sparkyard.command import Command
from sparkyard.errors import Interrupted, StepFailed, Unreachable
from sparkyard.executors.image import LAST_LINES, ImageFacts, image_facts
from sparkyard.executors.shipment import Cargo, Child, Gathering, Parcel, Visit
from sparkyard.layer_words import chains, chains_command, held, trim_words
from sparkyard.reporting.amounts import size
from sparkyard.world import Shell, World

ENDED = (0, -13, -15)
"""Statuses of a process that did its part, or was ended by us or by whom it wrote to."""

_gatherings: defaultdict[tuple[str, bool], Gathering] = defaultdict(Gathering)
_opening = threading.Lock()


class DiskFull(StepFailed):
    """A receiver without room. Sending more would not help."""


@dataclass(frozen=True, slots=True)
class Shipping:
    """One image on its way to one worker. ``here`` is what the head has."""

    action: ShipImage
    node: str
    world: World
    here: ImageFacts

    @property
    def label(self) -> str:
        return f"image to {self.node}"

    def parcel(self, held: int) -> Parcel:
        """For a worker that has the first ``held`` layers."""

        def on_bytes(sent: int) -> None:
            self.world.progress(sent, max(self.here.size - parcel.left_out, sent), self.label)

        load = (*self.world.ssh_words(self.node), self.action.address, Command.of("docker", "load").line())
        parcel = Parcel(load, on_bytes, held)
        return parcel


def ship_image(action: ShipImage, node: str, world: World) -> None:
    """Send the image from the head and prove that it arrived.

    Raises StepFailed when either end fails or the result differs, Unreachable when ssh fails, Interrupted.
    """
    head = next((n.name for n in world.inventory.nodes if n.local), world.inventory.head.name)
    with Visit(_gathering(action, whole=False)) as first, Visit(_gathering(action, whole=True)) as second:
        here = image_facts(world.shell(head), action.reference)
        if here is None:
            raise StepFailed(
                f"image {action.reference} is not on the head", node=head, next_step="invoke build"
            )
        if here.same(image_facts(world.shell(node), action.reference)):
            world.say(f"{action.reference} is there already: same layers, same labels")
            return
        shipping = Shipping(action, node, world, here)
        part = shipping.parcel(_held(world.shell(node), here))
        if fault := _first_try(shipping, first, part):
            everything = shipping.parcel(0)
            everything.sent = part.sent  # moved in vain, and moved all the same
            _send(shipping, second, everything, fault)


def _gathering(action: ShipImage, *, whole: bool) -> Gathering:
    """Those that compare this image now, or those whose first try may fail: ``whole`` is the second."""
    with _opening:
        return _gatherings[action.reference, whole]


def _held(shell: Shell, here: ImageFacts) -> int:
    """How many of the image's first layers a worker has. An answer that cannot be had costs only bytes."""
    try:
        told = shell.run(chains_command()).text
    except StepFailed:  # its time limit
        return 0
    return held(here.layers, chains(told))


def _first_try(shipping: Shipping, visit: Visit, parcel: Parcel) -> str:
    """Send what is lacking. Empty when it arrived, else why everything must be sent."""
    try:
        _send(shipping, visit, parcel)
    except StepFailed as failure:
        if parcel.whole or isinstance(failure, DiskFull):  # everything would fail alike
            raise
        fault = "; ".join((failure.message, *failure.details[-1:]))
        shipping.world.say(f"without the layers that are there: {fault}; everything is sent once more")
        return fault
    return ""


def _send(shipping: Shipping, visit: Visit, parcel: Parcel, before: str = "") -> None:
    """Send it, prove it, and tell what moved; ``before`` is why a first try failed."""
    action, node, world = shipping.action, shipping.node, shipping.world
    cargo = Cargo(("docker", "save", action.reference), trim_words(sys.executable), shipping.here.layers)
    visit.send(parcel, cargo, world.cancelled)
    if parcel.cancelled or world.cancelled.is_set():
        raise Interrupted(
            "interrupted while an image was on its way; what arrived of it was thrown away", node=node
        )
    _judge(action, node, parcel)
    world.progress(parcel.sent, parcel.sent, shipping.label)
    _prove(shipping)
    _tell(shipping, parcel, before)


def _prove(shipping: Shipping) -> None:
    action, node = shipping.action, shipping.node
    there = image_facts(shipping.world.shell(node), action.reference)
    if not shipping.here.same(there):
        raise StepFailed(
            f"image {action.reference} arrived and differs from the head's",
            node=node,
            details=[*_differences(shipping.here, there)],
            next_step=f"docker image rm {action.reference} on {node}, then invoke build",
        )


def _tell(shipping: Shipping, parcel: Parcel, before: str) -> None:
    layers = len(shipping.here.layers)
    left = f", {size(parcel.left_out)} left out: {parcel.layers_left_out} of its {layers} layers were there"
    lines = [f"{size(parcel.sent)} moved{left if parcel.layers_left_out else ''}"]
    if before:
        lines.append(f"everything was sent once more, since without the layers that are there: {before}")
    told = {"moved": parcel.sent, "left_out": parcel.left_out, "layers": layers}
    shipping.world.tell(lines, shipped=told | {"layers_left_out": parcel.layers_left_out})


def _judge(action: ShipImage, node: str, parcel: Parcel) -> None:
    """Look at all parts. Raises for the one that failed first: the others only saw their pipes break."""
    if parcel.unbegun:
        raise StepFailed(
            f"the image could not be sent: a program cannot be started here: {parcel.unbegun}",
            node=node,
            next_step="invoke build, once it can",
        )
    assert parcel.load is not None
    if parcel.load.status == 255:
        raise _ssh_failed(action, node, parcel.load.said)
    for name, where, child in _parts(node, parcel):
        if child.status != 0:
            full = any("no space left" in line.lower() for line in child.said)
            raise (DiskFull if full else StepFailed)(
                f"{name} on {where} failed with status {child.status}{': its disk is full' if full else ''}",
                node=node,
                details=[f"{parcel.sent} bytes were sent", *child.said[-LAST_LINES:]],
                next_step=f"docker system df on {where}"
                if full
                else "invoke build, once Docker there is well",
            )


def _parts(node: str, parcel: Parcel) -> list[tuple[str, str, Child]]:
    """The parts of the pipeline, those that failed by themselves in front."""
    parts = [("docker load", node, parcel.load), ("docker save", "the head", parcel.save)]
    if parcel.trim is not None:
        parts.append(("leaving out layers", "the head", parcel.trim))
    found = [(name, where, child) for name, where, child in parts if child is not None]
    return sorted(found, key=lambda part: not (part[2] is not parcel.load and _fell(part[2])))


def _fell(source: Child) -> bool:
    """Whether one of the sources failed by itself."""
    return source.status not in ENDED and not any("broken pipe" in line.lower() for line in source.said)


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
