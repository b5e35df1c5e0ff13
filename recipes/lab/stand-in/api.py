"""The API of the engines, with their habits: thinking apart from the answer, forced tools, exact formats, token ids, a key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import formats
import pictures
from rendezvous import say
from scripted import Handler
from styles import Given

PRODUCT = re.compile(r"(\d{1,6})\s*[*x\u00d7]\s*(\d{1,6})")
SUM = re.compile(r"(\d{1,6})\s*\+\s*(\d{1,6})")
BOXES = re.compile(r"(\d{1,6}) boxes of (\d{1,6})\D+(\d{1,6})\D+left")
CLASS = re.compile(r"class named (\w+) with methods (\w+) and (\w+)")
COUNT = re.compile(r"Count from (\d{1,4}) to (\d{1,4})")
CAPITAL = "The capital of France is Paris."
PAGE = 256
"""Tokens: SGLang caches prompts of this model in pages of so many."""
LONG = 512
"""Tokens of a prompt that is long enough for the fused prefill statistics, which are compared at their first call."""
THOUGHT = "Let me think about this first."
REASONING_FIELD = {"vllm": "reasoning"}


def thinks(ask: Mapping[str, Any], *, default: bool) -> bool:
    """Whether this request is to be thought about: its own switch, else an effort that it names, else the server's habit."""
    switches = ask.get("chat_template_kwargs") or {}
    for name in ("thinking", "enable_thinking"):
        if name in switches:
            return bool(switches[name])
    effort = ask.get("reasoning_effort", switches.get("reasoning_effort"))
    if effort in ("none", "off"):
        return False
    return True if effort is not None else default


def answer(ask: Mapping[str, Any]) -> str:
    """A plausible reply to the last message: exact formats are obeyed, images seen, small sums worked out, tools' results told."""
    exact = formats.demanded(ask)
    if exact is not None:
        return exact
    said = last_text(ask)
    if seen := pictures.colour(ask):
        return seen
    if (ask.get("messages") or [{}])[-1].get("role") == "tool":
        return f"The tool says: {said}"
    matches = ((pattern.search(said), reply) for pattern, reply in REPLIES)
    return next((reply(match) for match, reply in matches if match), CAPITAL)


def class_text(name: str, *methods: str) -> str:
    """A class with these methods, in a block of code."""
    bodies = "\n".join(f"    def {each}(self, *given):\n        return None\n" for each in methods)
    return f"```python\nclass {name}:\n{bodies}```"


REPLIES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (COUNT, lambda found: " ".join(map(str, range(int(found[1]), int(found[2]) + 1)))),
    (PRODUCT, lambda found: str(int(found[1]) * int(found[2]))),
    (SUM, lambda found: str(int(found[1]) + int(found[2]))),
    (CLASS, lambda found: class_text(*found.groups())),
    (BOXES, lambda found: str(int(found[1]) * int(found[2]) - int(found[3]))),
)
"""What is asked, and the reply to it; the first that fits."""


def last_text(ask: Mapping[str, Any]) -> str:
    """What was said last, whether as text or in parts."""
    messages = ask.get("messages") or [{"content": ask.get("prompt", "")}]
    content = messages[-1].get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


class StandIn(Handler):
    """The scripted API with the habits of the lane's engine."""

    thinking = True
    style = ""
    reports_cache = False
    fused = False
    read: ClassVar[set[str]] = set()
    """Prompts that came before."""

    @classmethod
    def prepare(cls, given: Given) -> None:
        """Take on the habits that the rank's words ask for."""
        cls.thinking = "no_thinking" not in given.facts
        cls.style, cls.reports_cache = given.style.name, "cache_report" in given.facts
        cls.thoughts = REASONING_FIELD.get(given.style.name, "reasoning_content")

    def do_GET(self) -> None:  # noqa: N802 (its name there)
        if self.path == "/health" or self.allowed():
            super().do_GET()

    def thought(self, ask: dict[str, Any]) -> str:
        return THOUGHT if thinks(ask, default=self.thinking) else ""

    def usage(self, ask: dict[str, Any], prompt: int, count: int) -> dict[str, Any]:
        """With what came from the prefix cache, where the engine was told to report that: whole pages of a prompt seen before."""
        if StandIn.style == "sglang" and prompt >= LONG and not StandIn.fused:
            StandIn.fused = True
            say(0, f"DSV41 hc_fused: first call ({prompt} rows) bit-identical to stock")
        told = super().usage(ask, prompt, count)
        asked = json.dumps(ask.get("messages"))
        cached = prompt // PAGE * PAGE if asked in StandIn.read else 0
        StandIn.read.add(asked)
        return (
            {**told, "prompt_tokens_details": {"cached_tokens": cached} if cached else None}
            if StandIn.reports_cache
            else told
        )

    def text(self, ask: dict[str, Any]) -> str:
        if (ask.get("response_format") or {}).get("type") in {"json_schema", "json_object"}:
            return super().text(ask)
        return answer(ask)

    def chat(self, ask: dict[str, Any]) -> None:
        """Refuses what the engine refuses, then answers."""
        if ask.get("model") not in (None, self.given.alias):
            message = f"The model `{ask['model']}` does not exist."
            self.send(404, {"error": {"message": message, "type": "NotFoundError", "code": 404}})
            return
        try:
            formats.demanded(ask)
        except ValueError as fault:
            self.send(400, {"error": {"message": str(fault), "type": "BadRequestError", "code": 400}})
            return
        if ask.get("tool_choice", "auto") == "auto" and "use the tool" in last_text(ask).lower():
            ask = {**ask, "tool_choice": "required"}
        super().chat(ask)

    def post_more(self, ask: dict[str, Any]) -> None:
        """Completions of plain text or token ids."""
        if self.path != "/v1/completions":
            super().post_more(ask)
            return
        prompt = ask.get("prompt", "")
        count = len(prompt if isinstance(prompt, list) else prompt.split())
        words = self.tokens({**ask, "chat_template_kwargs": {"thinking": False}}, answer(ask))[1]
        usage = {"prompt_tokens": count, "completion_tokens": len(words), "total_tokens": count + len(words)}
        if ask.get("stream"):
            deltas = ({"index": 0, "text": word, "finish_reason": None} for word in words)
            self.stream(ask, deltas, usage)
            return
        choice = {"index": 0, "text": "".join(words), "finish_reason": "stop"}
        self.send(200, {**self.head("text_completion"), "choices": [choice], "usage": usage})


def described(given: Given) -> str:
    """The habits in one line, for the log."""
    return json.dumps({"style": given.style.name, "thinking": StandIn.thinking, "field": StandIn.thoughts})
