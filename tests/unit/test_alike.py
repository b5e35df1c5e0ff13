"""What is refused before any node is asked: ranks that differ where they must not, ports for two things, values for all nodes that are each node's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkyard import load
from sparkyard.errors import ConfigError
from sparkyard.render import render_lane
from tests.unit import sample
from tests.unit.test_docs import ROOT

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
        return [str(fault).partition("recipe.yml:")[2] or str(fault) for fault in error.faults]
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


# what several services must agree on


def agreeing(*names: str, **follower: Any) -> dict[str, Any]:
    """The tiny recipe with a second service on the workers, and names that must agree."""
    data = sample.recipe_data()
    data["services"]["engine"] |= {
        "nodes": "head",
        "env": {"WINDOW": "64"},
        "words": ["serve", "--streams=4"],
    }
    data["services"]["follower"] = {"nodes": "workers", "env": {}, "words": []} | follower
    data["agree"] = [{"what": "the window", "names": list(names), "source": "its README"}]
    return data


def test_what_must_agree_is_compared_over_services_ranks_variables_and_words():
    data = agreeing("WINDOW", "--pool", env={"WINDOW": "64"}, words=["follow", "--pool", "64"])
    render_lane(sample.lane(3, data), {})
    data["services"]["follower"]["words"][2] = "{{ 64 if rank == 1 else 65 }}"
    with pytest.raises(ConfigError) as failure:
        render_lane(sample.lane(3, data), {})
    (fault,) = failure.value.faults
    assert (fault.key, fault.message) == (
        "agree.0",
        (
            "the window must be the same wherever it stands (its README): 64 at services.engine.env.WINDOW (rank 0), "
            "services.follower.env.WINDOW (rank 1), services.follower.env.WINDOW (rank 2), services.follower.words.--pool (rank 1); "
            "65 at services.follower.words.--pool (rank 2)"
        ),
    )


def test_a_name_that_stands_nowhere_is_a_fault_of_the_recipe():
    with pytest.raises(ConfigError, match=r"agree\.0: --poool is no variable and no flag of any service"):
        render_lane(sample.lane(2, agreeing("WINDOW", "--poool")), {})


def test_without_differ_nothing_is_compared():
    data = sample.recipe_data()
    data["services"]["engine"]["words"] = ["{{ rank }}"]
    render_lane(sample.lane(2, data), {})


# the lanes of four Sparks


@pytest.mark.parametrize("name", ["A4", "B", "C", "D", "boot10"])
def test_one_changed_variable_on_one_rank_is_refused_in_every_lane_of_four(name):
    """Every variable of every service that has several ranks, changed on rank 2 alone, unless it is among those that may differ."""
    recipes = dict(load.find_recipes(ROOT, []))
    lane = load.load_all(ROOT / "inventory/four-spark", recipes, name, environ={}, sets=[])
    services, wanted = {}, set()
    for service, spec in lane.recipe.services.items():
        if spec.nodes == "head":
            services[service] = spec
            continue
        assert spec.differ is not None, service
        changed = {key: f"{text}{{% if rank == 2 %}}x{{% endif %}}" for key, text in spec.env.items()}
        words = [*spec.words, "--one-more={{ rank // 2 }}"]
        services[service] = spec.model_copy(update={"env": changed, "words": words})
        wanted |= {f"services.{service}.env.{key}" for key in spec.env if key not in spec.differ}
        wanted.add(f"services.{service}.words.--one-more")
    recipe = lane.recipe.model_copy(update={"services": services})
    with pytest.raises(ConfigError) as failure:
        render_lane(replace(lane, recipe=recipe), {})
    found = {fault.key for fault in failure.value.faults if "must be the same on all ranks" in fault.message}
    assert wanted <= found


@pytest.mark.parametrize(
    ("old", "key"),
    [
        ("TF_DS_WINDOW", "agree.0"),
        ("TF_DS_STREAMS", "agree.1"),
        ("TF_DS_ROUND_ROWS", "agree.2"),
        ("TF_DS_ROUND_MS", "agree.3"),
    ],
)
def test_the_head_of_a4_agrees_with_its_followers(old, key):
    recipes = dict(load.find_recipes(ROOT, []))
    lane = load.load_all(ROOT / "inventory/four-spark", recipes, "A4", environ={}, sets=[])
    server = lane.recipe.services["server"]
    other = server.model_copy(update={"env": {**server.env, old: "7"}})
    recipe = lane.recipe.model_copy(update={"services": {**lane.recipe.services, "server": other}})
    with pytest.raises(ConfigError) as failure:
        render_lane(replace(lane, recipe=recipe), {})
    told = {fault.key: fault.message for fault in failure.value.faults}
    assert f"7 at services.server.env.{old} (rank 0)" in told[key]
    assert sum(name.startswith("agree.") for name in told) == 1


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
        "8000, the port of agent, is the port of API too",
        "env.SPARKNET_PEER: is empty, and what reads it does not take that as unset",
        "four are needed",
        "services.engine.env.RANK: must be the same on all ranks",
    ):
        assert words in found
