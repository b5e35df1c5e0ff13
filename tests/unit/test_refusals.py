"""Everything that is wrong with a line, its inventory, its settings and what its lane would be, is told at once and before any node is asked."""

from __future__ import annotations

import subprocess

from tests.unit import offline
from tests.unit.test_profiles import CHOSEN, Place


def typed(place: Place, *line: str) -> subprocess.CompletedProcess[str]:
    """A start on a machine where no program of a node could be run."""
    where = (f"--inventory={place.folder / 'inventory'}", f"--recipes={place.folder / 'recipes'}")
    return offline.typed("start", "--lane=T", *where, *line, XDG_STATE_HOME=str(place.folder / "state"))


def four_ranks(place: Place) -> None:
    """The tiny recipe for four ranks, of which one would have another word; its API and its agent have one port."""
    data = place.data
    data["nodes"] = {"at_least": 4, "at_most": 4}
    data["services"]["engine"]["differ"] = [
        "NCCL_IB_HCA",
        "GLOO_SOCKET_IFNAME",
        "MASTER",
        "RANK",
        "--headless",
    ]
    data["services"]["engine"]["words"].append("--chunk={{ 4096 if rank == 2 else 8192 }}")
    data["settings"]["ep"] = {"default": 2, "choices": [1, 2], "about": "experts", "source": CHOSEN}
    data["rules"].append({"must": "lane.ep == 2", "message": "ep 1 needs its flag", "source": "test"})
    data["ports"]["agent"] = "{{ lane.port }}"
    place.write()


def test_all_of_it_is_told_at_once(tmp_path):
    place = Place(tmp_path)
    four_ranks(place)
    settings = 'env: {NCCL_IB_GID_INDEX: "3", NCCL_IB_HCA: mlx5_0, NCCL_DEBUG: ""}, streams: 9, profile: fast, context: x'
    place.inventory(settings)
    done = typed(place, "--set", "ep=1")
    assert (done.returncode, done.stdout) == (2, "")
    for words in (
        "lane T needs 4 nodes, the inventory has 1",
        "hosts.yml:9: lanes.T.context: a whole number is expected",
        "hosts.yml:9: lanes.T.env.NCCL_DEBUG: empty is not unset for its reader",
        "hosts.yml:9: lanes.T.env.NCCL_IB_GID_INDEX: GID indexes are discovered",
        "hosts.yml:9: lanes.T.env.NCCL_IB_HCA: HCAs are each node's own",
        'hosts.yml:9: lanes.T.profile: "fast" is not a known profile',
        "ports.agent: 8000 is the port of API too",
        "ep 1 needs its flag",
        "context 4096 is too small for 9 streams",
        "services.engine.words.--chunk: must be the same on all ranks: 8192 on ranks 0, 1, 3",
    ):
        assert words in done.stderr, done.stderr
    assert done.stderr.startswith("error: 10 faults in the configuration; nothing was run")


def test_a_sound_inventory_is_refused_for_its_lane_alone(tmp_path):
    place = Place(tmp_path)
    place.write()
    place.inventory("streams: 9")
    done = typed(place)
    assert done.returncode == 2
    assert done.stderr.startswith("error: 1 fault in the configuration; nothing was run")
    assert "context 4096 is too small for 9 streams" in done.stderr
