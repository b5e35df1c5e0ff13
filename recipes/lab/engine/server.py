"""Rank 0 of the lab's engine: waits for all ranks, then serves a GGUF with llama.cpp's OpenAI-compatible server."""

from __future__ import annotations

import argparse
import ctypes
import signal
import subprocess
import sys
import threading
from pathlib import Path

from rendezvous import Rendezvous, end_on_signals, leave, say

# The model is a base model: it completes. As questions and answers it answers, and `"stop": ["\\n"]` ends it there.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}Question: {{ m['content'] }}\nAnswer:"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}\n\n{% else %}{{ m['content'] }}\n\n{% endif %}{% endfor %}"
)


def words() -> argparse.Namespace:
    """What the recipe passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", type=Path, required=True, help="the GGUF file, or the folder that holds one"
    )
    parser.add_argument("--alias", default="", help="name in /v1/models")
    parser.add_argument("--listen", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("--context", type=int, default=4096, help="tokens, for each of the parallel requests")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are cores")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rendezvous", default="127.0.0.1:29500", help="this rank's fabric address and port")
    parser.add_argument("--serve-only", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def find_model(path: Path) -> Path:
    """The file itself."""
    files = sorted(path.glob("*.gguf")) if path.is_dir() else [path]
    if len(files) != 1 or not files[0].is_file():
        say(0, f"FATAL no single GGUF file at {path}")
        leave(2)
    return files[0]


def serve(given: argparse.Namespace, model: Path) -> None:
    """Load the model and listen."""
    import xllamacpp  # noqa: PLC0415 (a second; the log should start before)

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {given.alias or model.stem}
    params.hostnames = [given.listen]
    params.port = given.port
    params.n_parallel = given.parallel
    params.n_ctx = given.context * given.parallel
    params.use_jinja = True
    params.chat_template = TEMPLATE
    params.cors_origins = f"http://{given.listen}:{given.port}"  # its own default lets any web page ask
    params.endpoint_metrics = True
    params.ui = False
    if given.threads:
        params.cpuparams.n_threads = given.threads
    if given.api_key_file:
        params.api_keys = given.api_key_file.read_text().split()
    say(0, f"loading {model} ({model.stat().st_size} bytes)")
    server = xllamacpp.Server(params)
    say(0, f"serving {given.alias or model.stem} at {server.listening_address}")
    threading.Event().wait()


def serve_apart() -> int:
    """Serve in a child process; its exit status. While llama.cpp loads it holds Python's lock, and no rank would hear a beat."""
    return subprocess.run(
        [sys.executable, "-u", __file__, *sys.argv[1:], "--serve-only"], check=False
    ).returncode


def end_with_parent() -> None:
    """Outside a container nobody else would end the child when its parent is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main() -> None:
    """Wait for the ranks, then serve; what goes wrong while loading ends the container with a line."""
    given = words()
    model = find_model(given.model)
    if given.serve_only:
        end_with_parent()
        serve(given, model)
    end_on_signals(0)
    Rendezvous(given.rendezvous, given.ranks).wait()
    status = serve_apart()
    say(0, f"FATAL the model server ended with status {status}")
    leave(status if status > 0 else 1)


if __name__ == "__main__":
    main()
