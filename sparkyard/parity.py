"""Whether a chat template writes the same prompts as the checkpoint's own encoder: the suite, the comparison, the record.

A case goes through two doors: ``template`` renders its messages as they are, ``engine`` as TensorFold hands them over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparkyard import chat_rendering
from sparkyard.command import Command
from sparkyard.errors import ConfigError, CouldNotCheck, Fault
from sparkyard.guard import node_script

Door = Literal["template", "engine"]
DOORS: tuple[Door, ...] = ("template", "engine")
NOBODY = "65534:65534"
INSIDE = "/encoding"
LIMIT = 120.0
"""Seconds for the whole suite in its container."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation.

    Attributes:
        request: messages, tools, response_format, thinking, effort, as the encoder's runner takes them.
        expected: the prompt; None where there is none, because it must be refused.
        gap: door → why the template cannot write the same there.
        refused_here: refused on purpose, although the encoder writes it.
    """

    name: str
    about: str
    request: Mapping[str, Any]
    expected: str | None
    gap: Mapping[str, str] = field(default_factory=dict)
    refused_here: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: ``equal``, ``differs``, or ``gap`` where it is known that it cannot be equal."""

    case: Case
    result: Literal["equal", "differs", "gap"]
    words: str = ""


def suite_folder() -> Path:
    """The folder of the suite: inside the package when it is installed, else in the clone."""
    package = Path(__file__).resolve().parent
    installed = package / "share" / "parity"
    return installed if installed.is_dir() else package.parent / "tests" / "data" / "parity"


def suite(folder: Path | None = None) -> tuple[Case, ...]:
    """Every case, in the order of the files' names. Raises ConfigError for a file that cannot be read."""
    found: list[Case] = []
    for path in sorted((folder or suite_folder()).glob("*.json")):
        try:
            found += [_case(one) for one in json.loads(path.read_text(encoding="utf-8"))]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                [Fault(str(path), 0, "", f"is no suite of conversations: {error!r}")]
            ) from error
    return tuple(found)


def _case(one: Mapping[str, Any]) -> Case:
    keys = ("messages", "tools", "response_format", "thinking", "effort")
    request = {key: one[key] for key in keys if key in one}
    return Case(
        one["name"],
        one["about"],
        request,
        one["expected"],
        one.get("gap", {}),
        one.get("refused_here", False),
    )


def rendered(template: str, case: Case, door: Door) -> str | None:
    """The prompt that the template writes; None when it refuses."""
    request = case.request
    messages = request["messages"]
    names: dict[str, Any] = {"tools": request.get("tools"), "enable_thinking": request.get("thinking", True)}
    names |= {"reasoning_effort": request["effort"]} if "effort" in request else {}
    names |= {"response_format": request["response_format"]} if "response_format" in request else {}
    handed = messages if door == "template" else chat_rendering.handed_over(messages)
    try:
        return chat_rendering.render(template, handed, **names)
    except chat_rendering.Refused:
        return None


def compare(template: str, cases: Sequence[Case], encoder: Sequence[str | None]) -> Iterator[Outcome]:
    """Each case's outcome against what the encoder wrote; None is a refusal."""
    for case, prompt in zip(cases, encoder, strict=True):
        wanted = None if case.refused_here else prompt
        open_ = [door for door in DOORS if door not in case.gap]
        wrong = [door for door in open_ if rendered(template, case, door) != wanted]
        if wrong:
            yield Outcome(case, "differs", f"not what the encoder writes ({' and '.join(wrong)})")
        elif case.gap or case.refused_here:
            yield Outcome(case, "gap", next(iter(case.gap.values()), "refused on purpose"))
        else:
            yield Outcome(case, "equal")


# --- the encoder in its container --------------------------------------------------------------------------------------


def encoder_command(image: str, folder: str, cases: Sequence[Case]) -> Command:
    """Words that run the encoder in ``folder`` over the cases: no network, nothing to write to, a plain user, no rights."""
    program = node_script("encode.py")
    words = (
        *("docker", "run", "--rm", "--interactive", "--pull", "never", "--network", "none", "--read-only"),
        *("--user", NOBODY, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--memory", "2g", "--pids-limit", "64", "--label", "sparkyard.job=parity"),
        *("--mount", f"type=bind,source={folder},target={INSIDE},readonly"),
        *("--entrypoint", "python3", image, "-I", "-B", "-c", program, f"{INSIDE}/encoding.py"),
    )
    asked = json.dumps([case.request for case in cases]).encode()
    return Command(words, stdin=asked, timeout=LIMIT)


def encoder_prompts(out: bytes, count: int) -> tuple[str | None, ...]:
    """What the encoder wrote, None for each refusal. Raises CouldNotCheck for anything else than ``count`` answers."""
    try:
        answers = json.loads(out)
        found = tuple(None if "refused" in one else str(one["prompt"]) for one in answers)
    except (ValueError, KeyError, TypeError) as error:
        raise CouldNotCheck(f"the encoder's answer cannot be read: {error!r}") from error
    if len(found) != count:
        raise CouldNotCheck(f"the encoder gave {len(found)} answers, expected {count}")
    return found
