"""Whether a checkpoint's files agree with each other, asked from the hub before a byte of them is downloaded.

Every shard that an index names must be in the listing, and every safetensors header must end where its file ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sparkyard import safetensors
from sparkyard.errors import StepFailed
from sparkyard.model import Manifest, RemoteFile

if TYPE_CHECKING:
    from sparkyard.hub import Hub

FIRST = 64 * 1024
"""Bytes of a file that are asked for first; most headers are longer, and are then asked for whole."""
LONGEST_INDEX = 256 * 1024 * 1024
LONGEST_CONFIG = 16 * 1024 * 1024
AT_ONCE = 8


def check(hub: Hub, manifest: Manifest, patterns: Sequence[str], say: Callable[[str], None]) -> None:
    """Raises StepFailed with every shard that is absent and every header that does not end its file."""
    faults = [*index_faults(hub, manifest, patterns), *header_faults(hub, manifest, say)]
    if faults:
        raise StepFailed(
            f"{manifest.repo}@{manifest.commit[:12]} is not whole; nothing was locked",
            details=faults[:20],
            next_step="pin another revision, or take what is wrong out of `files` of this checkpoint",
        )


def config(hub: Hub, manifest: Manifest) -> dict[str, Any] | None:
    """The parsed ``config.json`` of a checkpoint, its bytes compared with the listing; None when it has none.

    Raises StepFailed for one that is no JSON object.
    """
    file = next((file for file in manifest.files if file.path == "config.json"), None)
    if file is None:
        return None
    try:
        return json_object(hub.read(manifest, file, 0, min(file.size, LONGEST_CONFIG)))
    except ValueError as error:
        raise StepFailed(
            f"config.json of {manifest.repo}@{manifest.commit[:12]} cannot be read: {error}; nothing was locked",
            next_step="pin another revision, or take it out of `files` of this checkpoint",
        ) from error


def json_object(content: bytes) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object."""
    found = json.loads(content)
    if isinstance(found, dict):
        return found
    raise ValueError("is no JSON object")


def index_faults(hub: Hub, manifest: Manifest, patterns: Sequence[str]) -> list[str]:
    """What each index names that should be there and is not."""
    there = [file.path for file in manifest.files]
    found: list[str] = []
    for file in manifest.files:
        if not file.path.endswith(safetensors.INDEX_ENDING) or file.size > LONGEST_INDEX:
            continue
        try:
            named = safetensors.shards(hub.read(manifest, file), file.path)
        except ValueError as error:
            found.append(f"{file.path} {error}")
            continue
        lost = safetensors.absent(named, patterns, there)
        found += [f"{file.path} names {name}, which is not in the listing" for name in lost]
    return found


def header_faults(hub: Hub, manifest: Manifest, say: Callable[[str], None]) -> list[str]:
    """What is wrong with each safetensors file; one that the hub does not give in parts is left to the nodes, and that is said."""
    files = [file for file in manifest.files if file.path.endswith(safetensors.ENDING)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda file: _header(hub, manifest, file), files))
    unread = [file.path for file, (read, _) in zip(files, results, strict=True) if not read]
    if unread:
        say(
            f"{manifest.repo}: the headers of {len(unread)} files could not be read here; the nodes check them after the download"
        )
    return [f"{file.path} {fault}" for file, (_, fault) in zip(files, results, strict=True) if fault]


def _header(hub: Hub, manifest: Manifest, file: RemoteFile) -> tuple[bool, str]:
    """(whether the header could be read, what is wrong with the file)."""
    try:
        start = hub.read(manifest, file, 0, min(FIRST, file.size))
        end = 8 + safetensors.header_length(start)
        if end > file.size:
            return True, safetensors.fault(end, file.size)
        if end > len(start):
            start += hub.read(manifest, file, len(start), end)
        return True, safetensors.fault(safetensors.end_of(start[8:end]), file.size)
    except ValueError as error:
        return True, str(error)
    except StepFailed:
        return False, ""
