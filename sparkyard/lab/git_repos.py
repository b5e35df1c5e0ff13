"""Every git repository that the lab keeps in place of a real one: the kit's (``kit_repo``), and each folder below ``repositories/``.

``repositories/<owner>/<name>/`` stands for ``https://github.com/<owner>/<name>``: a folder is all that one more takes. As with the
kit's, a commit is made of the files alone, so a stand-in can name it before it is made. One with a file ``image.parts`` makes an
image by scripts of its own: it gets these folders of the lab's recipe, from which engines are stood in for, in its folder ``image``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkyard.lab import kit_repo

TOP = Path(__file__).parent / "repositories"
HOST = "https://github.com/"
LEFT_OUT = "__pycache__"
PARTS = "image.parts"


def contents() -> dict[str, dict[str, bytes]]:
    """URL → path in the repository → content."""
    folders = sorted(path for path in TOP.glob("*/*") if path.is_dir() and LEFT_OUT not in path.parts)
    own = {f"{HOST}{folder.relative_to(TOP)}": kit_repo.below(folder) for folder in folders}
    return {kit_repo.URL: kit_repo.files()} | {url: files | _image(files) for url, files in own.items()}


def _image(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The context of an image that a repository makes by its own scripts; nothing for one that makes none."""
    from sparkyard.stand_in import engine_folder  # noqa: PLC0415 - it names the commits that are made here

    parts = files.get(PARTS, b"").decode().split()
    inside = {part: kit_repo.below(engine_folder() / part) for part in parts}
    return {f"image/{part}/{path}": body for part, found in inside.items() for path, body in found.items()}


def commits() -> Mapping[str, str]:
    """URL → commit."""
    return {url: kit_repo.commit(files) for url, files in contents().items()}


def keep(folder: Path) -> None:
    """Every repository below ``folder``, by the path of its URL; one that has the commit of today's files is not touched."""
    for url, files in contents().items():
        kit_repo.keep(folder, url, files)
