"""Lane A as it is rendered: published values, what must be equal on both ranks, folders that are never shared, rules."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sparkyard.errors import ConfigError
from sparkyard.load import find_recipes, load_all
from sparkyard.model import Lane, Manifest, RemoteFile
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit.words import flag

ROOT = Path(__file__).resolve().parents[2]
COMMITS = {
    "weights-1017": "afc7aa0a" + "0" * 32,
    "engram-1017": "1bae0e10" + "0" * 32,
    "weights-mia": "64ba41b6c916a587db06eae2e19b7845f7be6e6b",
    "engram-mia": "dba1be0a40aa45a94ad051997016db3960a90277",
}
KEY = "sk-sixteen-or-more"


def lane(*sets: str, inventory: str = "two-spark") -> Lane:
    recipes = dict(find_recipes(ROOT, []))
    recipes.setdefault("kit", recipes["lab"])  # the example inventory names it
    return load_all(ROOT / "inventory" / inventory, recipes, "A", environ={}, sets=list(sets))


def rendered(*sets: str) -> RenderedLane:
    here = lane(*sets)
    return render_lane(here, {name: COMMITS[name] for name in here.checkpoints})


def parts(container: Any) -> tuple[dict[str, str], list[str], list[str], list[str]]:
    """(environment, mounts, options, words behind the image) of a container's ``docker run``."""
    words = list(container.words)
    behind = words[words.index(container.image) + 1 :]
    env, mounts, options = {}, [], []
    before = words[: words.index(container.image)]
    for word, value in pairwise(before):
        if word == "--env":
            name, _, text = value.partition("=")
            env[name] = text
        elif word == "--mount":
            mounts.append(value)
    options = before[before.index("--init") : before.index("--env")]
    return env, mounts, options, behind


def test_the_published_values():
    first, second = (parts(container) for container in rendered().containers)
    for env, _, _, words in (first, second):
        assert words[:3] == ["tensorfold", "serve", "/model"]
        assert flag(words, "--tp") == "2"
        assert flag(words, "--name") == "DeepSeek-V4.1-Flash-1017"
        assert flag(words, "--context") == "1048576"
        assert flag(words, "--parallel") == "4"
        assert flag(words, "--mtp-drafts") == "5"
        assert "--no-thinking" in words
        assert "--vision" not in words
        assert flag(words, "--temperature") is None
        assert env["TF_DS_SPILL_GIB"] == "64"
        assert env["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] == "0"
        assert env["TF_DS_ENGRAM"] == "/engram"
    assert (flag(first[3], "--host"), flag(first[3], "--port")) == ("127.0.0.1", "8888")
    assert (flag(second[3], "--host"), flag(second[3], "--port")) == (None, None)
    assert [flag(words, "--rank") for _, _, _, words in (first, second)] == ["0", "1"]


def test_each_rank_has_the_link_of_its_own_node_and_both_meet_at_the_head():
    first, second = (parts(container) for container in rendered().containers)
    assert first[0]["NCCL_IB_HCA"] == first[0]["TF_RDMA_DEVICES"] == "rocep1s0f1,roceP2p1s0f1"
    assert second[0]["NCCL_IB_HCA"] == second[0]["TF_RDMA_DEVICES"] == "rocep1s0f0,roceP2p1s0f0"
    assert [env["NCCL_SOCKET_IFNAME"] for env, *_ in (first, second)] == ["enp1s0f1np1", "enp1s0f0np0"]
    assert {env["NCCL_IB_GID_INDEX"] for env, *_ in (first, second)} == {"<discovered: gid>"}
    assert [flag(words, "--master") for *_, words in (first, second)] == ["10.0.0.1"] * 2


@pytest.mark.parametrize("sets", [[], ["vision=true", "parallel=2", "context=65536", "thinking=true"]])
def test_what_must_be_the_same_on_both_ranks_is(sets):
    own = {"--rank", "0", "1", "--host", "127.0.0.1", "--port", "8888"}
    made = rendered(*sets)
    words = [[word for word in parts(c)[3] if word not in own] for c in made.containers]
    assert words[0] == words[1]
    assert parts(made.containers[0])[2] == parts(made.containers[1])[2]


def test_the_template_is_mounted_over_the_pack_s_own_on_both_ranks():
    for container in rendered().containers:
        mounts = parts(container)[1]
        (over,) = [mount for mount in mounts if "target=/model/chat_template.jinja" in mount]
        assert over.startswith(
            "type=bind,source=<discovered: home>/.local/share/sparkyard/lanes/A/chat_template.jinja,"
        )
        assert over.endswith(",readonly")
        assert mounts.index(over) > next(n for n, mount in enumerate(mounts) if "target=/model," in mount)


def folders(made: RenderedLane) -> dict[str, str]:
    return {kept.name: kept.path for kept in made.kept["spark-1"]}


def test_kept_folders_are_mounted_and_counted_in_bytes():
    made = rendered()
    sizes = {kept.name: kept.size for kept in made.kept["spark-2"]}
    assert sizes == {"rank-cache": 110_000_000_000, "spill": 64 << 30}
    mounts = parts(made.containers[1])[1]
    assert all(any(f"source={path}," in mount for mount in mounts) for path in folders(made).values())
    assert {kept.size for kept in rendered("spill_gib=0").kept["spark-1"]} == {110_000_000_000, 0}


@pytest.mark.parametrize("change", ["prefill_chunk=1024", "replay=0", "replay_floor=0"])
def test_settings_that_the_engine_would_delete_the_spill_for_have_a_spill_of_their_own(change):
    before, after = folders(rendered()), folders(rendered(change))
    assert before["spill"] != after["spill"]
    assert before["rank-cache"] == after["rank-cache"]


@pytest.mark.parametrize(
    "change", ["context=65536", "parallel=2", "drafts=3", "port=9000", "spill_gib=8", "thinking=true"]
)
def test_other_settings_keep_what_is_there(change):
    assert folders(rendered()) == folders(rendered(change))


def test_the_weights_are_chosen_by_a_setting():
    assert list(lane().checkpoints) == ["weights-1017", "engram-1017"]
    mia = rendered("weights=mia", "model_name=DeepSeek-V4.1-Flash")
    mounts = parts(mia.containers[0])[1]
    assert (
        "Mia-AiLab--DeepSeek-V4.1-Flash-EXL3-2.9bpw/64ba41b6c916a587db06eae2e19b7845f7be6e6b,target=/model,"
        in mounts[0]
    )
    assert (
        "/deepseek-ai--DeepSeek-V4.1-Flash/dba1be0a40aa45a94ad051997016db3960a90277,target=/engram,"
        in mounts[2]
    )
    assert folders(mia)["rank-cache"] != folders(rendered())["rank-cache"]
    assert folders(mia)["spill"] != folders(rendered())["spill"]


def test_a_key_travels_in_a_file_and_opens_the_api():
    made = rendered("expose=true", f"api_key={KEY}")
    assert flag(parts(made.containers[0])[3], "--host") == "0.0.0.0"
    assert not any(KEY in word for container in made.containers for word in container.words)
    (head, _) = [file for file in made.files if file.name == "keys"]
    assert (head.mode, head.content) == (0o600, f"TF_API_KEY={KEY}\nTENSORFOLD_API_KEY={KEY}\n")
    assert {file.content for file in rendered().files if file.name == "keys"} == {""}


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["temperature=0"], r"temperature 0 as a default makes long agent turns loop"),
        (["expose=true"], r"expose lets every computer on the network use the API; set api_key"),
        (["expose=true", "api_key=short"], r"set api_key to 16 characters or more"),
        (["master_port=8888"], r"8888, the port of rendezvous, is the port of API too"),
        (["context=8192"], r"max_tokens 32768 is more than the context, 8192"),
        (["weights=mia"], r"the Mia pack is the original release, and model_name says 1017"),
        (
            ["env.TF_DS_ENGRAM=/elsewhere"],
            r"TF_DS_ENGRAM is set by the recipe's service itself, so --set would be without effect",
        ),
        (["parallel=5"], r"at most 4 is expected, found 5"),
        (["drafts=6"], r"at most 5 is expected, found 6"),
        (["context=1048577"], r"at most 1048576 is expected, found 1048577"),
        (["weights=other"], r"1017 or mia is expected"),
    ],
)
def test_rules(sets, says):
    with pytest.raises(ConfigError, match=says):
        rendered(*sets)


def test_a_pack_without_a_template_is_refused_once_its_files_are_known():
    here = lane()
    files = (RemoteFile("config.json", 1, blob="0" * 40), RemoteFile("chat_template.jinja", 1, blob="0" * 40))
    whole = Manifest("r", COMMITS["weights-1017"], files)
    assert render_lane(here, {**COMMITS, "weights-1017": whole})
    with pytest.raises(ConfigError, match=r"the weights have no chat_template\.jinja"):
        render_lane(here, {**COMMITS, "weights-1017": Manifest("r", whole.commit, files[:1])})


def test_one_hca_less_on_a_node_is_refused(tmp_path):
    text = (ROOT / "inventory/two-spark/hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(text.replace("[rocep1s0f0, roceP2p1s0f0]", "[rocep1s0f0]"))
    with pytest.raises(ConfigError, match="HCAs in the link: 1, and in that of spark-1: 2"):
        render_lane(lane(inventory=str(tmp_path)), {})


def test_an_inventory_s_setting_counts(tmp_path):
    text = (ROOT / "inventory/two-spark/hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(text.replace("A: {context: 1048576}", "A: {context: 524288}"))
    made = render_lane(lane(inventory=str(tmp_path)), {})
    assert flag(parts(made.containers[1])[3], "--context") == "524288"


def test_five_requests_and_their_bodies():
    checks = {check.name: check.body for check in rendered().checks}
    assert len(checks) == 5
    assert all(body["model"] == "DeepSeek-V4.1-Flash-1017" for body in checks.values())
    assert rendered().ready.body["chat_template_kwargs"] == {"enable_thinking": False}


def test_order_ports_and_limits():
    made = rendered()
    assert made.order == ((1,), (0,))
    assert made.ports == {"spark-1": {"API": 8888, "rendezvous": 29551}, "spark-2": {}}
    assert (made.ready.timeout, made.ready.log_silence) == (1800, 420)
    assert lane().recipe.stop.grace == 30
    assert lane().recipe.limits.memory == 100_000_000_000


def test_edits_of_a_fetched_text_are_not_templates_of_ours():
    edits = [edit for patch in lane().recipe.patches.values() for edit in patch.edits]
    assert not edits or any("{%" in edit.find for edit in edits)
