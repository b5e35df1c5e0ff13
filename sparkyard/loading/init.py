"""``invoke init``: questions, answers, and the text of a new ``hosts.yml``. Writing it is ``init_file``'s."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkyard.errors import UsageError
from sparkyard.loading import kinds
from sparkyard.loading.phrases import did_you_mean, quoted
from sparkyard.loading.scalars import is_text
from sparkyard.loading.variables import SCALARS

SIZES = ("2", "4")
_PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
Ask = Callable[[str, str], str]
"""Asks a person: the question and the answer taken when nothing is typed; gives the answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that ``init`` needs to know.

    Attributes:
        name: of the answer, as in ``--set spark-2.host=10.1.2.3``.
        text: what a person is asked.
        default: taken when nothing is said; empty when something must be.
        check: gives the fault of an answer, or nothing.
    """

    name: str
    text: str
    default: str
    check: kinds.Check


def _size(value: object) -> str:
    return "" if value in SIZES else f"2 or 4 is expected, found {quoted(str(value))}"


def _hcas(value: object) -> str:
    names = split(str(value))
    return "" if names and not any(map(kinds.word, names)) else "names separated by commas are expected"


LANES: Mapping[int, str] = {2: "A", 4: "B"}
"""Number of Sparks to the lane that is proposed for them: the daily lane of the two-Spark guide, and of the four-engine post."""
FIRST = Question("nodes", "How many Sparks (2 or 4)?", "2", _size)


def split(text: str) -> list[str]:
    """The names of a comma-separated answer."""
    return [part.strip() for part in text.split(",") if part.strip()]


def questions(count: int) -> tuple[Question, ...]:
    """Everything asked for that many Sparks, the head's first."""
    general = Question("lane", "Which lane is used when none is given?", LANES[count], SCALARS["lane"])
    return (general, *(question for rank in range(count) for question in _of_node(rank)))


def _of_node(rank: int) -> tuple[Question, ...]:
    name = f"spark-{rank + 1}"
    ssh = (
        Question(f"{name}.host", f"{name}: host name or address for ssh?", f"{name}.local", kinds.word),
        Question(f"{name}.user", f"{name}: user for ssh?", "spark", kinds.word),
    )
    link = (
        Question(
            f"{name}.address", f"{name}: IPv4 address of its RoCE link?", f"10.0.0.{rank + 1}", kinds.ipv4
        ),
        Question(f"{name}.interface", f"{name}: interface of the link?", "enp1s0f1np1", kinds.word),
        Question(f"{name}.hcas", f"{name}: RDMA devices of the port?", "rocep1s0f1,roceP2p1s0f1", _hcas),
    )
    return link if rank == 0 else (*ssh, *link)


def gather(given: Mapping[str, str], ask: Ask | None) -> dict[str, str]:
    """Every answer: as given by flags, else as asked, else the default.

    ``ask`` is None where nobody can be asked. Raises UsageError for an answer or a name that is wrong; a person is asked again.
    """
    nodes = _answer(FIRST, given, ask)
    asked = questions(int(nodes))
    known = [FIRST.name, *(question.name for question in asked)]
    for name in given:
        if name not in known:
            raise UsageError(f"init: {name} is not a known answer{did_you_mean(name, known)}")
    return {FIRST.name: nodes, **{question.name: _answer(question, given, ask) for question in asked}}


def _answer(question: Question, given: Mapping[str, str], ask: Ask | None) -> str:
    if question.name in given:
        if fault := question.check(given[question.name]):
            raise UsageError(f"init: {question.name}: {fault}")
        return given[question.name]
    if ask is None:
        return question.default
    text = question.text
    while fault := question.check(answer := ask(text, question.default).strip() or question.default):
        text = f"{fault}. {question.text}"
    return answer


def hosts_text(answers: Mapping[str, str]) -> str:
    """The text of ``hosts.yml`` for complete answers."""
    count = int(answers[FIRST.name])
    pair = "" if count == 2 else "\n      vars:\n        lanes: {kit: {nodes: [spark-1, spark-2]}}\n"
    nodes = "".join(_node_text(rank, answers) for rank in range(count))
    return (
        "# Written by `invoke init`; yours to edit. `invoke config` prints every value with the line that set it.\n"
        f"all:\n  vars: {{lane: {_word(answers['lane'])}, revert_to: kit}}\n"
        f"  children:\n    sparks:\n      hosts:\n{nodes}{pair}"
    )


def _node_text(rank: int, answers: Mapping[str, str]) -> str:
    key = f"spark-{rank + 1}"
    said = {
        name: answers.get(f"{key}.{name}", "") for name in ("host", "user", "address", "interface", "hcas")
    }
    hcas = ", ".join(_word(name) for name in split(said["hcas"]))
    reach = (
        "          ansible_connection: local\n"
        if rank == 0
        else f"          ansible_host: {_word(said['host'])}\n          ansible_user: {_word(said['user'])}\n"
    )
    link = f"{{address: {_word(said['address'])}, interface: {_word(said['interface'])}, hcas: [{hcas}]}}"
    return f"        spark-{rank + 1}:\n{reach}          rank: {rank}\n          link: {link}\n"


def _word(text: str) -> str:
    """The text as YAML that every reader takes for text."""
    if _PLAIN.fullmatch(text) and is_text(text):
        return text
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
