"""Steps that bring the git sources of an image to the head, each at its locked commit. Pure."""

from __future__ import annotations

from collections.abc import Callable

from sparkyard.actions_image import GitFetch, GitTree, MakeContext
from sparkyard.command import fill
from sparkyard.errors import CouldNotCheck
from sparkyard.manifest import COMMIT
from sparkyard.model import Node
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedImage, RenderedTree

NO_PROGRAM = 127
Built = Callable[[Answers], bool]
"""Whether the image is there already, so that its sources are not needed."""


def source_steps(
    image: RenderedImage, head: Node, built: Built, asked: tuple[Question, ...], verb: str = "lock"
) -> tuple[Step, ...]:
    """One step a source. ``asked`` is what ``built`` reads."""
    return tuple(_step(image, tree, head, built, asked, verb) for tree in image.trees)


def _step(
    image: RenderedImage, tree: RenderedTree, head: Node, built: Built, asked: tuple[Question, ...], verb: str
) -> Step:
    question = Question("ask_git", (tree.clone, tree.commit))

    def judge(answers: Answers) -> Verdict:
        if not COMMIT.fullmatch(tree.commit):
            return Verdict(
                "blocked", f"{tree.url} is not locked yet: {tree.commit}", next_step=f"invoke {verb}"
            )
        if built(answers):
            return Verdict("ok", f"not needed: {image.reference} is there")
        answer = answers.of(question)
        if answer.status == 0:
            return Verdict("ok", f"{tree.url} at {tree.commit} is there")
        if answer.status == NO_PROGRAM:
            return Verdict("blocked", "git is not installed", next_step="sudo apt install git")
        if answer.status != 1:
            raise CouldNotCheck(f"git source {tree.name}: status {answer.status}", node=answers.node)
        fetch = GitFetch(tree.url, tree.commit, fill(tree.clone, answers.discovered), tree.place)
        return Verdict("change", f"{tree.url} at {tree.commit} is missing", (fetch,))

    title = f"image {image.name}: source {tree.name}"
    return Step("image", f"{image.name}-source-{tree.name}", head.name, title, judge, (*asked, question))


def context(image: RenderedImage, answers: Answers) -> tuple[MakeContext, ...]:
    """The action that puts the build context together; none for a build without git sources, whose context is the recipe's."""
    if not image.trees:
        return ()
    here = answers.discovered
    trees = tuple(
        GitTree(fill(tree.clone, here), tree.commit, fill(tree.folder, here)) for tree in image.trees
    )
    return (MakeContext(image.source, fill(image.context, here), trees, prefix=f"{image.name}-"),)
