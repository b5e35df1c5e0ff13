"""In place of ``flare``: ``agent install`` stays and listens, ``orbit pair`` makes the agents a cluster, ``orbit run`` serves a package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import flare_agent
import flare_orbit
from rendezvous import end_on_signals


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="flare", description=__doc__)
    nouns = parser.add_subparsers(dest="noun", required=True)
    agent = nouns.add_parser("agent", help="the daemon of a node").add_subparsers(dest="verb", required=True)
    install = agent.add_parser("install")
    install.add_argument("--join-code", required=True)
    install.add_argument("--listen", required=True)
    orbit = nouns.add_parser("orbit", help="nodes together").add_subparsers(dest="verb", required=True)
    pair = orbit.add_parser("pair")
    pair.add_argument("agents", nargs="+")
    pair.add_argument("--code", required=True)
    run = orbit.add_parser("run")
    run.add_argument("package")
    run.add_argument("--cluster", required=True)
    run.add_argument("--gpus", required=True)
    run.add_argument("--host", default="0.0.0.0")
    run.add_argument("--port", type=int, default=8000)
    run.add_argument("--served-model-name")
    run.add_argument("--dangerously-approve-key")
    run.add_argument("--dangerously-accept-publisher")
    return parser.parse_args(words)


def main() -> None:
    words = sys.argv[1:]
    given = parsed(words)
    end_on_signals(0)
    verbs = {"install": flare_agent.install, "pair": flare_agent.pair, "run": flare_orbit.run}
    verbs[given.verb](given, ["flare", *words])


if __name__ == "__main__":
    main()
