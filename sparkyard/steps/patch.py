"""Steps that place edited texts on a lane's nodes: each is pristine, patched, or neither. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkyard.actions import WriteFile
from sparkyard.command import fill
from sparkyard.facts import FileFact, file, file_question
from sparkyard.patching import Patched, difference, standing
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedLane, RenderedPatch

Texts = Mapping[str, Patched]
"""Name → the text in both states, for those that were fetched."""


def patch_steps(rendered: RenderedLane, texts: Texts) -> tuple[Step, ...]:
    """A step for each text and node: the patched text must lie there, judged by sha256.

    Without the text itself (nothing was fetched on this machine) the locked hash still tells right from wrong.
    """
    return tuple(_step(each, texts.get(each.name)) for each in rendered.patches)


def question(patch: RenderedPatch) -> Question:
    """What to ask of a placed text: its content, so that a difference can be shown."""
    return file_question(patch.path, "content")


def _step(wanted: RenderedPatch, text: Patched | None) -> Step:
    asked = question(wanted)

    def judge(answers: Answers) -> Verdict:
        return _verdict(wanted, text, file(answers, asked), answers)

    title = f"patch {wanted.name}: place {wanted.path.rpartition('/')[2]}"
    return Step("patch", wanted.name, wanted.node, title, judge, (asked,))


def _verdict(wanted: RenderedPatch, text: Patched | None, fact: FileFact, answers: Answers) -> Verdict:
    path = fill(wanted.path, answers.discovered)
    patched = text.known.patched if text else wanted.patched
    if fact.kind == "directory":
        return _folder(path)
    if fact.kind == "other":
        return Verdict("blocked", f"{path} is no regular file", next_step=f"look at it: ls -ld {path}")
    if fact.kind == "regular" and patched and fact.sha256 == patched:
        return Verdict("ok", f"{path} is patched", data={"sha256": patched, "standing": "patched"})
    if text is None:
        return Verdict("change", _reason(path, fact, "neither"), data={"standing": _stands(fact, text)})
    stands = _stands(fact, text)
    action = WriteFile(path, text.patched)
    before = (fact.content or b"").decode(errors="replace")
    verdict = Verdict(
        "change",
        _reason(path, fact, stands),
        (action,),
        ((path, before, text.patched.decode()),),
        data={"standing": stands, "sha256": fact.sha256},
    )
    return _destroying(verdict, wanted, path, fact, text) if stands == "neither" else verdict


def _stands(fact: FileFact, text: Patched | None) -> str:
    if fact.kind == "missing":
        return "missing"
    return standing(fact.sha256, text.known) if text else "neither"


def _reason(path: str, fact: FileFact, stands: str) -> str:
    if fact.kind == "missing":
        return f"{path} is missing"
    if stands == "pristine":
        return f"{path} is pristine, without the recipe's edits"
    return f"{path} is neither pristine nor patched: sha256 {fact.sha256}"


def _destroying(verdict: Verdict, wanted: RenderedPatch, path: str, fact: FileFact, text: Patched) -> Verdict:
    """The verdict for a text that nobody knows: the difference is shown, and it is replaced only after a yes."""
    near = text.patched if fact.content is None else _nearer(fact.content, text)
    shown = difference(near, fact.content or b"", path)
    words = f"{path} on {wanted.node} is neither pristine nor patched, and would be replaced"
    return replace(verdict, destroys=words, details=shown)


def _nearer(content: bytes, text: Patched) -> bytes:
    """The state that a text differs least from."""
    lines = set(content.splitlines())
    return min((text.patched, text.pristine), key=lambda known: len(lines ^ set(known.splitlines())))


def _folder(path: str) -> Verdict:
    return Verdict(
        "blocked",
        f"{path} is a folder; a container that was started without the file makes one",
        next_step=f"if it is empty: sudo rmdir {path}",
    )


def pristine_steps(rendered: RenderedLane, texts: Texts) -> tuple[Step, ...]:
    """A step for each text and node that puts the pristine text back; nodes that have none are left alone."""
    return tuple(_back(each, texts[each.name]) for each in rendered.patches if each.name in texts)


def _back(wanted: RenderedPatch, text: Patched) -> Step:
    asked = question(wanted)

    def judge(answers: Answers) -> Verdict:
        path, fact = fill(wanted.path, answers.discovered), file(answers, asked)
        if fact.kind == "missing" or fact.sha256 == text.known.pristine:
            return Verdict("ok", f"{path} is {'not there' if fact.kind == 'missing' else 'pristine'}")
        if fact.sha256 != text.known.patched:
            return Verdict("skipped", f"{path} is neither pristine nor patched, and stays as it is")
        return Verdict("change", f"{path} is patched", (WriteFile(path, text.pristine),))

    title = f"patch {wanted.name}: put {wanted.path.rpartition('/')[2]} back"
    return Step("patch", wanted.name, wanted.node, title, judge, (asked,))
