"""Installs a checkout beside the packages of the base image; refuses when that changes any of them.

    python3 install.py FOLDER EXTRAS

The base's PyTorch, Triton and CUDA packages belong together. pip gets all of them as constraints, and what is there afterwards is
compared with what was there before: a package that pip replaced or took away is an error, and the image is not made.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import distributions


def installed() -> dict[str, str]:
    """Normalised name → version of every package that Python finds."""
    found = {}
    for each in distributions():
        name = each.metadata["Name"]
        if name:
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), each.version)
    return found


def constraints(packages: Mapping[str, str]) -> str:
    """A constraints file that lets pip add packages and change none."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """One line for each package of the base that is not what it was."""
    return [
        f"{name}: {version} became {after.get(name, 'nothing')}"
        for name, version in sorted(before.items())
        if after.get(name) != version
    ]


def main(folder: str, extras: str) -> int:
    before = installed()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(constraints(before))
        file.flush()
        wanted = f"{folder}[{extras}]" if extras else folder
        words = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--constraint", file.name, wanted]
        done = subprocess.run(words, check=False)
    if done.returncode:
        print(
            "the base image's packages are kept as they are; what pip wanted beside them stands above",
            file=sys.stderr,
        )
        return done.returncode
    names = subprocess.run([sys.executable, __file__, "--list"], capture_output=True, text=True, check=True)
    after = dict(line.split("==", 1) for line in names.stdout.splitlines())
    changed = changes(before, after)
    for line in changed:
        print(f"a package of the base image changed: {line}", file=sys.stderr)
    for name in sorted(after.keys() - before.keys()):
        print(f"added {name}=={after[name]}")
    return 1 if changed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(constraints(installed()), end="")
        sys.exit(0)
    sys.exit(main(*sys.argv[1:]))
