"""Which value wins, where each comes from, and what a node is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sparkyard import load
from sparkyard.command import MASK
from sparkyard.errors import ConfigError, UsageError
from sparkyard.model import Lane, Link, Origin
from tests.unit.projects import FILES, HOSTS, Edit, hosts, recipe, write_project

MY = Path("inventory/my")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolved(
    project: Path,
    *,
    files: Mapping[str, str] | None = None,
    edits: Sequence[Edit] = (),
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    lane: str | None = None,
) -> Lane:
    write_project(project, {**FILES, **(files or {})}, edits)
    recipes = load.find_recipes(project, [])
    return load.load_all(MY, recipes, lane, environ=environ or {}, sets=sets)


VARS = {
    "inventory/my/group_vars/all.yml": "lanes: {A: {context: 1001}}\n",
    "inventory/my/group_vars/sparks.yml": "lanes: {A: {context: 1002}}\n",
    "inventory/my/host_vars/spark-1.yml": "lanes: {A: {context: 1003}}\n",
    "inventory/my/host_vars/spark-2.yml": "lanes: {A: {context: 1003}}\n",
}
ENVIRON = {"SPARKYARD_CONTEXT": "1004"}


@pytest.mark.parametrize(
    ("layers", "environ", "sets", "value", "origin"),
    [
        (0, {}, [], 4096, Origin(HOSTS, 19)),
        (1, {}, [], 1001, Origin("inventory/my/group_vars/all.yml", 1)),
        (2, {}, [], 1002, Origin("inventory/my/group_vars/sparks.yml", 1)),
        (4, {}, [], 1003, Origin("inventory/my/host_vars/spark-1.yml", 1)),
        (4, ENVIRON, [], 1004, Origin("SPARKYARD_CONTEXT")),
        (4, ENVIRON, ["context=1005"], 1005, Origin("--set")),
    ],
)
def test_a_later_layer_wins_and_says_where_it_stands(
    project: Path, layers: int, environ: Mapping[str, str], sets: list[str], value: int, origin: Origin
) -> None:
    files = dict(list(VARS.items())[:layers])
    lane = resolved(project, files=files, environ=environ, sets=sets)
    assert lane.settings["context"].value == value
    assert lane.settings["context"].origin == origin


def test_the_recipes_default_comes_before_all(project: Path) -> None:
    lane = resolved(project, edits=[hosts("{context: 4096}", "{}")])
    assert lane.settings["context"].value == 2048
    assert str(lane.settings["context"].origin) == "recipes/a/recipe.yml:5"


def test_lanes_merge_by_key_and_link_is_replaced_whole(project: Path) -> None:
    files = {"inventory/my/group_vars/all.yml": "lanes: {A: {mode: exact}, kit: {window: 4096}}\n"}
    lane = resolved(project, files=files)
    assert (lane.settings["context"].value, lane.settings["mode"].value) == (4096, "exact")
    assert lane.settings["mode"].origin == Origin("inventory/my/group_vars/all.yml", 1)

    files = {"inventory/my/host_vars/spark-2.yml": "link: {address: 10.0.0.9}\n"}
    with pytest.raises(ConfigError, match=r"spark-2.yml:1: spark-2.link.hcas: missing"):
        resolved(project, files=files)


def test_env_merges_by_key_over_all_layers(project: Path) -> None:
    lane = resolved(
        project,
        edits=[hosts("{context: 4096}", "{env: {NCCL_DEBUG: INFO, A: one, B: two}}")],
        sets=["env.B=three=3", "env.HF_TOKEN=hidden"],
    )
    assert {name: value.value for name, value in lane.env.items()} == {
        "NCCL_DEBUG": "INFO",
        "A": "one",
        "B": "three=3",
        "HF_TOKEN": "hidden",
    }
    assert str(lane.env["A"].origin) == f"{HOSTS}:19"
    assert str(lane.env["B"].origin) == "--set"
    assert lane.secrets() == ("hidden",)
    plain = resolved(project)
    assert str(plain.env["NCCL_DEBUG"].origin) == "recipes/a/recipe.yml:33"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("context=300", 300),
        ("rate=1", 1.0),
        ("rate=2.5e-1", 0.25),
        ("expose=true", True),
        ("mode=exact", "exact"),
        ("api_key=a=b c", "a=b c"),
    ],
)
def test_set_is_read_by_the_settings_type(project: Path, text: str, value: object) -> None:
    got = resolved(project, sets=[text]).settings[text.split("=", maxsplit=1)[0]].value
    assert got == value
    assert type(got) is type(value)


def test_the_lane_comes_from_the_flag_then_the_environment_then_the_inventory(project: Path) -> None:
    environ = {"SPARKYARD_LANE": "kit", "INVOKE_LANE": "A"}
    assert resolved(project).name == "A"
    assert resolved(project, environ={"INVOKE_LANE": "kit"}).name == "kit"
    assert resolved(project, environ=environ).name == "kit"
    assert resolved(project, environ=environ, lane="A").name == "A"


def test_a_variable_for_another_lane_may_stay_in_the_environment(project: Path) -> None:
    lane = resolved(project, environ={"SPARKYARD_CONTEXT": "512", "SPARKYARD_LAB": "/srv/lab"}, lane="kit")
    assert set(lane.settings) == {"window"}


def test_nodes_are_the_first_by_rank_or_as_named(project: Path) -> None:
    four = (Path(__file__).parents[2] / "inventory/four-spark/hosts.yml").read_text()
    four = four.replace("lane: B ", "lane: A ")
    files = {HOSTS: four.replace("          A: {nodes: [spark-1, spark-2]}\n", "")}
    assert [node.name for node in resolved(project, files=files).nodes] == [
        f"spark-{n}" for n in (1, 2, 3, 4)
    ]
    kit = resolved(project, files=files, lane="kit")
    assert [node.name for node in kit.nodes] == ["spark-1", "spark-2"]
    named = {
        HOSTS: files[HOSTS].replace("kit: {nodes: [spark-1, spark-2]}", "kit: {nodes: [spark-1, spark-4]}")
    }
    assert [node.name for node in resolved(project, files=named, lane="kit").nodes] == ["spark-1", "spark-4"]
    far = {
        HOSTS: files[HOSTS].replace("kit: {nodes: [spark-1, spark-2]}", "kit: {nodes: [spark-3, spark-4]}")
    }
    with pytest.raises(ConfigError, match="its first node spark-3 is not local"):
        resolved(project, files=far, lane="kit")


def test_a_node_is_made_of_its_variables(project: Path) -> None:
    lane = resolved(
        project,
        edits=[
            hosts("    lane: A\n", "    lane: A\n    root: ~/yard/\n    models: /data/models\n"),
            hosts(
                "user: spark\n",
                "user: spark\n          ansible_port: 2222\n          ansible_ssh_private_key_file: ~/k\n",
            ),
        ],
        environ={"HOME": "/home/me"},
    )
    head, worker = lane.nodes
    assert (head.name, head.rank, head.local, head.host, head.user, head.port) == (
        "spark-1",
        0,
        True,
        "spark-1",
        None,
        None,
    )
    assert (worker.local, worker.host, worker.user, worker.port, worker.key) == (
        False,
        "spark-2.local",
        "spark",
        2222,
        "/home/me/k",
    )
    assert worker.link == Link("10.0.0.2", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0"))
    assert (worker.root, worker.models) == ("<discovered: home>/yard", "/data/models")
    assert worker.vars["link"]["interface"] == "enp1s0f0np0"
    assert lane.inventory.groups["sparks"] == ("spark-1", "spark-2")
    assert (lane.inventory.default_lane, lane.inventory.revert_to) == ("A", "kit")


def test_root_and_models_have_defaults_and_can_be_overridden(project: Path) -> None:
    node = resolved(project).head
    assert node.root == "<discovered: home>/.local/share/sparkyard"
    assert node.models == "<discovered: home>/.local/share/sparkyard/models"
    node = resolved(project, environ={"SPARKYARD_ROOT": "/data/yard"}, sets=["models=/fast/models"]).head
    assert (node.root, node.models) == ("/data/yard", "/fast/models")
    values = resolved(project, environ={"SPARKYARD_ROOT": "/data/yard"}).inventory.values["spark-1"]
    assert (str(values["root"].origin), values["models"].value) == ("SPARKYARD_ROOT", "/data/yard/models")


def test_explain_names_every_value_and_masks_secrets(project: Path) -> None:
    lane = resolved(
        project, edits=[hosts("{context: 4096}", "{api_key: sk-planted}")], environ={"SPARKYARD_PORT": "9000"}
    )
    rows = {(row.owner, row.key): (row.value, row.origin) for row in load.explain(lane)}
    assert rows["lane A", "nodes"] == ('["spark-1", "spark-2"]', "first by rank")
    assert rows["lane A", "port"] == ("9000", "SPARKYARD_PORT")
    assert rows["lane A", "expose"] == ("false", "recipes/a/recipe.yml:8")
    assert rows["lane A", "api_key"] == (MASK, f"{HOSTS}:19")
    assert rows["spark-2", "link.hcas"] == ('["rocep1s0f0", "roceP2p1s0f0"]', f"{HOSTS}:16")
    assert rows["spark-1", "root"] == ("~/.local/share/sparkyard", "default")
    for what in (lane, lane.inventory):
        assert "planted" not in str(load.explain(what)) + str(load.explain_json(what))
    assert {"owner": "lane A", "key": "port", "value": 9000, "origin": "SPARKYARD_PORT"} in load.explain_json(
        lane
    )


def test_anchors_and_merge_keys_are_resolved(project: Path) -> None:
    lane = resolved(
        project,
        edits=[
            recipe("timeout: 600\n", "timeout: 600\n  body: &chat {temperature: 0, messages: [hello]}\n"),
            recipe("    expect:\n", "    body: {<<: *chat, temperature: 1}\n    expect:\n"),
        ],
    )
    assert lane.recipe.verify[0].body == {"temperature": 1, "messages": ["hello"]}


def test_recipe_lines(project: Path) -> None:
    write_project(project)
    lines = load.recipe_lines(project / "recipes/a")
    assert (lines["services.engine.words.2"], lines["ready.timeout"], lines["rules.0.must"]) == (41, 47, 57)


NO_LAB = {"SPARKYARD_LAB": "/nowhere"}


def test_who_has_no_inventory_and_a_lab_up_means_the_lab(project: Path, tmp_path: Path) -> None:
    (tmp_path / "lab/inventory").mkdir(parents=True)
    environ = {"SPARKYARD_LAB": str(tmp_path / "lab")}
    assert load.find_inventory(None, project, environ) == tmp_path / "lab/inventory"
    write_project(project)
    assert load.find_inventory(None, project, environ) == project / "inventory/my"


def test_an_inventory_is_found_by_name_by_path_or_by_default(project: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load.find_inventory(None, project, NO_LAB)
    assert caught.value.next_step == "invoke init, or to try it without a Spark: invoke lab.up"
    write_project(project)
    (project / "inventory/two-spark").mkdir()
    (project / "inventory/two-spark/hosts.yml").write_text("all:\n")
    assert load.find_inventory(None, project, NO_LAB) == project / "inventory/my"
    assert load.find_inventory("two-spark", project, {}) == project / "inventory/two-spark"
    assert (
        load.find_inventory("inventory/two-spark/hosts.yml", project, {}).resolve()
        == project / "inventory/two-spark"
    )
    assert load.find_inventory(None, project, {"SPARKYARD_INVENTORY": "two-spark"}).name == "two-spark"
    with pytest.raises(UsageError) as caught:
        load.find_inventory("tow-spark", project, {})
    assert str(caught.value) == (
        '--inventory: there is no inventory "tow-spark" (did you mean two-spark?)\n'
        "  in inventory/: my, two-spark\n"
        "  next: name one of these, or write your own: invoke init"
    )


def test_without_an_inventory_the_examples_are_named(project: Path) -> None:
    write_project(project, {"inventory/two-spark/hosts.yml": "all:\n"})
    with pytest.raises(UsageError) as caught:
        load.find_inventory(None, project, NO_LAB)
    assert str(caught.value) == (
        "no inventory: inventory/my is not there and --inventory was not given\n"
        "  examples: two-spark\n"
        "  next: invoke init, or to try it without a Spark: invoke lab.up"
    )


def test_more_folders_of_recipes(project: Path) -> None:
    write_project(project)
    write_project(
        project / "more", {"x/recipe.yml": FILES["recipes/kit/recipe.yml"].replace("lane: kit", "lane: X")}
    )
    assert set(load.find_recipes(project, [])) == {"A", "kit"}
    assert load.find_recipes(project, [Path("more")])["X"] == Path("more/x")
    assert set(load.find_recipes(project, [], {"SPARKYARD_RECIPES": str(project / "more")})) == {
        "A",
        "X",
        "kit",
    }
    assert set(load.find_recipes(project, [Path("recipes")])) == {"A", "kit"}


@pytest.mark.parametrize("name", ["two-spark", "four-spark", "lab"])
def test_the_examples_load(name: str) -> None:
    folder = Path(__file__).parents[2] / "inventory" / name
    inventory = load.load_inventory(folder, environ={}, sets=[])
    assert inventory.head.local
    assert [node.rank for node in inventory.nodes] == list(range(len(inventory.nodes)))
    recipes = load.find_recipes(folder.parents[1], [])
    lane = load.load_all(folder, recipes, None, environ={}, sets=[])
    assert lane.name == inventory.default_lane


def test_a_folder_that_is_no_inventory_at_all_is_one_fault(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"file{number}").write_text("")
    with pytest.raises(ConfigError) as caught:
        load.load_inventory(tmp_path, environ={}, sets=[])
    assert [fault.message for fault in caught.value.faults] == [
        "no hosts.yml in this folder; write one with invoke init"
    ]
