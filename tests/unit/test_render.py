"""The tiny lane rendered: exact words, one fault for each mistake, a hash that changes when and only when it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkyard.errors import ConfigError, UsageError
from sparkyard.loading.yaml_file import shown
from sparkyard.model import Container, Origin, Value
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_tree import texts, write_tree
from tests.unit import sample

KEY = "sk-not-a-real-key"
GOLDEN = Path(__file__).parent.parent / "data" / "rendered"


def rendered(count: int = 2, **settings: Any) -> RenderedLane:
    return render_lane(sample.lane(count, api_key=KEY, **settings), {})


def faults(change: dict[str, Any], count: int = 2, **settings: Any) -> list[str]:
    """The faults of the tiny recipe with some keys changed (dotted), without the file's path."""
    data = sample.recipe_data()
    for key, value in change.items():
        where = data
        *path, last = key.split(".")
        for name in path:
            where = where[int(name)] if isinstance(where, list) else where[name]
        where[last] = value
    with pytest.raises(ConfigError) as caught:
        render_lane(sample.lane(count, data, **settings), {})
    return [str(fault).removeprefix(f"{shown(sample.RECIPES)}/tiny/") for fault in caught.value.faults]


@pytest.mark.parametrize(
    "name",
    [
        "spark-1/engine.docker.sh",
        "spark-2/engine.docker.sh",
        "spark-2/files/home/.local/share/sparkyard/lanes/T/engine.env",
    ],
)
def test_the_tree_is_as_it_was_reviewed(name):
    assert (
        texts(rendered())[name]
        == (GOLDEN / name.replace("/home/.local/share/sparkyard/lanes/T", "")).read_text()
    )


def test_the_tree_is_written_whole_and_masks_secrets(tmp_path):
    write_tree(rendered(), tmp_path)
    stale = tmp_path / "T" / "spark-9" / "old"
    stale.parent.mkdir()
    stale.write_text("x")
    written = write_tree(rendered(), tmp_path)
    assert not stale.exists()
    keys = [path for path in written if path.name == "keys.env"]
    assert [path.read_text() for path in keys] == ["API_KEY=********\n"] * 2
    assert all(KEY not in path.read_text() for path in written)


def test_a_folder_of_somebody_else_is_never_emptied(tmp_path):
    precious = tmp_path / "T" / "recipe.yml"  # as with --out=recipes
    precious.parent.mkdir()
    precious.write_text("lane: T")
    with pytest.raises(UsageError, match="holds files that render did not write; nothing was changed"):
        write_tree(rendered(), tmp_path)
    assert [path.name for path in precious.parent.iterdir()] == ["recipe.yml"]


def words(container: Container, option: str) -> list[str]:
    return [
        after for word, after in zip(container.words, container.words[1:], strict=False) if word == option
    ]


def test_every_rank_has_its_own_values():
    first, second = rendered().containers
    assert "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1" in words(first, "--env")
    assert "NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0" in words(second, "--env")
    assert "f1" not in " ".join(words(second, "--env"))
    assert (first.words[-1], second.words[-1]) == ('--config={"streams":4,"peers":1}', "--headless")


def test_conditional_variables_are_left_out_where_they_do_not_hold():
    first, second = rendered().containers
    assert not any(word.startswith("MASTER=") for word in words(first, "--env"))
    assert "MASTER=10.0.0.1:29500" in words(second, "--env")


def test_bodies_keep_the_type_of_an_expression():
    assert rendered().checks[0].body["max_tokens"] == 8


def test_order_gates_and_ports():
    lane = rendered(4)
    assert lane.order == ((1, 2, 3), (0,))
    assert lane.gates["sparkyard-T-engine-2"].port == ("10.0.0.3", 29500)
    assert lane.ports["spark-1"] == {"API": 8000, "rendezvous": 29500}
    assert lane.ports["spark-3"] == {"rendezvous": 29500}


def test_the_hash_is_of_the_wanted_state():
    base = [container.hash for container in rendered().containers]
    assert base == [container.hash for container in rendered().containers]
    assert base != [container.hash for container in rendered(streams=3).containers]
    changed = render_lane(sample.lane(api_key=KEY + "2"), {})
    assert base != [container.hash for container in changed.containers]


def test_a_file_in_a_mounted_folder_counts_in_the_hash():
    data = sample.recipe_data()
    data["files"]["profile"] |= {"template": None, "values": {"A": "1"}, "dialect": "shell"}
    one = render_lane(sample.lane(data=data), {}).containers[0].hash
    data["files"]["profile"]["values"]["A"] = "2"
    assert render_lane(sample.lane(data=data), {}).containers[0].hash != one


def test_labels_are_not_in_the_hash_but_hold_it():
    container = rendered().containers[0]
    labels = dict(word.split("=", 1) for word in words(container, "--label"))
    assert labels["sparkyard.hash"] == container.hash
    assert labels["sparkyard.nodes"] == "spark-1,spark-2"
    assert json.loads(labels["sparkyard.discovered"]) == {"gid": "<discovered: gid>"}


def test_no_word_and_no_label_holds_a_secret():
    lane = rendered()
    assert not any(KEY in word for container in lane.containers for word in container.words)
    assert [file.mode for file in lane.files if KEY in file.content] == [0o600, 0o600]


def test_a_secret_variable_of_the_inventory_travels_by_file():
    env = {
        "TOKEN": Value("hush-hush", Origin("hosts.yml", 3), secret=True),
        "EXTRA": Value(True, Origin("hosts.yml", 4)),
    }
    lane = render_lane(sample.lane(env=env), {})
    container = lane.containers[0]
    assert "EXTRA=1" in words(container, "--env")
    assert not any("hush" in word for word in container.words)
    (file,) = (file for file in lane.files_of("spark-1") if file.name == "secret.env")
    assert (file.content, file.mode) == ("TOKEN=hush-hush\n", 0o600)
    assert file.path in words(container, "--env-file")


def test_null_in_the_inventory_takes_a_variable_away():
    lane = render_lane(sample.lane(env={"NCCL_IB_GID_INDEX": Value(None, Origin("x", 1))}), {})
    assert not any("GID_INDEX" in word for word in words(lane.containers[0], "--env"))


def test_an_unlocked_checkpoint_renders_marked():
    data = sample.recipe_data()
    data["checkpoints"]["model"]["revision"] = "afc7aa0a"
    lane = render_lane(sample.lane(data=data), {})
    assert lane.unlocked == ("model",)
    assert any("<unlocked: afc7aa0a>" in word for word in lane.containers[0].words)
    assert render_lane(sample.lane(data=data), {"model": "2" * 40}).unlocked == ()


LONG = "a secret would stand in the command line, where everybody can read it: use a file with `secret: true`"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"services.engine.words": ["{{ lane.contxt }}"]},
            "recipe.yml:54: services.engine.words.0: lane.contxt is not known (did you mean context?) (on spark-1, spark-2)",
        ),
        ({"services.engine.words": ["{{ missing }}"]}, "'missing' is undefined (on spark-1, spark-2)"),
        (
            {"services.engine.words": ["{{ '' }}"]},
            "is empty here, which is not the same as unset: leave it out with {% if … %}",
        ),
        (
            {
                "services.engine.words": ["{{ lane.blank }}"],
                "settings.blank": {"default": "", "about": "x", "source": {"kind": "chosen", "why": "test"}},
            },
            "services.engine.words.0: needs the setting blank, which is empty: give it a value",
        ),
        ({"services.engine.words": ["{{ none }}"]}, "the value is null: set it, or give it a default"),
        ({"services.engine.words": ["{{ lane.port }"]}, "template error: unexpected '}'"),
        ({"services.engine.words": ["{{ 9 ** 9 }}"]}, "** is only for the product of two numbers"),
        ({"services.engine.words": ["{{ 'a' * 9999999999 }}"]}, "* is only for the product of two numbers"),
        ({"services.engine.words": ["{{ lane.__class__ }}"]}, "lane.__class__ is not known"),
        (
            {"services.engine.words": ["{{ ''.__class__.__mro__ }}"]},
            "access to attribute '__class__' of 'str' object is unsafe.",
        ),
        (
            {"services.engine.options": ["--rm"]},
            "--rm is set by sparkyard itself: use env, env_files, mounts or the recipe's order",
        ),
        ({"services.engine.options": ["-v", "/a:/b"]}, "-v is set by sparkyard itself"),
        (
            {"services.engine.mounts": [{"source": "/tmp/x", "target": "/x"}]},
            "source '/tmp/x' is in /tmp, which does not survive a reboot",
        ),
        ({"services.engine.mounts": [{"source": "x", "target": "/x"}]}, "source 'x' is not absolute"),
        (
            {"services.engine.mounts": [{"source": "/a,b", "target": "/x"}]},
            "holds a comma, a quote or a line break, which --mount cannot carry",
        ),
        ({"services.engine.mounts": [{"source": "{{ root }}/../x", "target": "/x"}]}, "holds `..`"),
        (
            {"services.engine.env_files": ["nope"]},
            "services.engine.env_files: nope is not a file of this node (on spark-1, spark-2)",
        ),
        ({"services.engine.env_files": ["profile"]}, "profile is in the dialect plain, not docker-env"),
        ({"services.engine.words": ["--key={{ lane.api_key }}"]}, LONG),
        (
            {"files.engine.values": {"K": "{{ lane.api_key }}"}},
            "files.engine: holds a secret and must say `secret: true`",
        ),
        (
            {"files.engine.values": {"K": "a\nb"}},
            "files.engine.values.K: holds a line break, which docker run --env-file cannot carry",
        ),
        ({"files.engine.path": "/tmp/e"}, "path '/tmp/e' is in /tmp, which does not survive a reboot"),
        ({"files.engine.path": "{{ root }}/keys.env"}, "files.keys.path: is the path of engine too"),
        ({"files.profile.template": "../tiny/start.sh.j2x"}, "there is no template '../tiny/start.sh.j2x'"),
        ({"files.profile.template": "../../../unit/raw.py"}, "there is no template '../../../unit/raw.py'"),
        (
            {"env.NCCL_IB_HCA": ""},
            "env.NCCL_IB_HCA: is empty, and what reads it does not take that as unset: leave it out",
        ),
        ({"ports.API": "80800"}, "ports.API: '80800' is not a port: expected 1 to 65535"),
        (
            {"ports.API": "{{ lane.master_port }}"},
            "--set: lanes.T.master_port: 29500, the port of rendezvous, is the port of API too; give one of them another number (on spark-1, spark-2)",
        ),
        ({"order": [[0], [2]]}, "order: must name each rank from 0 to 1 once"),
        ({"image.build.dockerfile": "Nope"}, "image.build.dockerfile: there is no Nope in"),
        ({"image.build.context": "../.."}, "image.build.context: points outside of the recipe's folder"),
        ({"verify.0.body": {"a": "{{ lane.x }}"}}, "verify.0.body.a: lane.x is not known"),
    ],
)
def test_each_mistake_has_its_words(change, expected):
    found = faults(change, api_key=KEY)
    assert any(expected in fault for fault in found), found


def test_a_null_on_one_node_names_that_node():  # T64
    data = sample.recipe_data()
    data["services"]["engine"]["words"] = ["{{ node.vars.size }}"]
    lane = sample.lane(data=data)
    lane.nodes[0].vars["size"] = 1  # type: ignore[index]
    object.__setattr__(lane.nodes[1], "vars", {"size": None})
    with pytest.raises(ConfigError, match=r"the value is null.*\(on spark-2\)"):
        render_lane(lane, {})


def test_a_fault_in_a_template_file_names_its_line(tmp_path):
    data = sample.recipe_data()
    lane = sample.lane(data=data)
    folder = tmp_path / "recipe"
    (folder / "image").mkdir(parents=True)
    (folder / "image" / "Dockerfile").write_text("FROM scratch\n")
    (folder / "start.sh.j2").write_text("one\ntwo {{ lane.nope }}\n")
    object.__setattr__(lane, "recipe_folder", folder)
    with pytest.raises(ConfigError) as caught:
        render_lane(lane, {})
    (fault,) = caught.value.faults
    assert (fault.file, fault.line) == (str(folder / "start.sh.j2"), 2)
    assert fault.message == "lane.nope is not known (on spark-1, spark-2)"


def test_every_fault_is_told_at_once():
    found = faults({"env.A": "{{ lane.a }}", "ports.API": "0", "services.engine.words": ["{{ lane.b }}"]})
    assert len(found) == 3


def test_a_broken_rule_says_what_must_hold():
    found = faults({}, streams=8)
    assert found == [
        "recipe.yml:82: rules.0: context 4096 is too small for 8 streams (must be: lane.context >= 1024 * lane.streams; test) (on spark-1, spark-2)"
    ]


def test_a_link_out_of_the_build_context_is_refused(tmp_path):
    lane = sample.lane()
    folder = tmp_path / "recipe"
    (folder / "image").mkdir(parents=True)
    (folder / "image" / "Dockerfile").write_text("FROM scratch\n")
    (folder / "start.sh.j2").write_text("x")
    (folder / "image" / "out").symlink_to("/etc/passwd")
    object.__setattr__(lane, "recipe_folder", folder)
    with pytest.raises(ConfigError, match="out is a link that points outside of the build context"):
        render_lane(lane, {})
