"""In place of any lane's engine: takes its words, records what its rank was given, meets its peers, serves its API late.

Never a model. Faults on demand are flags of scripted.py in the variables STAND_IN (every rank) and STAND_IN_<rank>.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

import boot_log
import checks
import disk
import scripted
import styles
import witness
from api import StandIn, described
from rendezvous import Rendezvous, end_on_signals, join, leave, say, stay
from styles import Given

SHELLS = ("sh", "bash", "env")
REFUSED = 1


def main() -> None:
    """Record, refuse, boot, join, serve."""
    words = sys.argv[1:]
    as_a_shell(words)
    as_a_program(words)
    given = styles.parse(words, os.environ)
    rank = given.number("rank", 0)
    script = faults_on_demand(given, rank)
    if os.getpid() != 1 or given.style.hears_term:
        end_on_signals(rank)
    else:  # TensorFold, SGLang: no handler, and a first process without one does not even hear it
        say(rank, "is the container's first process: SIGTERM will not be heard (docker run --init)")
    tell(given, words, rank)
    refuse(given, rank)
    scripted.die_later(script)
    scripted.boot(script)
    disk.prepare(given, rank, os.environ)
    boot_log.tell(given, rank, os.environ)
    meet(given, rank)
    serve(given, script)


def as_a_shell(words: list[str]) -> None:
    """A recipe may wrap its engine in a shell, whose line then calls the engine by its name."""
    if words and Path(words[0]).name in SHELLS:
        name = "sh" if Path(words[0]).name == "bash" else words[0]
        os.execvp(name, [name, *words[1:]])


def as_a_program(words: list[str]) -> None:
    """A recipe may call a program of its image by its path: the one that lies there in the stand-in (``root/``) runs."""
    program = words[1:2] if words[:1] == ["python3"] else words[:1]
    if program and Path(program[0]).is_absolute() and Path(program[0]).is_file():
        os.execvp(words[0], words)


def faults_on_demand(given: Given, rank: int) -> argparse.Namespace:
    """The lane's facts as flags of the scripted engine, and behind them the test's faults."""
    key = given.text("api_key")
    if not key and given.text("api_key_file"):
        key = Path(given.text("api_key_file")).read_text().strip()
    key = key or key_of_config(Path(given.text("config")))
    StandIn.key = key
    told = [
        "--rank",
        str(rank),
        "--ranks",
        given.text("world", "1"),
        "--listen",
        given.text("host", "127.0.0.1"),
    ]
    told += [
        "--port",
        given.text("port", "8000"),
        "--alias",
        given.text("name") or given.text("model") or "stand-in",
    ]
    for variable in ("STAND_IN", f"STAND_IN_{rank}"):
        told += shlex.split(os.environ.get(variable, ""))
    return scripted.words(told)


def key_of_config(path: Path) -> str:
    """The key in a file of options (``api-key: "…"``), where an engine reads it from there."""
    lines = path.read_text().splitlines() if path.is_file() else ()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("api-key:")]
    return str(json.loads(found[-1])) if found else ""


def tell(given: Given, words: list[str], rank: int) -> None:
    """Record what this rank was given, in its log and in its state folder."""
    world = given.number("world", 1)
    template = Path(given.text("template") or Path(given.text("model")) / "chat_template.jinja")
    facts = {"style": given.style.name, "facts": shown(given), "template": witness.sha256(template)}
    found = witness.record(words, rank=rank, world=world, **facts)
    say(rank, f"STAND-IN for {given.style.name}, rank {rank} of {world}")
    say(rank, f"STAND-IN record {json.dumps(found, sort_keys=True)}")
    try:
        kept = witness.keep(found, rank)
    except OSError as fault:
        say(rank, f"the record could not be kept: {fault}")
        return
    say(
        rank, f"record kept in {kept}" if kept else "no folder can be written: the record is only in this log"
    )


def shown(given: Given) -> dict[str, str]:
    """The facts without the key."""
    return {name: value for name, value in given.facts.items() if name != "api_key"}


def refuse(given: Given, rank: int) -> None:
    """End with a line for each fault, as the real engine would."""
    found = list(checks.faults(given, os.environ))
    for fault in found:
        say(rank, f"ERROR {fault}")
    if found:
        leave(REFUSED)


def meet(given: Given, rank: int) -> None:
    """Rank 0 goes on when all are there; the others stay until it is gone."""
    world, same = given.number("world", 1), checks.alike(given, os.environ)
    if rank:
        peer, lines = join(rank, world, given.rendezvous, 600, same)
        stay(rank, 0, peer, lines)
    Rendezvous(given.rendezvous, world, same).wait()


def serve(given: Given, script: argparse.Namespace) -> None:
    """The API opens only now."""
    StandIn.given = script
    StandIn.prepare(given)
    server = ThreadingHTTPServer((script.listen, script.port), StandIn)
    say(
        0,
        f"serving {script.alias} at http://{script.listen}:{server.server_port} {described(given)} (a stand-in, not a model)",
    )
    boot_log.serving(given)
    server.serve_forever()


if __name__ == "__main__":
    main()
