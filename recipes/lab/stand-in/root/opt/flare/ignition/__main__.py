"""``python -m ignition export`` on rank 0 and ``python -m ignition join`` on the others."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import checks
import flare_record
from rendezvous import end_on_signals, leave, say

from ignition import meeting, package
from ignition.faults import Faults
from ignition.recipes.deepseek41 import recipe as chosen


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ignition", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    export = verbs.add_parser("export", help="prepare a package")
    export.add_argument("checkpoint", type=Path)
    export.add_argument("--gpus", required=True)
    export.add_argument("--ranks", type=int, required=True)
    export.add_argument("--rendezvous", required=True)
    export.add_argument("--max-concurrency", type=int, default=8)
    export.add_argument("--mtp-draft-tokens", type=int, default=0)
    export.add_argument("--expert-scale-compression", choices=["csf"])
    export.add_argument("--output", type=Path, required=True)
    join = verbs.add_parser("join", help="be another rank of an export")
    join.add_argument("rendezvous")
    join.add_argument("--rank", type=int, required=True)
    join.add_argument("--ranks", type=int, required=True)
    return parser.parse_args(words)


def same(given: argparse.Namespace) -> dict[str, Any]:
    """What must be equal on all ranks."""
    text = Path(chosen.__file__).read_bytes()
    return {"ranks": given.ranks, "recipe": hashlib.sha256(text).hexdigest()}


def export(given: argparse.Namespace) -> None:
    faults = Faults(0)
    faults.phase("start")
    refuse(given)
    faults.phase("rendezvous")
    peers = meeting.gather(given.rendezvous, given.ranks, same(given))
    done = meeting.watch(0, peers)
    faults.phase("pull")
    for peer in peers:
        peer.send(weights=package.weights(given.checkpoint, peer.rank, given.ranks).hex())
    faults.phase("compile")
    capacity = {name: getattr(given, name) for name in ("max_concurrency", "mtp_draft_tokens")}
    if wrong := package.compiled(capacity):
        say(0, f"ERROR {wrong}")
        leave(1)
    for peer in peers:
        peer.send(compile=capacity)
    key = package.signing_key()
    faults.phase("write")
    about = {
        **capacity,
        "ranks": given.ranks,
        "compression": given.expert_scale_compression,
        "sampling": chosen.RECIPE.sampling_defaults.built_in(),
        "publisher": package.PUBLISHER,
        "key": key,
    }
    package.write(given.output, about, lambda text: say(0, f"package: {text}"))
    faults.phase("end")
    done.set()
    for peer in peers:
        peer.send(done=True)
    say(0, f"package {given.output}, signed by {package.PUBLISHER} (key in {package.CONFIG}/keys)")


def refuse(given: argparse.Namespace) -> None:
    """End with a line for each fault."""
    found = list(checks.model_faults(given.checkpoint))
    if given.ranks not in chosen.RECIPE.tensor_parallel:
        found.append(
            f"the recipe {chosen.RECIPE.name} is for {chosen.RECIPE.tensor_parallel} ranks, not {given.ranks}"
        )
    for fault in found:
        say(0, f"ERROR {fault}")
    if found:
        leave(2)


def joined(given: argparse.Namespace) -> None:
    faults = Faults(given.rank)
    faults.phase("start")
    peer = meeting.join(given.rendezvous, given.rank, same(given))
    message = peer.read()
    if "refused" in message:
        say(given.rank, f"FATAL rank 0 refused: {message['refused']}")
        leave(2)
    faults.phase("pull")
    path = package.shard(given.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes.fromhex(message["weights"]))
    peer.read()
    faults.phase("compile")
    if not peer.read().get("done"):
        leave(3)
    peer.send(done=True)
    say(given.rank, "done")


def main() -> None:
    words = sys.argv[1:]
    given = parsed(words)
    rank = getattr(given, "rank", 0)
    end_on_signals(rank)
    flare_record.keep(["ignition", *words], "export", rank, given.ranks)
    try:
        export(given) if given.verb == "export" else joined(given)
    except OSError as fault:
        say(rank, f"FATAL {fault}")
        leave(3)


if __name__ == "__main__":
    main()
