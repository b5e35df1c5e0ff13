"""Renders a chat template as TensorFold's server does: its Jinja environment, and messages as it hands them over."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

Message = Mapping[str, Any]


class Refused(Exception):
    """The template has no text for a conversation; the message is its own."""


def environment() -> ImmutableSandboxedEnvironment:
    """Sandboxed; blocks trimmed; loop controls; ``tojson`` keeps keys in order and every character as it is."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = refuse
    return made


@functools.lru_cache(maxsize=8)
def _compiled(source: str) -> jinja2.Template:
    return environment().from_string(source)


def render(source: str, messages: Sequence[Message], **names: Any) -> str:
    """The prompt that a template makes of a conversation, with the header of the answer.

    Raises Refused for whatever ends the template, its own refusals and errors inside of it alike.
    """
    try:
        return _compiled(source).render(messages=list(messages), add_generation_prompt=True, **names)
    except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def handed_over(messages: Sequence[Message]) -> list[Message]:
    """The messages as the server gives them to a template.

    Leading instructions become one system message, parts of text one text, and arguments of calls objects:
    what is no JSON object stands under ``_invalid_arguments``.
    """
    plain = [{**message, "content": _one_text(message.get("content"))} for message in messages]
    leading = 0
    while leading < len(plain) and plain[leading]["role"] in ("system", "developer"):
        leading += 1
    opening = [str(message["content"]) for message in plain[:leading]]
    first = [{**plain[0], "role": "system", "content": "\n\n".join(opening)}] if opening else []
    later = [{**m, "role": "system"} if m["role"] == "developer" else m for m in plain[leading:]]
    return [_with_objects(message) for message in (*first, *later)]


def _one_text(content: Any) -> Any:
    if isinstance(content, list):
        return "".join(part["text"] for part in content)
    return "" if content is None else content


def _with_objects(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    calls = [
        {
            **call,
            "function": {**call["function"], "arguments": _object(call["function"]["arguments"])},
        }
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _object(arguments: Any) -> Mapping[str, Any]:
    found = arguments
    if isinstance(arguments, str):
        try:
            found = json.loads(arguments)
        except ValueError:
            found = None
    return found if isinstance(found, dict) else {"_invalid_arguments": arguments}
