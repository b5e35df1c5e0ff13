"""A lane with stand-ins in place of what only Sparks can run or hold: its image, its checkpoints, its disk and time limits.

Everything else, every word, variable, mount and option of every rank, stays the recipe's own: that is what a stand-in is there to
prove. Nothing here connects to anything; of files, only those of the lab's git repositories are read. It is used only for an inventory with ``stand_in: true``, whose nodes must all carry the lab's marker file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkyard.errors import UsageError
from sparkyard.facts import FileFact, file_question
from sparkyard.model import Lane
from sparkyard.plan import Question
from sparkyard.recipe import (
    BuildSpec,
    CheckpointSpec,
    GateSpec,
    GitSpec,
    HostSpec,
    ImageSpec,
    JobSpec,
    PatchSpec,
    Recipe,
    ServiceSpec,
    Source,
    Template,
)
from sparkyard.scopes import origin

PIN = re.compile(r"[0-9a-f]{7,40}")
"""What a commit looks like; a branch keeps its name, and the lab's hub has ``main``."""
MARKER = "/run/sparkyard-lab"
"""Every node of a lab has this file, and nothing else has."""
BASE = "sparkyard-lab/engine-base:latest"
SHOWN_FILES = ("/proc/cmdline", "/proc/meminfo")
"""Files that a lab's node shows as a Spark has them (``lab/hardware.py``)."""
DISK = 200_000_000
LONGEST = 600.0
"""Seconds: nothing in the lab takes as long as a Spark's real load."""
SILENCE = 300.0
ROOM = 1_000_000
"""Bytes that a job may ask for."""

COMMITS: Mapping[str, str] = {
    "bertholomus/DeepSeek-V4.1-Flash-TensorFold-TP4-4xGB10": "38161ecd0fd187fa09524c3561aee44eb8ece828",
    "LibertAIDAI/DeepSeek-V4.1-Flash-1017-EXL3-2.9bpw": "eb3247d0f78f08756bdf86d46d191081646bf8b3",
    "Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw": "3a992478c1f8e031b6e1fcee11c144d4d2411aa2",
    "deepseek-ai/DeepSeek-V4.1-Flash": "3d56a87498a075b1081c5002480867ac71212579",
    "deepseek-ai/DeepSeek-V4.1-Flash-1017": "679688cb493e11d8da0baea24a1633a08f553404",
}
"""The commits of the tiny repositories on the lab's hub (``lab/tiny_repos.py``; a test compares)."""


def stand_in(lane: Lane) -> Lane:
    """The lane as the lab can run it; a lane made for the lab stays as it is.

    Raises UsageError for a checkpoint that the lab's hub does not have.
    """
    if of_the_lab(lane.recipe):
        return lane
    made, real = _recipe(lane.recipe), origin(lane.recipe.image)
    return replace(lane, recipe=made, image_folder=engine_folder(), image_origin=real)


def of_the_lab(recipe: Recipe) -> bool:
    """Whether the recipe's image is made from the lab's own base."""
    return recipe.image.build is not None and recipe.image.build.base.startswith("sparkyard-lab/")


def engine_folder() -> Path:
    """The folder with the lab's engines: beside the package, or inside it when it is installed."""
    package = Path(__file__).resolve().parent
    clone = package.parent / "recipes" / "lab"
    return clone if clone.is_dir() else package / "share" / "recipes" / "lab"


def _recipe(recipe: Recipe) -> Recipe:
    changes: dict[str, Any] = {
        "image": _image(recipe.image),
        "checkpoints": {name: _checkpoint(spec) for name, spec in recipe.checkpoints.items()},
        "patches": {name: _patch(spec) for name, spec in recipe.patches.items()},
        "services": {name: _service(spec) for name, spec in recipe.services.items()},
        "jobs": {name: _job(spec) for name, spec in recipe.jobs.items()},
        "ready": recipe.ready.model_copy(
            update={
                "timeout": min(recipe.ready.timeout, LONGEST),
                "log_silence": min(recipe.ready.log_silence, SILENCE),
            }
        ),
        "host": [_host(spec) for spec in recipe.host],
        "limits": recipe.limits.model_copy(update={"disk": min(recipe.limits.disk, DISK)}),
        "kept": {name: kept.model_copy(update={"bytes": "0"}) for name, kept in recipe.kept.items()},
    }
    if recipe.scripts is not None:
        changes["scripts"] = recipe.scripts.model_copy(update={"git": _git(recipe.scripts.git)})
    return recipe.model_copy(update=changes)


def _image(image: ImageSpec) -> ImageSpec:
    """Built from the lab's own; one that a project's scripts make is made by the lab's repository of that URL, if there is one."""
    if image.made is not None and image.made.git.url in git_commits():
        made = image.made.model_copy(update={"git": _git(image.made.git)})
        return image.model_copy(update={"made": made})
    source = Source(kind="chosen", why="the lab's stand-in for it")
    build = BuildSpec(base=BASE, dockerfile="stand-in/Dockerfile", context=".")
    return ImageSpec(name=f"{image.name}-stand-in", source=source, build=build)


def _host(spec: HostSpec) -> HostSpec:
    """What the lab shows of a Spark stays a requirement, and so does a file that a setting names; pages, modules and units of the machine
    itself are only told."""
    named = "{{" in (spec.read or spec.sha256 or "")
    return spec if named or spec.read in SHOWN_FILES else spec.model_copy(update={"blocks": False})


def _checkpoint(spec: CheckpointSpec) -> CheckpointSpec:
    """The same files at the tiny repository's commit, cut as short as the recipe's own pin."""
    if spec.repo not in COMMITS:
        raise UsageError(
            f"the lab's hub has no stand-in for {spec.repo}; expected one of {', '.join(sorted(COMMITS))}",
            next_step="add it to sparkyard/lab/tiny_repos.py and sparkyard/stand_in.py",
        )
    pin = COMMITS[spec.repo][: len(spec.revision)] if PIN.fullmatch(spec.revision) else spec.revision
    return spec.model_copy(update={"revision": pin, "bytes": None})


def _patch(spec: PatchSpec) -> PatchSpec:
    """The text comes from the lab's repository: what it hashes to is locked there."""
    return spec.model_copy(update={"git": _git(spec.git), "pristine": "", "patched": "", "md5": ""})


def git_commits() -> Mapping[str, str]:
    """The commits of the git repositories that the lab keeps in place of real ones: URL → commit, made of their files alone."""
    from sparkyard.lab import git_repos  # noqa: PLC0415 - the lab is not for those who have none

    return git_repos.commits()


def _git(spec: GitSpec) -> GitSpec:
    known = git_commits().get(spec.url)
    return spec.model_copy(update={"commit": known[: len(spec.commit)]}) if known else spec


def _service(spec: ServiceSpec) -> ServiceSpec:
    return spec.model_copy(update={"gate": _gate(spec.gate)})


def _gate(spec: GateSpec | None) -> GateSpec | None:
    return spec and spec.model_copy(update={"timeout": min(spec.timeout, LONGEST)})


def _job(spec: JobSpec) -> JobSpec:
    """The same words and files of the same exact sizes; what is only known to be large may be small, and time is short."""
    room = [one.model_copy(update={"bytes": _at_most(one.bytes, ROOM)}) for one in spec.room]
    makes = [one.model_copy(update={"at_least": one.at_least and "1"}) for one in spec.makes]
    silence = min(spec.log_silence, SILENCE)
    changes = {"gate": _gate(spec.gate), "room": room, "makes": makes, "log_silence": silence}
    return spec.model_copy(update={**changes, "timeout": min(spec.timeout, LONGEST)})


def _at_most(size: Template, most: int) -> Template:
    """A number of bytes that is no more than ``most``; what a template would come to is not known here."""
    return str(min(int(size), most)) if size.isascii() and size.isdecimal() else str(most)


# --- where it is allowed --------------------------------------------------------------------------------------------------


def marker_question() -> Question:
    """Asks a node for the lab's marker file."""
    return file_question(MARKER)


def refuse_outside(node: str, fact: FileFact) -> None:
    """Raises UsageError unless the node is a lab's."""
    if fact.kind != "regular":
        raise UsageError(
            f"stand_in is true in this inventory, and the node has no {MARKER}: it is no node of a lab; no node was changed",
            next_step="take stand_in out of the inventory, or use one of a lab: invoke lab.up",
            node=node,
        )
