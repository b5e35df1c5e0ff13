"""Replies of the API: streams put together, tokens counted, verify checks judged. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkyard.expectations import distinct_faults, judge_all, shortened
from sparkyard.recipe import CheckSpec
from sparkyard.world import Result

STATUS_PATH = "http_status"
"""The path by which a check may expect another HTTP status than a 2xx."""
ANSWERS = 8
"""Replies of one check that are shown; the others are counted."""
DEEPEST = 200
"""Levels of objects and lists in a reply: no API has more, and Python reads and writes only some hundreds."""
WORST_FIRST: tuple[Result, ...] = ("fail", "could not check", "not supported (published)", "pass")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. ``unheard`` says why there is no usable reply: ``late`` that the time limit was reached, ``refused`` that nothing listens."""

    status: int = 0
    document: Any = None
    seconds: float = 0.0
    unheard: str = ""
    late: bool = False
    text: str = ""
    refused: bool = False


def parsed(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for what is none, or is nested more deeply than can be written again."""
    try:
        value = json.loads(text)
    except RecursionError:
        value, deep = None, True
    else:
        deep = _deeper(value, DEEPEST)
    if deep:
        raise ValueError(f"JSON that is nested deeper than {DEEPEST} levels")
    return value


def _deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        parts = [
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        level = [child for part in parts for child in part]
        if not level:
            return False
    return True


class Assembly:
    """A streamed reply, fed line by line (server-sent events), as one document."""

    def __init__(self) -> None:
        self.chunks = 0
        self.done = False
        self.error: Any = None
        self._usage: Any = None
        self._finish: str | None = None
        self._first: float | None = None
        self._text = {"content": "", "reasoning": ""}
        self._calls: dict[int, dict[str, Any]] = {}

    def feed(self, line: str, seconds: float) -> None:
        """Take one line; ``seconds`` since the request was sent. Raises ValueError for data that is not JSON, or no chunk."""
        if not line.startswith("data:"):
            return
        data = line[5:].strip()
        if data == "[DONE]":
            self.done = True
            return
        event = parsed(data)
        if not isinstance(event, dict):
            raise ValueError(f"a chunk that is no object: {data[:80]}")  # noqa: TRY004 - as any data that is not as promised
        self.error = event.get("error", self.error)
        self._usage = event.get("usage") or self._usage
        try:
            for choice in event.get("choices") or ():
                self._take(choice, seconds)
        except (AttributeError, TypeError, ValueError):  # a text where an object belongs, and the like
            raise ValueError(f"a chunk of another form: {data[:80]}") from None

    def _take(self, choice: Mapping[str, Any], seconds: float) -> None:
        self.chunks += 1
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or {}
        said = delta.get("content") or choice.get("text") or ""
        thought = delta.get("reasoning") or delta.get("reasoning_content") or ""
        calls = delta.get("tool_calls") or []  # some engines send an empty list with every delta
        if self._first is None and (said or thought or calls):
            self._first = seconds
        self._text["content"] += said
        self._text["reasoning"] += thought
        for call in calls:
            self._call(call)

    def _call(self, part: Mapping[str, Any]) -> None:
        call = self._calls.setdefault(
            int(part.get("index") or 0),
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    @property
    def whole(self) -> bool:
        """Whether the stream came to its end: what was cut short proves nothing."""
        return self.done

    def document(self) -> dict[str, Any]:
        """content, reasoning, chunks, usage, finish_reason, tool_calls, first_token_seconds. Tokens are in usage alone."""
        return {
            **self._text,
            "chunks": self.chunks,
            "usage": self._usage,
            "finish_reason": self._finish,
            "tool_calls": [self._calls[index] for index in sorted(self._calls)],
            "first_token_seconds": self._first,
            **({"error": self.error} if self.error is not None else {}),
        }


def completion_tokens(document: Any) -> int | None:
    """The number of generated tokens as the server counted it; None when it does not say. Chunks are never counted."""
    usage = document.get("usage") if isinstance(document, dict) else None
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def generated(document: Any) -> bool:
    """Whether a whole (not streamed) reply holds at least one generated token."""
    if (completion_tokens(document) or 0) >= 1:
        return True
    first = _choice(document)
    message = _message(first)
    fields = ("content", "reasoning", "reasoning_content", "tool_calls")
    return bool(first.get("text") or any(message.get(name) for name in fields))


def _choice(document: Any) -> Mapping[str, Any]:
    """The first choice of a reply; empty where it has none of the usual form."""
    choices = document.get("choices") if isinstance(document, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, dict) else {}


def model_hint(asked: str, listed: Sequence[str]) -> str:
    """What is wrong with a model's name, given the ids that the server lists; empty when it is among them."""
    if asked in listed:
        return ""
    ids = ", ".join(listed) or "no model"
    alike = next((name for name in listed if name.lower() == asked.lower()), None)
    if alike:
        return f"the server lists {alike}; {asked} differs from it in case alone, and case counts"
    return f"the server lists {ids}; asked was {asked}"


def listed_models(document: Any) -> tuple[str, ...]:
    """The ids in a reply of /v1/models; empty when it is none."""
    data = document.get("data") if isinstance(document, dict) else None
    entries = data if isinstance(data, list) else ()
    return tuple(str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a check with its reasons and what came back, shortened."""

    result: Result
    faults: tuple[str, ...] = ()
    answered: str = ""
    hints: tuple[str, ...] = field(default=())


def judge_reply(check: CheckSpec, reply: Reply) -> Judgement:
    """Judge one reply of a check."""
    answered = described(reply)
    if reply.late:
        return Judgement("fail", (f"no whole answer within {check.timeout:g} s",), answered)
    if reply.unheard:
        return Judgement("could not check", (reply.unheard,), answered)
    faults = _faults(check, reply)
    if not faults:
        return Judgement("pass", (), answered)
    if check.not_supported and _says_unsupported(reply.status):
        return Judgement(
            "not supported (published)", (*faults, f"published: {check.not_supported}"), answered
        )
    return Judgement("fail", faults, answered, hints(reply.document))


def _faults(check: CheckSpec, reply: Reply) -> tuple[str, ...]:
    document = reply.document
    if any(expect.path == STATUS_PATH for expect in check.expect):
        document = {STATUS_PATH: reply.status, **(document if isinstance(document, dict) else {})}
    elif not 200 <= reply.status < 300:
        return (f"HTTP status {reply.status}; expected 200: {shortened(document or reply.text)}",)
    elif document is None:
        return (f"the reply is not JSON: {shortened(reply.text)}",)
    return judge_all(document, check.expect)


def _says_unsupported(status: int) -> bool:
    """Refusals and wrong content can mean that a feature is missing; a key, a rate limit or a broken server cannot."""
    return status < 500 and status not in (401, 403, 408, 429)


def hints(document: Any) -> tuple[str, ...]:
    """What is known about replies like this one."""
    if not isinstance(document, dict):
        return ()
    choice = _choice(document)
    flat = {**document, **choice, **_message(choice)}
    thought = flat.get("reasoning") or flat.get("reasoning_content")
    if flat.get("finish_reason") == "length" and thought and not flat.get("content"):
        return (
            "the whole token budget went into reasoning; the server is fine: raise max_tokens in this check or turn thinking off",
        )
    return ()


def described(reply: Reply) -> str:
    """What came back, in one line."""
    if reply.unheard:
        return f"nothing usable after {reply.seconds:.1f} s: {reply.unheard}"
    tokens = completion_tokens(reply.document)
    counted = f", {tokens} token{'' if tokens == 1 else 's'}" if tokens is not None else ""
    return f"{reply.status} in {reply.seconds:.2f} s{counted}: {shortened(essence(reply))}"


def essence(reply: Reply) -> Any:
    """The part of a reply that people want to see: the text or tool calls of a generation, else all of it."""
    document = reply.document if reply.document is not None else reply.text
    if not isinstance(document, dict):
        return document
    if models := listed_models(document):
        return f"models: {', '.join(models)}"
    choices = document.get("choices")
    message = (
        choices[0].get("message")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict)
        else document
    )
    if not isinstance(message, dict):
        return document
    shown = {name: message[name] for name in ("content", "tool_calls") if message.get(name)}
    return (shown["content"] if set(shown) == {"content"} else shown) or document


def together(judgements: Iterable[Judgement]) -> Judgement:
    """The judgement of a check whose request was sent several times: the worst, and the first answers."""
    all_of = tuple(judgements)
    worst = min(all_of, key=lambda one: WORST_FIRST.index(one.result))
    answered = " | ".join(one.answered for one in all_of[:ANSWERS])
    more = f" | … {len(all_of) - ANSWERS} more" if len(all_of) > ANSWERS else ""
    return Judgement(worst.result, worst.faults, answered + more, worst.hints)


def over_all(check: CheckSpec, replies: Sequence[Reply], judged: Judgement) -> Judgement:
    """The judgement of all replies together: also how many different texts there are, where that is expected.

    Counted only when every reply passed: fewer replies have fewer texts.
    """
    if judged.result != "pass":
        return judged
    faults = distinct_faults([reply.document for reply in replies], check.expect)
    return replace(judged, result="fail", faults=faults) if faults else judged
