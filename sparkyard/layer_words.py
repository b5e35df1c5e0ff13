"""Words around the layers of images: which of them a receiver has, and how the others are sent. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from sparkyard.command import Command
from sparkyard.guard import node_script_path

INSPECT = "{{json .RootFS.Layers}}"

CHAINS = (
    'case $(docker info --format "{{.DriverStatus}}") in *io.containerd.snapshotter*|"") ;; '
    f'*) docker image ls --all --quiet --no-trunc | sort -u | xargs -r docker image inspect --format "{INSPECT}" ;; esac'
)
"""Prints the layers of every image, a JSON list a line. Nothing where the engine keeps images in containerd: it wants every blob of an archive."""


def chains_command() -> Command:
    """Asks a receiver for its chains of layers."""
    return Command.of("sh", "-c", CHAINS, timeout=60)


def chains(text: str) -> tuple[tuple[str, ...], ...]:
    """The answer to ``chains_command``; lines of anything else are passed over, since a missing one costs only bytes."""
    found = []
    for line in text.splitlines():
        try:
            layers = json.loads(line)
        except ValueError:
            continue
        if isinstance(layers, list) and all(isinstance(layer, str) for layer in layers):
            found.append(tuple(layers))
    return tuple(found)


def held(image: Sequence[str], there: Iterable[Sequence[str]]) -> int:
    """How many of the image's first layers a receiver has: Docker looks a layer up by a hash over it and all below it."""
    return max((_common(image, chain) for chain in there), default=0)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def trim_words(python: str) -> tuple[str, ...]:
    """The program between ``docker save`` and ``docker load``: see scripts/node/trim.py."""
    return (python, "-I", str(node_script_path("trim.py")))


def trim_head(image: Sequence[str], count: int) -> bytes:
    """What the program reads before the archive, when the receiver has the first ``count`` layers."""
    return f"{json.dumps(list(image))}\n{json.dumps(list(image[:count]))}\n\n".encode()


def pasted(reference: str, address: str) -> str:
    """The whole way as one line of shell: asks the receiver, leaves out what it has, sends the rest."""
    image = Command.of("docker", "image", "inspect", "--format", INSPECT, reference).line()
    there = Command.of("ssh", address, CHAINS).line()
    save = Command.of("docker", "save", reference).line()
    trim = Command(trim_words("python3")).line()
    load = Command.of("ssh", address, "docker", "load").line()
    return f"{{ {image}; {there}; echo; {save}; }} | {trim} | {load}"
