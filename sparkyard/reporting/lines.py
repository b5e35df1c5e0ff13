"""Events in words: what a person reads about each, as lines of styled spans. Pure; the width is in characters.

Prose is folded between words. Commands, diffs, log lines and next steps stay whole, so that they can be pasted.
"""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from sparkyard.events import Event
from sparkyard.recap import WORDS
from sparkyard.reporting import amounts

Span = tuple[str, str]
"""Text and its rich style."""
Line = tuple[Span, ...]

STYLES = {
    "ok": "green",
    "changed": "yellow",
    "would change": "yellow",
    "skipped": "cyan",
    "failed": "bold red",
    "unreachable": "bold red",
    "running": "dim",
    "note": "blue",
    "pass": "green",
    "fail": "bold red",
    "could not check": "bold red",
    "not supported (published)": "cyan",
}
EXITS = {
    1: "failed",
    2: "bad usage or configuration",
    3: "a verify check failed",
    4: "a node could not be reached",
    5: "another sparkyard holds the lock of a node",
    6: "changes pending",
    130: "interrupted",
}
INDENT = " " * 13
LONGEST = 2000
"""Characters of a question or an answer that are shown; the run record has the rest."""
ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean(text: Any) -> str:
    """Text that cannot steer the terminal: no escape sequences, no marks that turn the direction of writing, no control characters but tab
    and line feed.
    """
    return ESCAPES.sub("", str(text))


def fold(text: str, width: int, first: str = "", rest: str = INDENT) -> list[str]:
    """The text in lines of at most ``width`` characters, broken between words only."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def header(event: Event) -> list[Line]:
    """``download · lane A · spark-1, spark-2 · [CHECK MODE]``."""
    data = event.data
    parts = [str(data.get("verb") or event.message)]
    parts += [f"lane {data['lane']}"] if data.get("lane") else []
    parts += [", ".join(data["nodes"])] if data.get("nodes") else []
    parts += ["[CHECK MODE]"] if data.get("check") else []
    parts += ["STAND-IN"] if data.get("stand_in") else []
    return [((clean(" · ".join(parts)), "bold"),)]


def explained(event: Event) -> str:
    """Why, in the words of the event, without saying the title again."""
    title = str(event.data.get("title") or "")
    said: list[str] = []
    for text in (event.message, str(event.data.get("reason") or "")):
        words = text.removeprefix(title).removeprefix(":").strip()
        if words and not any(words in other for other in said):
            said.append(words)
    return "; ".join(said)


def step(event: Event, word: str, width: int) -> list[Line]:
    """The line of a step: Ansible's word, the node, what was done, and why when that fits."""
    title = str(event.data.get("title") or event.step)
    what, why = (title, explained(event)) if title else (explained(event), "")
    prose = clean(" · ".join(part for part in (what, why) if part))
    seconds = event.data.get("seconds")
    prose += f" ({amounts.span(float(seconds))})" if seconds and float(seconds) >= 1 else ""
    place = f"{event.node}  " if event.node else ""
    first, *more = fold(prose, width, first=f"{word:<13}{place}")
    return [
        ((first[: len(word)], STYLES.get(word, "")), (first[len(word) :], "")),
        *(((line, ""),) for line in more),
    ]


def indented(lines: Iterable[Any], style: str = "") -> list[Line]:
    """Lines that stay whole, below the step that they belong to."""
    return [((f"{INDENT}{line}", style),) for text in lines for line in clean(text).splitlines() or [""]]


def diff(path: str, before: str, after: str) -> list[Line]:
    """A unified diff: with + and -, so that it can be read without colour."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (wanted)", lineterm=""
    )
    return [((INDENT + clean(line), styles.get(line[:1], "")),) for line in lines]


def shown(value: Any) -> str:
    """A question or answer as text: JSON for data; cut, and said so, when it is very long."""
    text = clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text) - LONGEST} more characters in the run record)"


def verify(data: Mapping[str, Any], width: int) -> list[Line]:
    """What was asked, what came back, and the result of a verify check."""
    lines: list[Line] = []
    for key in ("asked", "answered", "result"):
        if key in data:
            style = STYLES.get(str(data[key]), "") if key == "result" else ""
            folded = fold(shown(data[key]), width, f"{INDENT}{key:<10}", INDENT + " " * 10)
            lines += [((text, style),) for text in folded]
    return lines


def below(event: Event, width: int, *, actions: bool) -> list[Line]:
    """Everything under the line of an event."""
    data = event.data
    lines = indented(data.get("actions", ())) if actions else []
    for path, before, after in data.get("diff", ()):
        lines += diff(path, before, after)
    lines += verify(data, width)
    lines += indented(data.get("details", ()))
    return lines + (indented([f"next: {data['next']}"], "bold") if data.get("next") else [])


def recap(event: Event, width: int) -> list[Line]:
    """The closing lines: a line a node, the time, the record, and why the exit status is not 0."""
    data = event.data
    nodes: Mapping[str, Mapping[str, int]] = data.get("nodes", {})
    time = f" · {amounts.span(float(data['seconds']))}" if "seconds" in data else ""
    lines: list[Line] = [((f"recap{time}", "bold"),)]
    longest = max(map(len, nodes), default=0)
    lines += [
        counters(f"{node:<{longest}}", counts, check=bool(data.get("check")))
        for node, counts in nodes.items()
    ]
    if images := data.get("shipped"):
        moved, left = (amounts.size(images[name]) for name in ("moved", "left_out"))
        lines.append(((f"images: {moved} moved, {left} left out, being there already", ""),))
    if data.get("stand_in"):
        lines.append((("STAND-IN: scripted engines answered in place of the real ones", "bold yellow"),))
    if data.get("record"):
        lines.append(((f"run record: {clean(data['record'])}", ""),))
    status = int(data.get("status") or 0)
    if status:
        why = clean(event.message) or EXITS.get(status, "failed")
        lines += [((text, "bold"),) for text in fold(f"exit status {status}: {why}", width, rest="  ")]
    return lines


def counters(node: str, counts: Mapping[str, int], *, check: bool) -> Line:
    """``spark-1  ok=12 changed=0 skipped=0 failed=0 unreachable=0``."""
    words = ["ok", "changed", "skipped", "failed", "unreachable"]
    words += ["would-change"] if check or counts.get("would-change") else []
    spans: list[Span] = [(f"{node} ", "")]
    for word in words:
        number = counts.get(word, 0)
        spans += [
            (" ", ""),
            (f"{word}={number}", STYLES.get(word.replace("-", " "), "") if number else "dim"),
        ]
    return tuple(spans)


def lines_of(event: Event, width: int, verbose: int = 0) -> list[Line]:
    """Every line that a person reads about the event; none for progress, which has a place of its own."""
    if event.type == "run-start":
        return header(event)
    if event.type == "recap":
        return recap(event, width)
    if "heading" in event.data:
        return [((text, "bold"),) for text in fold(clean(event.message), width, rest="  ")]
    if event.type == "step-output" or "line" in event.data:
        wanted = "line" in event.data and (not event.step or verbose >= 2)
        return output(event) if wanted else []
    word = "running" if event.type == "step-start" else WORDS.get(event.type, "note").replace("-", " ")
    return step(event, word, width) + below(event, width, actions=shows_actions(event, verbose))


def shows_actions(event: Event, verbose: int) -> bool:
    """Whether the commands of a step are shown below its line."""
    return event.type in ("step-would-change", "step-failed") or verbose >= 1


def output(event: Event) -> list[Line]:
    """A line that a node wrote; alone (``invoke logs``) behind its node, and its service where the message has that."""
    text = str(event.data["line"])
    if event.step:
        return indented([text], "dim")
    told = event.message.removesuffix(text) if event.message.endswith(f" | {text}") else ""
    return [((clean(told) or (f"{event.node} | " if event.node else ""), "dim"), (clean(text), ""))]
