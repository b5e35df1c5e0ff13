"""Ranks 1 and up of the lab's engine: join rank 0, stay, end with it."""

from __future__ import annotations

import argparse

from rendezvous import end_on_signals, join, stay


def main() -> None:
    """Join and stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rendezvous", required=True, help="rank 0's fabric address and port")
    parser.add_argument("--join-timeout", type=float, default=120)
    given = parser.parse_args()
    end_on_signals(given.rank)
    peer, lines = join(given.rank, given.ranks, given.rendezvous, given.join_timeout)
    stay(given.rank, 0, peer, lines)


if __name__ == "__main__":
    main()
