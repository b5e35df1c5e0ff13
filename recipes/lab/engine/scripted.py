"""A scripted OpenAI-compatible engine of the lab, for faults on demand. Standard library only; never a real model.

Flags come from the command line, then from the environment variable SCRIPT (shell words), so that a test can add a
fault to a rank without another recipe. With --rank 1 or more it is a follower with the same ways to misbehave at boot.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rendezvous import Rendezvous, end_on_signals, join, leave, say, stay


def words(given: Sequence[str]) -> argparse.Namespace:
    """Flags of the recipe, and behind them the faults of a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="", help="accepted and not read")
    parser.add_argument("--alias", default="scripted")
    parser.add_argument("--listen", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--parallel", type=int, default=2, help="accepted; as many as come are answered")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rendezvous", default="127.0.0.1:29500")
    parser.add_argument("--join-timeout", type=float, default=120)
    boot = parser.add_argument_group("at boot")
    boot.add_argument(
        "--boot-seconds", type=float, default=0, help="take so long before joining, with a line a second"
    )
    boot.add_argument("--silent", action="store_true", help="no lines after the first")
    boot.add_argument("--hang", action="store_true", help="never join, never listen")
    boot.add_argument("--die-after", type=float, help="seconds from the start")
    boot.add_argument("--exit-code", type=int, default=1)
    boot.add_argument("--last-words", action="append", default=[], help="lines before dying")
    serving = parser.add_argument_group("when serving")
    serving.add_argument("--health", type=int, default=200)
    serving.add_argument("--no-tokens", action="store_true", help="answers are empty")
    serving.add_argument("--stall", action="store_true", help="chats are never answered")
    serving.add_argument("--first-token", type=float, default=0, help="seconds until the first token")
    serving.add_argument("--token-delay", type=float, default=0, help="seconds between tokens")
    serving.add_argument("--fail-chats", type=int, default=0, help="answer this status to every chat")
    serving.add_argument("--drop-after", type=int, default=0, help="break streams after so many tokens")
    serving.add_argument("--wrong-json", action="store_true", help="break the schema asked for")
    serving.add_argument("--no-tools", action="store_true", help="ignore tool_choice")
    serving.add_argument("--no-usage", action="store_true", help="leave usage out of streams")
    serving.add_argument("--reply", default="The capital of France is Paris.")
    return parser.parse_args(given)


def example(schema: dict[str, Any]) -> Any:
    """A small value that a JSON schema accepts (the common keywords)."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        required = schema.get("required", [])
        return {
            name: example(part) for name, part in schema.get("properties", {}).items() if name in required
        }
    if kind == "array":
        return [example(schema.get("items", {}))] * schema.get("minItems", 1)
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    return {"boolean": True, "null": None}.get(kind, "Paris")


def pick_tool(ask: dict[str, Any]) -> dict[str, Any] | None:
    """The function that the request forces."""
    functions = [tool["function"] for tool in ask.get("tools") or [] if tool.get("type") == "function"]
    choice = ask.get("tool_choice", "auto")
    if isinstance(choice, dict):
        return next((each for each in functions if each["name"] == choice["function"]["name"]), None)
    return functions[0] if functions and choice == "required" else None


def split_words(text: str) -> list[str]:
    """The words of a text with the space behind each, as an engine streams tokens."""
    words = [word + " " for word in text.split()]
    return [*words[:-1], words[-1].rstrip()] if words else []


class Handler(BaseHTTPRequestHandler):
    """The API."""

    protocol_version = "HTTP/1.1"
    given: argparse.Namespace
    key = ""
    served = 0
    thoughts = "reasoning_content"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        if not self.given.silent:
            say(0, format % args)

    def do_GET(self) -> None:
        if self.path == "/health":
            self.send(self.given.health, {"status": "ok" if self.given.health == 200 else "error"})
        elif self.path == "/metrics":
            self.send_text(f"scripted_requests_total {Handler.served}\n")
        elif self.path == "/v1/models":
            if self.allowed():
                model = {
                    "id": self.given.alias,
                    "object": "model",
                    "owned_by": "lab",
                    "max_model_len": self.given.context,
                }
                self.send(200, {"object": "list", "data": [model]})
        else:
            self.send(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.allowed():
            return
        try:
            ask = json.loads(raw)
        except ValueError:
            self.send(400, {"error": {"message": "not JSON"}})
            return
        Handler.served += 1
        if self.path == "/tokenize":
            text = str(ask.get("content", ask.get("prompt", "")))
            tokens = [sum(word.encode()) for word in text.split()]
            self.send(200, {"tokens": tokens, "count": len(tokens)})
        elif self.path == "/v1/chat/completions":
            self.chat(ask)
        else:
            self.post_more(ask)

    def post_more(self, _ask: dict[str, Any]) -> None:
        """Paths that only some engines have."""
        self.send(404, {"error": {"message": f"no {self.path}"}})

    def allowed(self) -> bool:
        """Whether the key is right, if there is one."""
        if not self.key or self.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        self.send(401, {"error": {"message": "invalid API key"}})
        return False

    def chat(self, ask: dict[str, Any]) -> None:
        """One chat, whole or streamed."""
        if self.given.stall:
            threading.Event().wait()
        if self.given.fail_chats:
            self.send(self.given.fail_chats, {"error": {"message": "scripted failure"}})
            return
        time.sleep(self.given.first_token)
        tool = None if self.given.no_tools else pick_tool(ask)
        text = "" if tool else self.text(ask)
        thought, tokens = self.tokens(ask, text)
        calls = [self.call(tool)] if tool else []
        prompt = sum(len(str(message.get("content")).split()) for message in ask.get("messages", []))
        count = len(thought) + len(tokens) + 8 * len(calls)
        usage = self.usage(ask, prompt, count)
        if ask.get("stream"):
            self.stream(ask, self.choices(thought, tokens, calls), usage)
            return
        time.sleep(self.given.token_delay * len(tokens))
        message = {
            "role": "assistant",
            "content": "".join(tokens),
            **({self.thoughts: "".join(thought)} if thought else {}),
            **({"tool_calls": calls} if calls else {}),
        }
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        self.send(200, {**self.head("chat.completion"), "choices": [choice], "usage": usage})

    def usage(self, _ask: dict[str, Any], prompt: int, count: int) -> dict[str, Any]:
        """How many tokens went in and came out."""
        return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}

    def thought(self, _ask: dict[str, Any]) -> str:
        """What is thought before the answer; this engine does not think."""
        return ""

    def tokens(self, ask: dict[str, Any], text: str) -> tuple[list[str], list[str]]:
        """Thoughts and answer, a word a token, together as many as may be."""
        most = ask.get("max_tokens") or ask.get("max_completion_tokens") or 1 << 30
        if self.given.no_tokens:
            return [], []
        thought = split_words(self.thought(ask))[:most]
        return thought, split_words(text)[: most - len(thought)]

    def text(self, ask: dict[str, Any]) -> str:
        """What the answer says."""
        form = ask.get("response_format") or {}
        if form.get("type") not in {"json_schema", "json_object"}:
            return str(self.given.reply)
        if self.given.wrong_json:
            return '{"not": what was asked'
        return json.dumps(example((form.get("json_schema") or {}).get("schema", {})), separators=(",", ":"))

    def call(self, tool: dict[str, Any]) -> dict[str, Any]:
        """A call of the forced function."""
        arguments = "{broken" if self.given.wrong_json else json.dumps(example(tool.get("parameters", {})))
        return {
            "index": 0,
            "id": "call_lab0001",
            "type": "function",
            "function": {"name": tool["name"], "arguments": arguments},
        }

    def head(self, kind: str) -> dict[str, Any]:
        """What every answer begins with."""
        return {"id": "chatcmpl-lab", "object": kind, "created": int(time.time()), "model": self.given.alias}

    def stream(self, ask: dict[str, Any], choices: Iterator[dict[str, Any]], usage: dict[str, Any]) -> None:
        """Server-sent events, one token each."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for number, choice in enumerate(choices):
            if self.given.drop_after and number >= self.given.drop_after:
                return
            self.event({**self.head("chat.completion.chunk"), "choices": [choice]})
            time.sleep(self.given.token_delay)
        if (ask.get("stream_options") or {}).get("include_usage") and not self.given.no_usage:
            self.event({**self.head("chat.completion.chunk"), "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def choices(self, thought: list[str], tokens: list[str], calls: list[Any]) -> Iterator[dict[str, Any]]:
        """The deltas of a stream, in order."""
        yield {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        for token in thought:
            yield {"index": 0, "delta": {self.thoughts: token}, "finish_reason": None}
        for token in tokens:
            yield {"index": 0, "delta": {"content": token}, "finish_reason": None}
        if calls:
            yield {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}
        yield {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}

    def event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def send(self, status: int, value: Any) -> None:
        self.send_body(status, json.dumps(value).encode(), "application/json")

    def send_text(self, text: str) -> None:
        self.send_body(200, text.encode(), "text/plain; version=0.0.4")

    def send_body(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def die_later(given: argparse.Namespace) -> None:
    """Die when told to, with last words."""

    def die() -> None:
        for line in given.last_words or ["FATAL scripted death"]:
            say(given.rank, line)
        leave(given.exit_code)

    if given.die_after is not None:
        timer = threading.Timer(given.die_after, die)
        timer.daemon = True
        timer.start()


def boot(given: argparse.Namespace) -> None:
    """The time before anything is there."""
    say(given.rank, "booting (scripted)")
    ends = time.monotonic() + given.boot_seconds
    while given.hang or time.monotonic() < ends:
        time.sleep(1 if given.hang else min(1, max(0, ends - time.monotonic())))
        if not given.silent:
            say(given.rank, "still booting")


def main() -> None:
    """Boot, join, serve."""
    given = words([*sys.argv[1:], *shlex.split(os.environ.get("SCRIPT", ""))])
    end_on_signals(given.rank)
    die_later(given)
    boot(given)
    if given.rank:
        peer, lines = join(given.rank, given.ranks, given.rendezvous, given.join_timeout)
        stay(given.rank, 0, peer, lines)
    Rendezvous(given.rendezvous, given.ranks).wait()
    Handler.given = given
    Handler.key = given.api_key_file.read_text().strip() if given.api_key_file else ""
    server = ThreadingHTTPServer((given.listen, given.port), Handler)
    say(0, f"serving {given.alias} at http://{given.listen}:{server.server_port} (scripted, not a model)")
    server.serve_forever()


if __name__ == "__main__":
    main()
