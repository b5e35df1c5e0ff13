"""One read-only script a node, one JSON answer, and what each answer means. Pure: nothing is run here.

``script`` and ``command`` say what to send, ``parse`` reads what came back; the small facts (files, images, containers,
folders, pings) have a question and a parser each. What a node says of itself as a whole is in ``system.py``.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sparkyard.command import Command
from sparkyard.errors import CouldNotCheck
from sparkyard.guard import node_script
from sparkyard.model import Node
from sparkyard.plan import Answer, Answers, Question
from sparkyard.sections import sections
from sparkyard.system import SYSTEM, discovered, system

CONTAINERS = Question("ask_containers")
LIBRARIES = ("facts.sh", "tree.sh", "sources.sh", "host.sh", "jobs.sh")
TIMED_OUT = 124


@functools.cache
def library() -> str:
    """The text of the shell functions, from beside the package or from inside it when it is installed."""
    return "\n".join(node_script(name) for name in LIBRARIES)


def script(questions: Sequence[Question]) -> bytes:
    """The whole text for ``sh -s``. Question N of the sequence gets the id N."""
    bad = [q.ask for q in questions if not (q.ask.startswith("ask_") and q.ask.replace("_", "").isalnum())]
    if bad:
        raise ValueError(f"not a question: {bad[0]}")
    asked = [Command(("ask", str(n), q.ask, *q.arguments)).line() for n, q in enumerate(questions)]
    images = [argument for q in questions if q.ask == "ask_image" for argument in q.arguments]
    at_once = [Command(("images_know", *images)).line()] if len(images) > 1 else []
    main = ["main() {", "answers_open", *at_once, *asked, "answers_close", "}", "main", ""]
    return (library() + "\n" + "\n".join(main)).encode()


def command(questions: Sequence[Question], timeout: float | None = 120.0) -> Command:
    """The command that asks them all; ``timeout`` in seconds is for the whole round trip."""
    return Command(("sh", "-s"), stdin=script(questions), timeout=timeout)


def parse(node: Node, questions: Sequence[Question], output: bytes) -> Answers:
    """The answers of a node, with what was discovered on it.

    Whatever a login shell printed in front is ignored. A question without an answer stays missing, so that
    ``Answers.of`` refuses it. Raises CouldNotCheck for a document that is damaged or was cut short.
    """
    document = _document(node.name, output)
    try:
        given = {questions[int(a["id"])]: _answer(a) for a in document["answers"]}
        home = str(document["home"])
    except (KeyError, IndexError, TypeError, ValueError, binascii.Error) as error:
        raise CouldNotCheck(
            f"the answer of the facts script is damaged: {error!r}", node=node.name
        ) from error
    answers = Answers(node.name, given, {"home": home})
    if SYSTEM not in given:
        return answers
    try:
        found = discovered(system(answers), node)
    except CouldNotCheck:
        found = {}  # whoever needs the facts meets the same error, with its step's name
    return Answers(node.name, given, {"home": home, **found})


def _document(node: str, output: bytes) -> Mapping[str, Any]:
    text = output.decode(errors="replace")
    start = text.find('{"version":')
    if start < 0:
        seen = text.strip()[-200:] or "nothing"
        raise CouldNotCheck(f"the facts script gave no answer; seen: {seen}", node=node)
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        raise CouldNotCheck("the answer of the facts script was cut short", node=node) from None
    if document.get("end") is not True or document.get("version") != 1:
        raise CouldNotCheck("the answer of the facts script is incomplete or of another version", node=node)
    return document  # type: ignore[no-any-return]


def _answer(entry: Mapping[str, Any]) -> Answer:
    out, err = (
        base64.b64decode(entry[key], validate=True).decode(errors="replace") for key in ("out", "err")
    )
    return Answer(int(entry["status"]), out, err)


def _of(answers: Answers, question: Question) -> Answer:
    """The answer; CouldNotCheck also when it ran out of its time."""
    answer = answers.of(question)
    if answer.status == TIMED_OUT:
        asked = " ".join((question.ask, *question.arguments))
        raise CouldNotCheck(f"no answer within its time limit: {asked}", node=answers.node)
    return answer


def _unclear(answers: Answers, what: str, answer: Answer) -> CouldNotCheck:
    said = (answer.err.strip() or answer.out.strip() or f"status {answer.status}")[:300]
    deaf = "docker daemon" in said.lower() and "permission denied" not in said.lower()
    next_step = f"on {answers.node}: sudo systemctl start docker" if deaf else ""
    return CouldNotCheck(f"{what}: {said}", node=answers.node, next_step=next_step)


# --- files and folders -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileFact:
    """A path on a node. ``kind`` is ``missing``, ``regular``, ``directory`` or ``other``.

    ``size`` in bytes; ``sha256`` of regular files; ``content`` only when it was asked for and is 64 KiB at most.
    """

    kind: Literal["missing", "regular", "directory", "other"]
    mode: int = 0
    size: int = 0
    sha256: str = ""
    content: bytes | None = field(default=None, repr=False)


def file_question(path: str, way: Literal["hash", "content"] = "hash") -> Question:
    return Question("ask_file", (path, way))


def file(answers: Answers, question: Question) -> FileFact:
    """The file fact. Raises CouldNotCheck when it could not be looked at or read."""
    answer = _of(answers, question)
    path = question.arguments[0]
    if answer.status and "No such file or directory" in answer.err and not answer.out:
        return FileFact("missing")
    lines = answer.out.splitlines()
    if answer.status or not lines:
        raise _unclear(answers, path, answer)
    kind, mode, size = lines[0].split("|")
    if not kind.startswith("regular"):
        return FileFact("directory" if kind == "directory" else "other", int(mode, 8), int(size))
    if len(lines) < 2:
        raise _unclear(answers, path, answer)
    if lines[1].startswith("content"):
        return _with_content(int(mode, 8), lines[1].removeprefix("content").strip())
    return FileFact("regular", int(mode, 8), int(size), sha256=lines[1].split()[0])


def _with_content(mode: int, encoded: str) -> FileFact:
    content = base64.b64decode(encoded)
    return FileFact("regular", mode, len(content), hashlib.sha256(content).hexdigest(), content)


@dataclass(frozen=True, slots=True)
class FolderFact:
    """A folder on a node, or that there is none. ``kind`` as in FileFact."""

    kind: Literal["missing", "directory", "other"]
    owner: str = ""
    writable: bool = False


def folder_question(path: str) -> Question:
    return Question("ask_folder", (path,))


def folder(answers: Answers, question: Question) -> FolderFact:
    """The folder fact. Raises CouldNotCheck when it could not be looked at."""
    answer = _of(answers, question)
    if answer.status and "No such file or directory" in answer.err:
        return FolderFact("missing")
    if answer.status or not answer.out:
        raise _unclear(answers, question.arguments[0], answer)
    kind, _, owner = answer.out.splitlines()[0].split("|")
    return FolderFact(
        "directory" if kind == "directory" else "other", owner, "writable" in answer.out.splitlines()
    )


# --- images and containers -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImageFact:
    """An image on a node. Its id may differ between nodes for the same content; its layers do not."""

    id: str
    layers: tuple[str, ...]
    architecture: str
    labels: Mapping[str, str] = field(default_factory=dict)
    digests: tuple[str, ...] = ()
    size: int = 0


def image_question(reference: str) -> Question:
    return Question("ask_image", (reference,))


def image(answers: Answers, question: Question) -> ImageFact | None:
    """The image, or None when the node has none of that reference. Raises CouldNotCheck when Docker cannot be asked."""
    answer = _of(answers, question)
    if answer.status and "no such image" in answer.err.lower():
        return None
    try:
        told = json.loads(answer.out)
        return ImageFact(
            id=told["id"],
            layers=tuple(told["layers"] or ()),
            architecture=told["architecture"],
            labels=told["labels"] or {},
            digests=tuple(told["digests"] or ()),
            size=told["size"] or 0,
        )
    except (ValueError, KeyError, TypeError):
        raise _unclear(answers, f"image {question.arguments[0]}", answer) from None


@dataclass(frozen=True, slots=True)
class ContainerFact:
    """A container on a node. All but ``name``, ``image`` and ``state`` are known only of those with our label, and of those on
    record (``scripted``: a kit's scripts started it for us, its labels are those of the record).

    ``state`` is Docker's word: created, running, paused, restarting, removing, exited or dead. Times as Docker gives
    them (RFC 3339); ``exit_code`` counts only when it is not running.
    """

    name: str
    image: str
    state: str
    id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    out_of_memory: bool = False
    error: str = ""
    started: str = ""
    finished: str = ""
    restarts: int = 0
    health: str = ""
    image_id: str = ""
    scripted: bool = False

    @property
    def lane(self) -> str:
        """The lane that it serves or works for; empty for containers that are not ours."""
        return self.labels.get("sparkyard.lane", "")

    @property
    def job(self) -> str:
        """The job that it runs; empty for ranks that serve."""
        return self.labels.get("sparkyard.job", "")

    @property
    def since(self) -> str:
        """When it was started, for people: ``2026-11-30 08:26:12 UTC``."""
        return f"{self.started[:19].replace('T', ' ')} UTC" if self.started else "a time that is not known"

    @property
    def running(self) -> bool:
        return self.state in {"running", "paused", "restarting"}


def containers(answers: Answers) -> tuple[ContainerFact, ...]:
    """Every container of the node. Raises CouldNotCheck when Docker cannot be asked."""
    from sparkyard.records import records, with_records  # noqa: PLC0415 - they are read from the same answer

    answer = _of(answers, CONTAINERS)
    details: dict[str, ContainerFact] = {}
    listed: dict[str, ContainerFact] = {}
    ours: set[str] = set()
    try:
        for line in filter(None, answer.out.splitlines()):
            if line.startswith('{"sparkyard"'):
                continue
            if line.startswith("{"):
                told = json.loads(line)
                details[told["id"]] = _container(told)
            else:
                id_, state, names, from_image, lane = line.split("|", 4)
                listed[id_] = ContainerFact(names.split(",")[0], from_image, state, id_)
                ours |= {id_} if lane else set()
    except (ValueError, KeyError, TypeError):
        raise _unclear(answers, "containers", answer) from None
    if answer.status and (not listed or "no such" not in answer.err.lower()):
        raise _unclear(answers, "containers", answer)
    gone = ours - details.keys()  # removed between the two calls
    found = (details.get(id_, fact) for id_, fact in listed.items() if id_ not in gone)
    return with_records(found, records(answers))


def _container(told: Mapping[str, Any]) -> ContainerFact:
    state = told["state"]
    return ContainerFact(
        name=told["name"].lstrip("/"),
        image=told["image"],
        state=state["Status"],
        id=told["id"],
        labels=told["labels"] or {},
        exit_code=state["ExitCode"],
        out_of_memory=bool(state.get("OOMKilled")),
        error=state.get("Error", ""),
        started=state.get("StartedAt", ""),
        finished=state.get("FinishedAt", ""),
        restarts=told["restarts"],
        health=(state.get("Health") or {}).get("Status", ""),
        image_id=told["image_id"],
    )


# --- ping ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PingFact:
    """Whether a packet of the asked size came back unfragmented, and whether a small one did."""

    large: bool
    small: bool
    said: str = ""


def ping_question(address: str, size: int) -> Question:
    return Question("ask_ping", (address, str(size)))


def ping(answers: Answers, question: Question) -> PingFact:
    """The ping fact. Raises CouldNotCheck when there is no ping to ask with."""
    answer = _of(answers, question)
    if answer.status == 127:
        raise CouldNotCheck("ping is not installed", node=answers.node)
    parts = sections(answer.out, answers.node)
    if "large" not in parts:
        raise _unclear(answers, "ping", answer)
    small = parts.get("small")
    large = parts["large"].status == 0
    return PingFact(large, large or (small is not None and small.status == 0), answer.err.strip())
