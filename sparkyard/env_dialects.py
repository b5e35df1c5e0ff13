"""Environment files in the dialect of their one reader. Pure: a mapping in, text or faults out.

``docker-env`` is read by ``docker run --env-file``, which takes every byte behind ``=`` literally: quotes stay in the
value and ``$HOME`` is not expanded. ``shell`` is read by ``.`` in a POSIX shell. The same bytes mean different things to
the two, so each file has one reader.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
WIRING = re.compile(r"NCCL_|GLOO_|SPARKNET_|B12X_|.*_IFNAME\Z")
"""Variables of which their readers do not take an empty value as unset."""
LONGEST = 60_000
"""Characters of a line that Docker still reads (its scanner stops at 64 KiB)."""


def faults(values: Mapping[str, str], dialect: str) -> Iterator[tuple[str, str]]:
    """(name, message) of each entry that the dialect cannot carry."""
    for name, value in values.items():
        if not NAME.match(name):
            yield name, "is not the name of an environment variable"
        elif not value and WIRING.match(name):
            yield name, "is empty, and what reads it does not take that as unset: leave it out"
        elif "\0" in value:
            yield name, "holds a NUL byte"
        elif dialect == "docker-env" and ("\n" in value or "\r" in value):
            yield name, "holds a line break, which docker run --env-file cannot carry"
        elif dialect == "docker-env" and len(name) + len(value) > LONGEST:
            yield name, f"is longer than {LONGEST} characters, which docker run --env-file cannot carry"


def text(values: Mapping[str, str], dialect: str) -> str:
    """The file: a line an entry, in the order given. Call ``faults`` first."""
    write = shlex.quote if dialect == "shell" else str
    return "".join(f"{name}={write(value)}\n" for name, value in values.items())
