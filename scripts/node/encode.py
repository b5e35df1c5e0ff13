"""Runs a checkpoint's own encoder over conversations: the whole program of a container, with nothing of sparkyard in it.

``python3 -I -c <this text> /encoding/encoding.py`` reads a list of conversations from standard input and writes a list of
``{"prompt": text}`` or ``{"refused": reason}``. Python 3.8 is enough.
"""

import importlib.util
import json
import sys


def conversation(case):
    """The messages with tools and schema on the system message in front, which is added, empty, where there is none."""
    messages = [dict(message) for message in case["messages"]]
    carried = {key: case[key] for key in ("tools", "response_format") if case.get(key)}
    if carried and (not messages or messages[0]["role"] != "system"):
        messages.insert(0, {"role": "system", "content": ""})
    if carried:
        messages[0].update(carried)
    return messages


def encoded(encoder, case):
    mode = "thinking" if case.get("thinking", True) else "chat"
    try:
        prompt = encoder.encode_messages(
            conversation(case), thinking_mode=mode, reasoning_effort=case.get("effort")
        )
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    return {"prompt": prompt}


def main():
    spec = importlib.util.spec_from_file_location("encoder", sys.argv[1])
    encoder = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = encoder  # where dataclasses look for their module
    answer, sys.stdout = sys.stdout, sys.stderr  # whatever an encoder prints is no answer
    spec.loader.exec_module(encoder)
    cases = json.load(sys.stdin)
    json.dump([encoded(encoder, case) for case in cases], answer)


if __name__ == "__main__":
    main()
