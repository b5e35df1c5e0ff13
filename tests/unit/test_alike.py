"""What is refused before any node is asked: ranks that differ where they must not, ports for two things, values for all nodes that are each node's own."""

from __future__ import annotations

from typing import Any

import pytest

from sparkyard.errors import ConfigError
from sparkyard.render import render_lane
from tests.unit import sample

DIFFER = ["NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "MASTER", "RANK", "--headless"]
"""What does differ in the tiny lane."""
KEY = "a-long-enough-key"


def faults(
    count: int = 3, *, differ: list[str] | None = None, data: dict[str, Any] | None = None, **changes: Any
) -> list[str]:
    """The faults of the tiny lane with some keys of its service changed."""
    data = data or sample.recipe_data()
    data["services"]["engine"] |= {"differ": DIFFER if differ is None else differ, **changes}
    try:
        render_lane(sample.lane(count, data, api_key=KEY), {})
    except ConfigError as error:
        return [str(fault).partition("recipe.yml:")[2] for fault in error.faults]
    return []


def test_ranks_may_differ_where_the_recipe_says_so():
    assert faults() == []
    assert faults(count=1, differ=[]) == []


def test_what_may_not_differ_is_named_with_ranks_nodes_and_both_values():
    found = faults(differ=["NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "--headless"])
    assert [fault.partition(": ")[2] for fault in found] == [
        ("services.engine.env.MASTER: must be the same on all ranks: not there on rank 0 (spark-1), 10.0.0.1:29500 on ranks 1, 2 "
        "(spark-2, spark-3); make it so, or name it in `differ` if the ranks may have it otherwise"),
        ("services.engine.env.RANK: must be the same on all ranks: 0 on rank 0 (spark-1), 1 on rank 1 (spark-2), 2 on rank 2 (spark-3); "
        "make it so, or name it in `differ` if the ranks may have it otherwise"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "key", "values"),
    [
        ({"words": ["serve", "--context={{ 4096 + (rank == 1) }}"]}, "services.engine.words.--context",
         "4096 on ranks 0, 2 (spark-1, spark-3), 4097 on rank 1 (spark-2)"),
        ({"words": ["serve{{ rank // 2 }}"]}, "services.engine.words.0", "serve0 on ranks 0, 1 (spark-1, spark-2), serve1 on rank 2 (spark-3)"),
        ({"options": ["--ulimit", "memlock={{ 1 if rank == 2 else -1 }}"]}, "services.engine.options.--ulimit.memlock",
         "-1 on ranks 0, 1 (spark-1, spark-2), 1 on rank 2 (spark-3)"),
        ({"options": ["{% if rank == 1 %}--privileged{% endif %}"]}, "services.engine.options.--privileged",
         "not there on ranks 0, 2 (spark-1, spark-3), no value on rank 1 (spark-2)"),
        ({"mounts": [{"source": "/srv/{{ rank }}", "target": "/srv"}]}, "services.engine.mounts./srv",
         "/srv/0:ro on rank 0 (spark-1), /srv/1:ro on rank 1 (spark-2), /srv/2:ro on rank 2 (spark-3)"),
    ],
)  # fmt: skip
def test_one_changed_word_on_one_rank_is_refused(change, key, values):
    (found,) = faults(**change)
    assert f"{key}: must be the same on all ranks: {values};" in found
    assert faults(differ=[*DIFFER, key.split(".", 3)[3]], **change) == []


def test_a_secret_in_an_environment_file_is_masked():
    data = sample.recipe_data()
    data["files"]["keys"]["values"]["API_KEY"] = "{{ lane.api_key }}{{ rank }}"
    (found,) = faults(data=data)
    assert "services.engine.env.API_KEY: must be the same on all ranks: ********0 on rank 0" in found
    assert KEY not in found


def test_where_a_node_keeps_its_files_is_no_difference():
    data = sample.recipe_data()
    data["services"]["engine"]["differ"] = DIFFER
    lane = sample.lane(2, data)
    object.__setattr__(lane.nodes[1], "models", "/mnt/models")
    object.__setattr__(lane.nodes[1], "root", "/mnt/sparkyard")
    render_lane(lane, {})


def test_without_differ_nothing_is_compared():
    data = sample.recipe_data()
    data["services"]["engine"]["words"] = ["{{ rank }}"]
    render_lane(sample.lane(2, data), {})


# ports


def two_services(first: int, second: int, **more: Any) -> dict[str, Any]:
    data = sample.recipe_data()
    engine = data["services"]["engine"]
    engine["gate"] = {"port": str(first), "timeout": 5}
    data["services"]["agent"] = {
        "nodes": "workers",
        "words": ["agent"],
        "gate": {"port": str(second), "timeout": 5},
    }
    return data | more


def test_two_services_cannot_wait_for_one_port_of_a_node():
    with pytest.raises(ConfigError) as failure:
        render_lane(sample.lane(2, two_services(7000, 7000)), {})
    message = "services.agent.gate.port: 7000 is the gate's port of services.engine too, which listens there already (on spark-2)"
    assert message in str(failure.value)
    render_lane(sample.lane(2, two_services(7000, 7001)), {})


@pytest.mark.parametrize(
    ("stages", "refused"), [(["engine", "pack", "agent"], True), (["pack", "engine", "agent"], False)]
)
def test_a_job_cannot_wait_for_the_port_of_a_service_that_runs_already(stages, refused):
    job = {
        "about": "x", "source": {"kind": "chosen", "why": "test"}, "timeout": 60, "nodes": "all", "at": "start", "words": ["pack"],
        "gate": {"port": "7000", "timeout": 5},
    }  # fmt: skip
    data = two_services(7000, 7001, jobs={"pack": job}, stages=stages)
    if not refused:
        render_lane(sample.lane(2, data), {})
        return
    with pytest.raises(
        ConfigError, match=r"jobs\.pack\.gate\.port: 7000 is the gate's port of services\.engine too"
    ):
        render_lane(sample.lane(2, data), {})


def test_everything_is_refused_at_once():
    data = sample.recipe_data()
    data["ports"]["agent"] = "{{ lane.port }}"
    data["env"]["SPARKNET_PEER"] = ""
    data["rules"].append({"must": "world == 4", "message": "four are needed", "source": "test"})
    found = "\n".join(faults(data=data, differ=[]))
    for words in (
        "ports.agent: 8000 is the port of API too",
        "env.SPARKNET_PEER: is empty, and what reads it does not take that as unset",
        "four are needed",
        "services.engine.env.RANK: must be the same on all ranks",
    ):
        assert words in found
