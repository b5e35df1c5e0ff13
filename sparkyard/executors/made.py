"""Makes an image by a project's own steps in a fresh clone on the head, proves its labels, records it and gives it our name."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path

from sparkyard.actions import WriteFile
from sparkyard.actions_image import MakeImage
from sparkyard.command import Command
from sparkyard.errors import StepFailed
from sparkyard.executors.files import write_file
from sparkyard.executors.git import marked
from sparkyard.executors.image import LAST_LINES, ImageFacts, image_facts
from sparkyard.executors.memory import run_watched
from sparkyard.made_record import MadeRecord
from sparkyard.steps.image_found import label_faults
from sparkyard.world import World, must


def make_image(action: MakeImage, node: str, world: World) -> None:
    """Run the steps in order, then look at what they left.

    The clone is made anew: half of a step that was cut short cannot be told from a whole one. Raises StepFailed with the step
    that failed and its last lines, or with every label that is not as expected; Interrupted.
    """
    if action.steps:
        _fresh_clone(action, node, world)
    for number, command in enumerate(action.steps, 1):
        _step(number, command, action, node, world)
    facts = image_facts(world.shell(node), action.made)
    if facts is None:
        raise StepFailed(
            f"the project's steps ended well and left no image {action.made}",
            node=node,
            next_step="docker image ls, and compare with `reference` in the recipe",
        )
    _as_labelled(action, facts, node)
    record = MadeRecord(action.mark, action.made, facts.layers, dict(facts.labels))
    write_file(WriteFile(action.record, record.text().encode()), node, world)
    name = Command.of("docker", "tag", action.made, action.reference, timeout=60)
    must(world.shell(node), name, f"naming {action.made} {action.reference}")


def _fresh_clone(action: MakeImage, node: str, world: World) -> None:
    folder = Path(action.folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for old in marked(folder.parent, action.prefix):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        folder.mkdir()
    except OSError as error:
        raise StepFailed(
            f"{error.filename or folder}: {error.strerror}",
            node=node,
            next_step=f"look at it: ls -l {folder.parent}",
        ) from error
    must(world.shell(node), action.check_out, f"checking out into {folder}")


def _step(number: int, command: Command, action: MakeImage, node: str, world: World) -> None:
    last: deque[str] = deque(maxlen=LAST_LINES)

    def on_line(line: str) -> None:
        if line.strip():
            last.append(line.rstrip())
            world.say(line.rstrip())

    what = f"step {number} of {len(action.steps)} that makes {action.made}"
    done = run_watched(world.shell(node), command, action.guard, what, on_line)
    if done.status != 0:
        raise StepFailed(
            f"{what} failed with status {done.status}",
            node=node,
            details=[f"command: {command.shown()}", *last],
            next_step="correct what the last lines name, then type the same line again; it begins with a fresh clone",
        )


def _as_labelled(action: MakeImage, facts: ImageFacts, node: str) -> None:
    faults = label_faults(action.labels, facts.labels)
    if faults:
        raise StepFailed(
            f"image {action.made} is not the one that the recipe expects; it was not taken",
            node=node,
            details=list(faults),
            next_step=f"if it is an older one: docker image rm {action.made}, then type the same line again",
        )
