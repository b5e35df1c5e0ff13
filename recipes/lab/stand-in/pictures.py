"""What a stand-in sees of an image: the colour of its first pixel, read from a PNG in a data URL."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

PREFIX = "data:image/png;base64,"
COLOURS = {(255, 0, 0): "Red", (0, 255, 0): "Green", (0, 0, 255): "Blue"}


def colour(ask: Mapping[str, Any]) -> str:
    """The colour of the first image of the last message, in a word; empty without an image."""
    content = (ask.get("messages") or [{}])[-1].get("content")
    parts = content if isinstance(content, list) else []
    urls = [part["image_url"]["url"] for part in parts if isinstance(part, dict) and "image_url" in part]
    return COLOURS.get(first_pixel(urls[0]), "Grey") if urls else ""


def first_pixel(url: str) -> tuple[int, ...]:
    """Red, green and blue. Raises ValueError for anything but a PNG of 8 bits a channel without filters."""
    if not url.startswith(PREFIX):
        raise ValueError("the image is no PNG in a data URL")
    packed = b"".join(
        data for kind, data in chunks(base64.b64decode(url.removeprefix(PREFIX))) if kind == b"IDAT"
    )
    row = zlib.decompress(packed)
    if row[0]:
        raise ValueError("the image's first row has a filter")
    return tuple(row[1:4])


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        yield png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        place += length + 12
