"""The clone of a kit on the head, and whether the kit's own ssh works. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparkyard import git_words
from sparkyard.actions import Run
from sparkyard.actions_image import GitFetch
from sparkyard.command import Command, fill
from sparkyard.model import Lane, Node
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.steps.scripts_found import checked_out, clone_question

NO_PROGRAM = 127
CHECK_OUT = """
set -eu
folder=$1 bare=$2 commit=$3
[ -d "$folder/.git" ] || git init --quiet -- "$folder"
cd -- "$folder"
git fetch --quiet --no-tags "$bare" "refs/sparkyard/$commit"
git checkout --quiet --force --detach "$commit"
"""
"""Brings the clone to a commit that the bare one has (sh): $1 clone, $2 bare clone, $3 commit. Untracked files stay."""


def clone_steps(lane: Lane, rendered: RenderedLane, needs: Sequence[str] = ()) -> tuple[Step, ...]:
    """The kit's repository at its pin, in a clone on the head; none for a lane without scripts."""
    if rendered.scripts is None:
        return ()
    kit, head = rendered.scripts, lane.head
    asked = clone_question(rendered)

    def judge(answers: Answers) -> Verdict:
        answer = answers.of(asked)
        if answer.status == NO_PROGRAM:
            return Verdict("blocked", "git is not installed", next_step="sudo apt install git")
        here, changed = checked_out(answers, rendered), answer.out.splitlines()[1:]
        if here == kit.commit and not changed:
            return Verdict("ok", f"{kit.url} is at {kit.commit}")
        reason = _standing(here, changed, kit.commit)
        root, folder = (fill(text, answers.discovered) for text in (head.root, kit.folder))
        bare = git_words.bare_folder(root, kit.url)
        fetch = GitFetch(kit.source, kit.commit, bare, kit.url)
        words = ("sh", "-c", CHECK_OUT, "sparkyard-clone", folder, bare, kit.commit)
        out = Run(f"check out {kit.commit}", Command(words, env=git_words.NO_QUESTIONS, timeout=120))
        return Verdict("change", f"the kit's clone {reason}", (fetch, out))

    step = Step(
        "file", "clone", head.name, f"lane {lane.name}: the kit's repository", judge, (asked,), tuple(needs)
    )
    return (step,)


def ssh_steps(lane: Lane, rendered: RenderedLane) -> tuple[Step, ...]:
    """Whether the kit's own ssh, which knows nothing of ours, reaches each worker; a requirement of a start."""
    if rendered.scripts is None:
        return ()
    pairs = zip(lane.workers, rendered.scripts.workers, strict=True)
    return tuple(_ssh_step(lane.head, node, target) for node, target in pairs)


def _ssh_step(head: Node, worker: Node, target: str) -> Step:
    asked = Question("ask_ssh", (target,))

    def judge(answers: Answers) -> Verdict:
        answer = answers.of(asked)
        if answer.status == 0:
            return Verdict("ok", f"ssh {target} works")
        said = answer.err.strip().splitlines()[-3:] or [f"status {answer.status}"]
        return Verdict(
            "blocked",
            f"ssh {target} does not work without a question, and the kit's scripts need it",
            next_step=f"ssh {target} once, and compare the fingerprint with invoke trust",
            details=tuple(said),
        )

    title = f"preflight: the kit's own ssh reaches {worker.name}"
    return Step("preflight", f"ssh-{worker.name}", head.name, title, judge, (asked,))


def _standing(here: str, changed: Sequence[str], commit: str) -> str:
    if not here:
        return f"is not there yet: {commit} is to come"
    if here != commit:
        return f"is at {here}; expected {commit}"
    return f"is at {commit}, and {len(changed)} of its files {'was' if len(changed) == 1 else 'were'} changed"
