"""Our own encoder under the interface of the checkpoint's: what a container runs in tests in place of ``encoding/encoding.py``."""

from __future__ import annotations

from pathlib import Path

ADAPTER = """

def encode_messages(messages, thinking_mode, reasoning_effort=None):
    first = messages[0]
    request = {"messages": messages, "thinking": thinking_mode == "thinking", "effort": reasoning_effort}
    request["tools"] = first.get("tools")
    request["response_format"] = first.get("response_format")
    return encode(request)
"""


def source() -> str:
    """The text of such an ``encoding.py``."""
    return Path(__file__).with_name("encoder.py").read_text(encoding="utf-8") + ADAPTER
