"""Looks at what a job said and left on every node, and writes its seals: the last thing that is done, and done whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkyard import facts
from sparkyard.actions import StopContainer, WriteFile
from sparkyard.actions_job import JobRank, RemoveFiles, RunJob
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.executors.files import remove_files, write_file
from sparkyard.executors.service import save, stop_container
from sparkyard.executors.undisturbed import at_once
from sparkyard.executors.watch import split_stamp
from sparkyard.job_facts import Made, made_fact, made_question, sealed_outputs
from sparkyard.rendered_job import SIDECAR, RenderedOutput
from sparkyard.reporting.jsonline import timestamp
from sparkyard.world import World, must


def seal_all(action: RunJob, world: World) -> None:
    """Seal a job whose ranks have all ended with status 0; their containers are removed then.

    Raises StepFailed with everything that its logs lack, or that is wrong with its outputs, on all nodes.
    """
    at_once(lambda rank: save(world.shell(rank.node), rank.container, world), action.ranks)
    _demand_said(action, world)
    made = dict(at_once(lambda rank: (rank.node, _made(action, rank.node, world)), action.ranks))
    _demand_made(action, made)
    images = dict(at_once(lambda rank: (rank.node, _image(rank, world)), action.ranks))
    when = timestamp(datetime.now(UTC))
    texts = {node: _seal(action, made[node], images, when) for node in made}
    at_once(lambda rank: _write(action, rank.node, texts[rank.node], world), action.ranks)
    at_once(lambda rank: _tidy(action, rank, world), action.ranks)


# --- what it said -----------------------------------------------------------------------------------------------------


def _demand_said(action: RunJob, world: World) -> None:
    missing = [
        f"{rank.node}: {one.what} (no line matches /{one.pattern}/)"
        for rank in action.ranks
        for one in action.says
        if rank.rank in one.ranks and not _said(_log(rank, world), one.pattern)
    ]
    if missing:
        raise StepFailed(
            f"job {action.job} ended with status 0, and its log does not say what it must: {len(missing)} missing",
            details=missing,
            next_step=f"read its logs in {world.run_folder / 'logs'}; nothing was sealed",
        )


def _log(rank: JobRank, world: World) -> Path:
    return world.run_folder / "logs" / f"{rank.node}-{rank.container}.log"


def _said(log: Path, pattern: str) -> bool:
    wanted = re.compile(pattern)
    with log.open(encoding="utf-8", errors="replace") as lines:
        return any(wanted.search(split_stamp(line.rstrip("\n"))[1]) for line in lines)


# --- what it left -----------------------------------------------------------------------------------------------------


def _made(action: RunJob, node: str, world: World) -> dict[str, Made]:
    """Path → what lies there, asked of the node now."""
    paths = tuple(output.path for output in action.makes if output.node == node)
    shell, asked = world.shell(node), made_question(paths)
    done = must(shell, facts.command((asked,)), "asking for the outputs of the job")
    return made_fact(facts.parse(shell.node, (asked,), done.out), asked)


def _demand_made(action: RunJob, made: Mapping[str, Mapping[str, Made]]) -> None:
    wrong = [
        f"{output.node}: {output.path} {fault}"
        for output in action.makes
        if (fault := _fault(output, made[output.node][output.path]))
    ]
    if wrong:
        raise StepFailed(
            f"job {action.job} ended with status 0, and did not leave what it must",
            details=wrong,
            next_step="read its logs in the run record; nothing was sealed, and the next run begins anew",
        )


def _fault(output: RenderedOutput, seen: Made) -> str:
    if seen.kind == "missing":
        return "is not there"
    return output.misfit(seen.size) if seen.kind == "regular" else "is no regular file"


# --- the seal ---------------------------------------------------------------------------------------------------------


def _image(rank: JobRank, world: World) -> str:
    words = ("docker", "container", "inspect", "--format", "{{.Image}}", rank.container)
    return must(world.shell(rank.node), Command.of(*words, timeout=30), "docker inspect").text.strip()


def _seal(action: RunJob, made: Mapping[str, Made], images: Mapping[str, str], when: str) -> dict[str, Any]:
    return {**action.record, "images": dict(images), "sealed": when, "outputs": sealed_outputs(made)}


def _write(action: RunJob, node: str, seal: dict[str, Any], world: World) -> None:
    """Sidecars first, the seal last."""
    for output in action.makes:
        if output.sidecar and output.node == node:
            own = {**seal, "outputs": [one for one in seal["outputs"] if one["path"] == output.path]}
            write_file(WriteFile(output.path + SIDECAR, _text(own, indent=1)), node, world)
    write_file(WriteFile(action.seals[node], _text(seal)), node, world)


def _text(record: Mapping[str, Any], indent: int | None = None) -> bytes:
    return (json.dumps(record, indent=indent) + "\n").encode()


def _tidy(action: RunJob, rank: JobRank, world: World) -> None:
    stop_container(StopContainer(rank.container, action.grace), rank.node, world)
    remove_files(RemoveFiles((action.begun[rank.node],)), rank.node, world)
