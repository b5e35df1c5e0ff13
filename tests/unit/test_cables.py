"""A ring of cables in the inventory: what both ends must say, and a link whose address is on a smaller network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard import facts, load
from sparkyard.errors import ConfigError
from sparkyard.render import render_lane
from sparkyard.steps.preflight import preflight_steps
from tests.unit import sample

RING = Path(__file__).resolve().parents[2] / "inventory" / "four-spark-ring"
TEXT = (RING / "hosts.yml").read_text()


def changed(tmp_path: Path, before: str, after: str) -> None:
    assert before in TEXT
    (tmp_path / "hosts.yml").write_text(TEXT.replace(before, after, 1))
    load.load_inventory(tmp_path, environ={}, sets=[])


def test_the_example_is_the_published_ring() -> None:
    nodes = load.load_inventory(RING, environ={}, sets=[]).nodes
    for rank, node in enumerate(nodes):
        after, before = str((rank + 1) % 4), str((rank - 1) % 4)
        assert node.vars["peer_hcas"] == {
            after: ["rocep1s0f0", "roceP2p1s0f0"],
            before: ["rocep1s0f1", "roceP2p1s0f1"],
        }
        assert node.link.mtu == 1500


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('{"3": [rocep1s0f1, roceP2p1s0f1], "1"', '{"1"', r"spark-1 names no cable to rank 3: write it at both ends"),
        ('"1": [rocep1s0f0, roceP2p1s0f0]}', '"1": [rocep1s0f0]}', r"1 HCAs here and 2 at spark-2"),
        ('"1": [rocep1s0f0, ', '"1": [rocep1s0f1, ', r"rocep1s0f1 is on the cable to rank 3 too"),
        ('"1": [rocep1s0f0, ', '"1": [mlx5_0, ', r"mlx5_0 is not in link\.hcas of spark-1"),
        ('"1": [rocep1s0f0, ', '"7": [rocep1s0f0, ', r"rank 7 is no node"),
        ('"1": [rocep1s0f0, ', '"0": [rocep1s0f0, ', r"rank 0 is this node itself"),
        ('"1": [rocep1s0f0, ', '"next": [rocep1s0f0, ', r"the rank of a peer is expected, found .next."),
        ("mtu: 1500", "mtu: 100", r"a number from 1280 to 9000 is expected, found 100"),
        ("mtu: 1500", "mtus: 1500", r"did you mean mtu"),
    ],
)  # fmt: skip
def test_faults_of_cables(tmp_path: Path, before: str, after: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        changed(tmp_path, before, after)


@pytest.mark.parametrize(
    ("mtus", "payload"), [((9000, 9000), 8972), ((1500, 9000), 1472), ((9000, 1500), 1472)]
)
def test_the_ping_is_as_large_as_the_smaller_link_carries(mtus: tuple[int, int], payload: int) -> None:
    plain = sample.lane()
    nodes = tuple(
        replace(node, link=replace(node.link, mtu=mtu)) for node, mtu in zip(plain.nodes, mtus, strict=True)
    )
    lane = replace(plain, nodes=nodes)
    steps = {(step.node, step.name): step for step in preflight_steps(lane, render_lane(lane, {}))}
    asked = steps["spark-1", "jumbo-spark-2"].questions
    assert facts.ping_question(nodes[1].link.address, payload) in asked
