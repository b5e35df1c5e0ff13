"""Steps that put a lane's rendered files on their nodes. Pure."""

from __future__ import annotations

import hashlib

from sparkyard.actions import WriteFile
from sparkyard.command import fill, mask
from sparkyard.docker_words import MARK
from sparkyard.facts import FileFact, file, file_question
from sparkyard.model import RenderedFile
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.system import SYSTEM


def file_steps(rendered: RenderedLane) -> tuple[Step, ...]:
    """A step for each rendered file of each node; judged by type, sha256 and mode."""
    return tuple(_step(each, rendered.secrets) for each in rendered.files)


def question(rendered: RenderedFile) -> Question:
    """What to ask of a rendered file: its content where it may be shown, else its sha256 alone."""
    return file_question(rendered.path, "hash" if rendered.secret else "content")


def _step(rendered: RenderedFile, secrets: tuple[str, ...]) -> Step:
    asked = question(rendered)

    def judge(answers: Answers) -> Verdict:
        content = fill(rendered.content, answers.discovered)
        unknown = sorted(set(MARK.findall(content + fill(rendered.path, answers.discovered))))
        if unknown:
            return not_discovered(unknown, answers.node)
        return _compare(rendered, file(answers, asked), content, answers, secrets)

    title = f"file {rendered.name}: write {rendered.path.rpartition('/')[2]}"
    told = (SYSTEM,) if set(MARK.findall(rendered.content + rendered.path)) - {"home"} else ()
    return Step("file", rendered.name, rendered.node, title, judge, (asked, *told))


def not_discovered(names: list[str], node: str) -> Verdict:
    """Blocked: the node did not say what a file or a container needs to know."""
    which = ", ".join(names)
    return Verdict(
        "blocked",
        f"{which} could not be discovered on {node}",
        next_step=f"invoke start --check --only=preflight shows what {node} has; compare it with link: in the inventory",
    )


def _compare(
    wanted: RenderedFile, fact: FileFact, content: str, answers: Answers, secrets: tuple[str, ...]
) -> Verdict:
    path = fill(wanted.path, answers.discovered)
    if fact.kind in ("directory", "other"):
        return Verdict(
            "blocked",
            f"{path} is not a regular file but a {fact.kind if fact.kind == 'directory' else 'special file'}",
            next_step=f"look at it and move it away: ls -ld {path}",
        )
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    reason = _difference(wanted, fact, sha256)
    if not reason:
        return Verdict("ok", f"{path} is as wanted", data={"sha256": sha256})
    before = (fact.content or b"").decode(errors="replace")
    diff = () if wanted.secret else ((path, mask(before, secrets), mask(content, secrets)),)
    action = WriteFile(path, content.encode(), wanted.mode)
    return Verdict("change", f"{path} {reason}", (action,), diff)


def _difference(wanted: RenderedFile, fact: FileFact, sha256: str) -> str:
    if fact.kind == "missing":
        return "is missing"
    if fact.sha256 != sha256:
        return "has other content"
    if fact.mode & 0o7777 != wanted.mode:
        return f"has mode {fact.mode:04o}, not {wanted.mode:04o}"
    return ""
