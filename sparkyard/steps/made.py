"""Steps that make an image by a project's own scripts, in a clone on the head. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sparkyard import git_words
from sparkyard.actions import Run
from sparkyard.actions_image import MakeImage
from sparkyard.command import Command, fill
from sparkyard.facts import (
    CONTAINERS,
    ImageFact,
    containers,
    file,
    file_question,
    folder,
    folder_question,
    image,
    image_question,
)
from sparkyard.made_record import made_of
from sparkyard.model import Node
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedImage
from sparkyard.reporting.amounts import gigabytes
from sparkyard.steps import source
from sparkyard.steps.clone import CHECK_OUT
from sparkyard.steps.image_found import difference
from sparkyard.steps.memory import guarded
from sparkyard.system import SYSTEM, System, system


def made_steps(wanted: RenderedImage, node: Node) -> tuple[Step, ...]:
    """The head's steps: the repository at its commit, then the project's own steps, when the image is not there yet."""
    assert wanted.made is not None
    made = wanted.made
    ours, theirs = image_question(wanted.reference), image_question(made.reference)
    record = file_question(made.record, "content")

    def reason(answers: Answers) -> str:
        fact = image(answers, ours)
        return difference(wanted, fact, system(answers)) or _off_record(wanted, fact, answers, record)

    def judge(answers: Answers) -> Verdict:
        why = reason(answers)
        if not why:
            return Verdict("ok", f"{wanted.reference} is made", data={"build": wanted.mark})
        if _finished(wanted, image(answers, theirs), system(answers)):
            words = f"{wanted.reference} {why}, and {made.reference} is as wanted"
            return Verdict("change", words, (_action(wanted, answers, name_only=True),))
        return _no_room(wanted, answers) or Verdict(
            "change", f"{wanted.reference} {why}", (_action(wanted, answers),)
        )

    def there(answers: Answers) -> bool:
        return not reason(answers) or _finished(wanted, image(answers, theirs), system(answers))

    questions = (SYSTEM, ours, theirs, record)
    first = source.source_steps(wanted, node, there, questions)
    title = f"image {wanted.name}: make, by the project's own steps"
    needs = tuple(step.id for step in first)
    step = Step("image", wanted.name, node.name, title, judge, (*questions, CONTAINERS), needs)
    return (*first, step)


def purge_step(wanted: RenderedImage, node: Node) -> Step:
    """Removes what making the image left on the head: the clone, the record, and the scripts' own name for it, if it is the recorded image."""
    assert wanted.made is not None
    made = wanted.made
    theirs, record = image_question(made.reference), file_question(made.record, "content")
    clone = folder_question(made.folder)

    def judge(answers: Answers) -> Verdict:
        known, fact = made_of(file(answers, record).content), image(answers, theirs)
        paths = tuple(fill(path, answers.discovered) for path in (made.folder, made.record))
        named = known is not None and fact is not None and known.layers == fact.layers
        if known is None and folder(answers, clone).kind == "missing":
            return Verdict("ok", f"no {paths[0]}")
        actions = [
            Run(f"remove {made.reference}", Command.of("docker", "image", "rm", made.reference, timeout=300))
        ]
        actions = [
            *(actions if named else ()),
            Run(f"remove {paths[0]}", Command.of("rm", "-rf", "--", *paths, timeout=600)),
        ]
        words = f"{paths[0]}{f' and image {made.reference}' if named else ''} on {node.name}"
        return Verdict("change", words, tuple(actions), destroys=words)

    title = f"image {wanted.name}: remove what making it left"
    return Step("image", "purge-made", node.name, title, judge, (theirs, record, clone))


def _finished(wanted: RenderedImage, fact: ImageFact | None, facts: System) -> bool:
    """Whether the scripts' own image is there and says by its labels that it is the wanted one (a run was cut short after it)."""
    return bool(wanted.made and wanted.made.labels) and not difference(wanted, fact, facts)


def _off_record(wanted: RenderedImage, fact: ImageFact | None, answers: Answers, record: Question) -> str:
    """What the record of its making lacks; the record is written before the image gets our name."""
    known = made_of(file(answers, record).content)
    if known is None or known.mark != wanted.mark:
        return "is not on record as made here"
    return (
        "" if fact is not None and known.layers == fact.layers else "is another image than the one made here"
    )


def _no_room(wanted: RenderedImage, answers: Answers) -> Verdict | None:
    """Blocked beside a serving lane, which such scripts know nothing of, and without the memory that they need."""
    lanes = sorted({c.lane for c in containers(answers) if c.lane and c.running})
    if lanes:
        return Verdict(
            "blocked",
            f"the project's own steps need this node idle, and lane {', '.join(lanes)} runs",
            next_step=f"invoke stop --lane={lanes[0]}",
        )
    free = system(answers).memory_available
    if free >= wanted.memory:
        return guarded(free, wanted.guard, "the making of the image")
    return Verdict(
        "blocked",
        f"{gigabytes(free)} of memory are free; making the image needs {gigabytes(wanted.memory)}",
        next_step="end what holds it: ps -eo rss,pid,args --sort=-rss | head",
    )


def _action(wanted: RenderedImage, answers: Answers, *, name_only: bool = False) -> MakeImage:
    made, tree, here = wanted.made, wanted.trees[0], answers.discovered
    assert made is not None
    folder = fill(made.folder, here)
    out = ("sh", "-c", CHECK_OUT, "sparkyard-clone", folder, fill(tree.clone, here), tree.commit)
    steps = () if name_only else tuple(_step(folder, words, here) for words in made.steps)
    return MakeImage(
        reference=wanted.reference,
        made=made.reference,
        mark=wanted.mark,
        labels=made.labels,
        check_out=Command(out, env=git_words.NO_QUESTIONS, timeout=600),
        steps=steps,
        folder=folder,
        record=fill(made.record, here),
        prefix=f"{wanted.name}-",
        guard=wanted.guard,
    )


def _step(folder: str, words: tuple[str, ...], here: Mapping[str, str]) -> Command:
    return Command(("env", f"--chdir={folder}", *words), env=git_words.NO_QUESTIONS).filled(here)
