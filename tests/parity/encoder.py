"""A small encoder of our own, written from the documented rules of DeepSeek-V4.1's prompt format (docs/template.md).

It is the tests' second opinion: the expected bytes of the suite must be what it makes of the conversations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BAR = "\uff5c"
MARK = f"{BAR}DSML{BAR}"
BEGIN, END = f"<{BAR}begin\u2581of\u2581sentence{BAR}>", f"<{BAR}end\u2581of\u2581sentence{BAR}>"
ROLE = {name: f"<{BAR}{name}{BAR}>" for name in ("System", "User", "Assistant", "latest_reminder")}
LEVELS = {None: 75, "low": 50, "high": 75, "max": 100}
BLANK = "\n\n"

TOOLS = (
    "## Tools",
    (
        f"""You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<{MARK} calls>" """
        "block like the following:"
    ),
    f"""<{MARK} calls>
<{MARK} invoke name="$TOOL_NAME">
<{MARK} parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</{MARK} parameter>
...
</{MARK} invoke>
<{MARK} invoke name="$TOOL_NAME2">
...
</{MARK} invoke>
</{MARK} calls>""",
    (
        """String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), """
        """pass the value in JSON format and set `string="false"`."""
    ),
    (
        "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> "
        "BEFORE any tool calls or final response."
    ),
    "Otherwise, output directly after </think> with tool calls or final response.",
    "### Available Tool Schemas",
    "{schemas}",
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n",
)
"""The paragraphs of the tools section: the model was trained on exactly these bytes."""


class Refused(Exception):
    """The format has no bytes for this conversation."""


@dataclass
class Turn:
    """A message, or the user and tool messages in a row that make one turn."""

    role: str
    pieces: list[tuple[str | None, str]]
    """(id of the call that a tool result answers, None for words; text)"""
    message: Mapping[str, Any]

    @property
    def text(self) -> str:
        return BLANK.join(text for _, text in self.pieces)


def encode(request: Mapping[str, Any]) -> str:
    """The prompt of a conversation of the suite. Raises Refused."""
    thinking, tools = request.get("thinking", True), request.get("tools") or []
    budget = effort(request.get("effort"))
    extras = sections(tools, request.get("response_format"))
    turns = list(joined(opened(request["messages"], bool(extras))))
    boundary = max((n for n, turn in enumerate(turns) if starts_turn(n, turn)), default=-1)
    prompt = BEGIN
    for n, turn in enumerate(turns):
        kept = thinking and (bool(tools) or n > boundary)
        if n == 0 and (thinking or turn.role == "system"):
            prompt += ROLE["System"] + (budget if thinking else "")
        prompt += body(n, turn, extras, kept)
        following = turns[n + 1].role if n + 1 < len(turns) else "assistant"
        if starts_reply(n, turn) and following in ("assistant", "latest_reminder"):
            opens = thinking and (bool(tools) or n >= boundary)
            prompt += ROLE["Assistant"] + ("<think>" if opens else "</think>")
    return prompt


def effort(asked: Any) -> str:
    if isinstance(asked, str | None) and asked in LEVELS:
        asked = LEVELS[asked]
    if type(asked) is not int or not 1 <= asked <= 100:
        raise Refused(f"effort {asked!r}")
    return f"Reasoning Effort: {asked} (range 1-100, the higher the value, the more thorough the reasoning){BLANK}"


def sections(tools: Sequence[Mapping[str, Any]], schema: Any) -> list[str]:
    """What the first system message carries behind its own text."""
    found = []
    if tools:
        schemas = "\n".join(as_json(tool["function"]) for tool in tools)
        found.append(BLANK.join(TOOLS).replace("{schemas}", schemas))
    if schema:
        found.append(
            f"## Response Format:{BLANK}You MUST strictly adhere to the following schema to reply:\n{as_json(schema)}"
        )
    return found


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def opened(messages: Sequence[Mapping[str, Any]], carries: bool) -> list[Mapping[str, Any]]:
    """The conversation, with an empty system message in front where something needs one to carry it."""
    if carries and (not messages or messages[0]["role"] != "system"):
        return [{"role": "system", "content": ""}, *messages]
    return list(messages)


def starts_reply(n: int, turn: Turn) -> bool:
    return turn.role == "user" or (turn.role == "system" and n > 0)


def starts_turn(n: int, turn: Turn) -> bool:
    """Results alone are answered, but go on with the turn: the reasoning before them stays."""
    return starts_reply(n, turn) and any(id_ is None for id_, _ in turn.pieces)


def words(content: Any) -> str:
    """The text of a content: itself, or its text parts with empty lines between them."""
    if isinstance(content, list):
        return BLANK.join(part["text"] for part in content)
    return content or ""


def joined(messages: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """Turns: tool results become words of the user, and whatever the user says in a row is one turn."""
    order: dict[str, int] = {}
    open_turn: Turn | None = None
    for message in messages:
        role, text = message["role"], words(message.get("content"))
        if role in ("user", "tool"):
            piece = (None, text) if role == "user" else (message.get("tool_call_id", ""), result(text))
            open_turn = open_turn or Turn("user", [], {})
            open_turn.pieces.append(piece)
            continue
        if open_turn:
            yield in_order(open_turn, order)
            open_turn = None
        if role == "assistant" and message.get("tool_calls"):
            order = call_order(message["tool_calls"])
        yield Turn(role, [(None, text)], message)
    if open_turn:
        yield in_order(open_turn, order)


def result(text: str) -> str:
    return f"<tool_result>{text}</tool_result>"


def call_order(calls: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    ids = [call.get("id") or call["function"].get("id", "") for call in calls]
    return {id_: n for n, id_ in enumerate(ids) if id_}


def in_order(turn: Turn, order: Mapping[str, int]) -> Turn:
    """Tool results in the order of their calls, in the places where results stand; words stay where they are."""
    results = sorted((p for p in turn.pieces if p[0] is not None), key=lambda p: order.get(p[0] or "", 0))
    ranked = iter(results)
    return Turn(turn.role, [next(ranked) if p[0] is not None else p for p in turn.pieces], turn.message)


def body(n: int, turn: Turn, extras: Sequence[str], kept: bool) -> str:
    if turn.role == "system":
        return (ROLE["System"] if n else "") + BLANK.join([turn.text, *(extras if n == 0 else ())])
    if turn.role == "user":
        return ROLE["User"] + turn.text
    if turn.role == "latest_reminder":
        return ROLE["latest_reminder"] + turn.text
    if turn.role == "assistant":
        reasoning = (turn.message.get("reasoning_content") or "") + "</think>" if kept else ""
        return reasoning + turn.text + calls(turn.message.get("tool_calls")) + END
    raise Refused(f"role {turn.role}")


def calls(made: Sequence[Mapping[str, Any]] | None) -> str:
    if not made:
        return ""
    written = "\n".join(call(one["function"]) for one in made)
    return f"{BLANK}<{MARK} calls>\n{written}\n</{MARK} calls>"


def call(function: Mapping[str, Any]) -> str:
    given = arguments(function["arguments"])
    parameters = "\n".join(parameter(name, value) for name, value in given.items())
    return f'<{MARK} invoke name="{function["name"]}">\n{parameters}\n</{MARK} invoke>'


def parameter(name: str, value: Any) -> str:
    text, is_string = (value, "true") if isinstance(value, str) else (as_json(value), "false")
    return f'<{MARK} parameter name="{name}" string="{is_string}">{text}</{MARK} parameter>'


def arguments(given: Any) -> Mapping[str, Any]:
    """An object; JSON text is read once, and once more if it holds JSON text; anything else is one parameter."""
    value = given
    for _twice in range(2):
        try:
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            break
    return value if isinstance(value, dict) else {"arguments": given}
