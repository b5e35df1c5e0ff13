"""A rendered lane written as a tree for people to read and paste: ``build/<lane>/<node>/…``. Writes files; connects to nothing.

Files that would hold secrets are written with the secrets masked.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from sparkyard.command import mask
from sparkyard.errors import UsageError
from sparkyard.model import RenderedFile
from sparkyard.rendered import RenderedImage, RenderedLane

HOME = "<discovered: home>/"
PAIRS = re.compile(r"--?[a-z][a-z-]*\Z")


MARK = ".rendered"
"""Lies in every folder that render has made, and in no other: only such a folder is emptied."""


def write_tree(rendered: RenderedLane, folder: Path) -> tuple[Path, ...]:
    """Write everything below ``folder``/<lane>, which is emptied first; returns the files written, sorted.

    Raises UsageError when that folder holds files of somebody else, OSError when it cannot be written.
    """
    top = folder / rendered.lane
    if top.is_dir() and any(top.iterdir()) and not (top / MARK).is_file():
        raise UsageError(
            f"{top} holds files that render did not write; nothing was changed",
            next_step="choose another folder with --out",
        )
    if top.is_dir():
        shutil.rmtree(top)
    top.mkdir(parents=True)
    (top / MARK).touch()
    for path, text in sorted(texts(rendered).items()):
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return tuple(sorted(path for path in top.rglob("*") if path.is_file() and path.name != MARK))


def texts(rendered: RenderedLane) -> dict[str, str]:
    """Relative path → text of the whole tree."""
    found = {"image.sh": _image_script(rendered.image)}
    for job in rendered.jobs:
        for container in job.containers:
            about = f"runs rank {container.rank} of job {job.name} on {container.node}, in {job.at}"
            found[f"{container.node}/job-{job.name}.docker.sh"] = script(container.words, about)
    for file in rendered.files:
        found[f"{file.node}/files/{_relative(file)}"] = mask(file.content, rendered.secrets)
    if rendered.scripts is not None:
        there = shlex.join(("cd", rendered.scripts.folder))
        found["start.sh"] = (
            f"# starts the kit, on the head\n{there} && {shlex.join(rendered.scripts.start)}\n"
        )
        return found
    for container in rendered.containers:
        about = f"starts rank {container.rank} ({container.service}) on {container.node}"
        found[f"{container.node}/{container.service}.docker.sh"] = script(container.words, about)
    return found


def _image_script(image: RenderedImage) -> str:
    if image.made is None:
        return script(image.words, _image(image))
    made, tree = image.made, image.trees[0]
    lines = [
        f"# makes the image by the project's own steps, on the head, in a clone of {tree.url} at {tree.commit}"
    ]
    lines += [shlex.join(("cd", made.folder)), *(shlex.join(words) for words in made.steps)]
    return "\n".join((*lines, shlex.join(("docker", "tag", made.reference, image.reference)), ""))


def _image(image: RenderedImage) -> str:
    """What the command does, and what sparkyard puts into its context before."""
    lines = ["builds or pulls the image, on the head"]
    lines += [f"before: {tree.url} at {tree.commit} goes to {tree.folder}" for tree in image.trees]
    lines += [f"and {image.source} goes to {image.context}"] if image.trees else []
    return "\n# ".join(lines)


def _relative(file: RenderedFile) -> str:
    """The path below ``files/``: the home's folder is named ``home``."""
    if file.path.startswith(HOME):
        return "home/" + file.path.removeprefix(HOME)
    return file.path.lstrip("/")


def script(words: tuple[str, ...], about: str) -> str:
    """One command as shell that can be pasted: an option and its value on a line, lines continued with a backslash."""
    lines = [shlex.join(line) for line in _lines(words)]
    return f"# {about}\n" + " \\\n  ".join(lines) + "\n"


def _lines(words: tuple[str, ...]) -> list[list[str]]:
    """The words in lines: the program and its verb, then each option with the value behind it."""
    lines = [list(words[:2])]
    for word in words[2:]:
        last = lines[-1]
        if len(lines) > 1 and len(last) == 1 and PAIRS.match(last[0]) and not word.startswith("-"):
            last.append(word)
        else:
            lines.append([word])
    return lines
