"""What a variable may hold: one pure check a kind, each giving the words of the fault or nothing."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from sparkyard.loading.phrases import describe, expected, placeholder, quoted

Check = Callable[[Any], str]
HOME = "<discovered: home>"

_WORD = re.compile(r"[^\s/]+")
_PLACE = re.compile(r"[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[\w./-]*)?", re.I)
_REGISTRY = re.compile(r"([a-z0-9-]+(\.[a-z0-9-]+)+|localhost)(:[0-9]{1,5})?/([\w./-]*/)?", re.I)
_LOST_AT_BOOT = re.compile(r"/(tmp|var/tmp|dev/shm|run)(/|$)")


def text(value: Any) -> str:
    if not isinstance(value, str):
        quote = (
            f'; quote it: "{value}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        )
        return f"text is expected, found {describe(value)}{quote}"
    if not value.strip():
        return "empty; give it a value or delete the line"
    return ""


def word(value: Any) -> str:
    """A name of something on a machine: no space, no slash."""
    if fault := text(value):
        return fault
    return (
        ""
        if _WORD.fullmatch(value)
        else f"a name without spaces and slashes is expected, found {quoted(value)}"
    )


def whole(least: int, most: int) -> Check:
    def check(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int):
            quotes = "; take the quotes away" if isinstance(value, str) and value.isdecimal() else ""
            return f"a whole number is expected, found {describe(value)}{quotes}"
        return "" if least <= value <= most else f"a number from {least} to {most} is expected, found {value}"

    return check


def flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"true or false is expected, found {describe(value)}"


def choice(*words: str) -> Check:
    def check(value: Any) -> str:
        return "" if value in words else expected(words, value)

    return check


def ipv4(value: Any) -> str:
    if fault := text(value):
        return fault
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        padded = any(part.startswith("0") and len(part) > 1 for part in value.split("."))
        if padded:
            return f"an IPv4 address without zero-padding is expected, found {quoted(value)}"
        return f"an IPv4 address is expected, found {quoted(value)}"
    return ""


def url(value: Any) -> str:
    if fault := text(value):
        return fault
    try:
        parts = urlsplit(value)
        good = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        good = False
    return "" if good else f"an http:// or https:// URL is expected, found {quoted(value)}"


def mirror_prefix(value: str) -> str:
    """What a mirror stands for: a whole URL, or the beginning of URLs or image references, up to a slash."""
    if _REGISTRY.fullmatch(value) or not url(value):
        return ""
    return (
        f"https://host/… or a registry such as nvcr.io/ is expected, found {quoted(value)}"
        "; a prefix ends in a slash"
    )


def mirror(value: Any) -> str:
    """What stands in its place: a folder, a file:// or http(s):// URL, or host:port of a registry."""
    if fault := text(value):
        return fault
    good = value.startswith(("/", "file:///")) or not url(value) or _PLACE.fullmatch(value)
    if good and ".." not in value.split("/") and value.isprintable() and " " not in value:
        return ""
    return f"an absolute folder, a URL or host:port is expected, found {quoted(value)}"


def folder(value: Any) -> str:
    """An absolute path on a node, or one below its home (``~/…``); never in /tmp, which a reboot empties."""
    if fault := path(value):
        return fault
    clean = f"/{posixpath.normpath(value).lstrip('/')}" if value.startswith("/") else value
    if _LOST_AT_BOOT.match(clean):
        return f"{quoted(value)} is lost at a reboot; choose another folder"
    bare = clean.rstrip("/") in {"", "~"}
    return f"{quoted(value)} is a whole disk or home; choose a folder below it" if bare else ""


def path(value: Any) -> str:
    if fault := text(value):
        return fault
    if not value.startswith(("/", "~/")):
        return f"an absolute path or ~/… is expected, found {quoted(value)}"
    if ".." in value.split("/"):
        return f"a path without .. is expected, found {quoted(value)}"
    return (
        f"a path of printable characters is expected, found {quoted(value)}"
        if not value.isprintable()
        else ""
    )


def left_open(value: Any) -> str:
    """The fault of a placeholder or a Jinja expression left in a value."""
    if placeholder(value):
        return f"{quoted(value)} is a placeholder; put the real value there"
    if isinstance(value, str) and any(sign in value for sign in ("{{", "{%", "{#")):
        return "Jinja is not evaluated here; write the value out"
    return ""


def on_node(value: str) -> str:
    """A ``~/…`` path with the mark of the node's home in place of ``~``; without a slash at the end."""
    absolute = f"{HOME}{value[1:]}" if value.startswith("~/") else value
    return absolute.rstrip("/") or "/"
