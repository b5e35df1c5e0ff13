"""Lane A4 as it is rendered: what all four ranks must agree on, its inputs and kit as jobs, the order, and rules refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkyard import showing
from sparkyard.errors import ConfigError
from sparkyard.load import find_recipes, load_all
from sparkyard.lock import Lock
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from tests.unit.words import behind, env, flag, mounts

ROOT = Path(__file__).resolve().parents[2]
KIT = "c" * 40
COMMITS = {
    "weights": "64ba41b6c916a587db06eae2e19b7845f7be6e6b",
    "engram": "dba1be0a40aa45a94ad051997016db3960a90277",
    "kit": KIT,
}
KEY = "sk-sixteen-or-more"
ROUND = (
    "14.5,17.4,19.9,22.3,24.0,25.9,27.2,28.5,29.9,31.2,32.5,33.8,35.2,36.5,37.8,39.2,40.5,41.8,43.2,44.5,45.8,47.1,48.5,49.8,51.1,52.5,"
    "53.8,55.1,56.5,57.8,59.1,60.4,61.8,63.1,64.4,65.8,67.1,68.4,69.8,71.1,72.4,73.7,75.1,76.4,77.7,79.1,80.4,81.7"
)
AGREED = (
    "TF_DS_2D_GU",
    "TF_DS_ROUND_ROWS",
    "TF_DS_STREAMS",
    "TF_DS_SERVED_K",
    "TF_DS_WINDOW",
    "TF_DS_ROUND_MS",
)
OTHER_PORT = "enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]"
SAME_PORT = "enp1s0f1np1, hcas: [rocep1s0f1, roceP2p1s0f1]"


@pytest.fixture(scope="module")
def cabled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of four Sparks with every cable in the same port, as this engine wants it."""
    folder = tmp_path_factory.mktemp("cabled")
    text = (ROOT / "inventory" / "four-spark" / "hosts.yml").read_text()
    assert OTHER_PORT in text
    (folder / "hosts.yml").write_text(text.replace(OTHER_PORT, SAME_PORT))
    return folder


def rendered(inventory: Path, *sets: str) -> RenderedLane:
    recipes = dict(find_recipes(ROOT, []))
    return render_lane(load_all(inventory, recipes, "A4", environ={}, sets=list(sets)), COMMITS)


def refused(inventory: Path, *sets: str) -> str:
    with pytest.raises(ConfigError) as caught:
        rendered(inventory, *sets)
    return "\n".join(str(fault) for fault in caught.value.faults)


def test_the_head_serves_and_three_follow_it(cabled):
    head, *followers = rendered(cabled).containers
    words = behind(head)
    assert words[:3] == ["/engine/tensorfold-native", "serve", "/model"]
    said = {
        "--host": "127.0.0.1", "--port": "18091", "--name": "DeepSeek-V4.1-Flash-TP4", "--context": "1048576", "--parallel": "16",
        "--max-tokens": "32768", "--temperature": "1.0", "--top-p": "0.95", "--top-k": "20", "--backend": "cuda",
    }  # fmt: skip
    assert {name: flag(words, name) for name in said} == said
    assert "--thinking" in words
    assert "--api-key-file" not in words
    for rank, follower in enumerate(followers, 1):
        assert behind(follower)[:8] == [
            "/engine/tf-dsv41-lanes", "/model", "/cache/rank-cache", str(rank), "4", "10.0.0.1", "29760", "/kit",
        ]  # fmt: skip


def test_what_all_ranks_must_agree_on_is_said_once_and_stands_everywhere(cabled):
    for sets in (
        (),
        ("window=1572864", "parallel=8", "round_rows=24", f"round_ms={','.join(ROUND.split(',')[:24])}"),
    ):
        made = rendered(cabled, *sets)
        head, *followers = made.containers
        agreed = {name: env(head)[name] for name in AGREED}
        assert [{name: env(each)[name] for name in AGREED} for each in followers] == [agreed] * 3
        for follower in followers:
            words = behind(follower)
            assert flag(words, "--pool") == agreed["TF_DS_WINDOW"]
            assert flag(words, "--streams") == agreed["TF_DS_STREAMS"] == flag(behind(head), "--parallel")
            assert flag(words, "--round-rows") == agreed["TF_DS_ROUND_ROWS"]
            assert flag(words, "--context") == flag(behind(head), "--context")
        assert len(agreed["TF_DS_ROUND_MS"].split(",")) == int(agreed["TF_DS_ROUND_ROWS"])
    assert env(rendered(cabled).containers[2])["TF_DS_ROUND_MS"] == ROUND


def test_what_must_agree_is_shown_with_its_source(cabled):
    here = load_all(cabled, dict(find_recipes(ROOT, [])), "A4", environ={}, sets=[])
    (rules,) = [s for s in showing.sections(here, rendered(cabled), Lock(), "") if s.title == "rules"]
    named = {row["name"]: row["about"] for row in rules.rows}
    assert named["the window, everywhere the same: TF_DS_WINDOW, --pool"].startswith(
        "derived: config.env.example"
    )
    cited = {row["key"]: row["from"] for section in showing.sources(here) for row in section.rows}
    assert cited["agree.0"].startswith("derived: config.env.example @64c3d74e")


def test_the_order_is_3_2_1_0(cabled):
    assert [list(group) for group in rendered(cabled).order] == [[3], [2], [1], [0]]


def test_each_rank_makes_its_own_inputs_of_the_published_names_and_sizes(cabled):
    job = {job.name: job for job in rendered(cabled).jobs}["inputs"]
    assert [behind(each) for each in job.containers] == [
        ["/engine/node_inputs.sh", "/model", "/cache", str(rank), "4"] for rank in range(4)
    ]
    weights = [output for output in job.makes if output.path.endswith(".bin")]
    assert [(output.path.rpartition("/")[2], output.size) for output in weights] == [
        ("rank0of4-8d066150c78d6fba6392.bin", 56_211_098_348),
        ("rank1of4-039e14af2ce96ac16ef7.bin", 56_211_618_050),
        ("rank2of4-502b7baff41cb4172b63.bin", 56_241_541_490),
        ("rank3of4-2891eb3d6edaf5929c62.bin", 56_241_783_503),
    ]
    assert {output.size for output in job.makes if output not in weights} == {874_691}
    assert not job.gpu
    for container, maker in zip(rendered(cabled).containers, job.containers, strict=True):
        made, used = mounts(maker)["/cache"], mounts(container)["/cache"]
        assert made.partition(",target")[0] == used.partition(",target")[0]


def test_the_kit_is_compared_with_the_manifest_of_the_git_commit_on_every_node(cabled):
    job = {job.name: job for job in rendered(cabled).jobs}["kit"]
    assert [each.node for each in job.containers] == ["spark-1", "spark-2", "spark-3", "spark-4"]
    assert behind(job.containers[0])[2].startswith("cmp /engine/kit/MANIFEST /kit/MANIFEST && ")
    assert [each.pattern for each in job.says] == ["verify_kit: 356 of 356 files match MANIFEST"]
    assert job.bound_to == (KIT,)
    assert all(mounts(each)["/kit"].endswith(",readonly") for each in job.containers)


def test_a_key_reaches_the_engine_by_a_file_alone(cabled):
    made = rendered(cabled, "expose=true", f"api_key={KEY}")
    head = made.containers[0]
    assert flag(behind(head), "--api-key-file") == "/run/sparkyard/api-key"
    assert "/run/sparkyard/api-key" in mounts(head)
    assert KEY not in " ".join(head.words)
    (file,) = [file for file in made.files if file.name == "api-key"]
    assert (file.content, file.mode, file.secret, file.node) == (f"{KEY}\n", 0o600, True, "spark-1")
    assert "/run/sparkyard/api-key" not in mounts(rendered(cabled).containers[0])


def test_names_of_hcas_that_differ_are_refused_with_a_way_out():
    said = refused(ROOT / "inventory" / "four-spark")
    assert "the HCAs are rocep1s0f0, roceP2p1s0f0, and those of spark-1 are rocep1s0f1, roceP2p1s0f1" in said


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["expose=true"], "expose lets every computer on the network use the API"),
        (["window=524288"], "window 524288 is less than the context, 1048576"),
        (["round_rows=47"], "round_ms has 48 values and round_rows is 47"),
        (
            ["round_rows=12", "round_ms=" + ",".join(ROUND.split(",")[:12])],
            "round_rows 12 is less than parallel, 16",
        ),
        (["context=16384"], "max_tokens 32768 is more than the context, 16384"),
        (["port=29760"], "29760"),
        (["parallel=17"], "17"),
    ],
)
def test_what_does_not_fit_together_is_refused(cabled, sets, words):
    assert words in refused(cabled, *sets)


def test_all_faults_are_told_at_once(cabled):
    said = refused(cabled, "window=524288", "expose=true", "round_rows=47")
    assert "window 524288" in said
    assert "expose lets" in said
    assert "round_rows is 47" in said


@pytest.mark.parametrize("nodes", ["[spark-1, spark-2]", "[spark-1, spark-2, spark-3]"])
def test_it_needs_four_nodes(cabled, tmp_path, nodes):
    text = (cabled / "hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(
        text.replace("        lanes:\n", f"        lanes:\n          A4: {{nodes: {nodes}}}\n")
    )
    assert "4" in refused(tmp_path)


def test_its_engine_is_pinned_whole():
    recipes = dict(find_recipes(ROOT, []))
    recipe = load_all(ROOT / "inventory" / "four-spark", recipes, "A4", environ={}, sets=[]).recipe
    assert recipe.image.build is not None
    assert {name: git.commit for name, git in recipe.image.build.git.items()} == {
        "tensorfold": "59402086381a42c74d53053443224eec2790b4c5",
        "tp4": "6033ea48a27004b2715db82190e2a61f33411d92",
    }
    assert recipe.image.build.args["ZIG_VERSION"] == "0.17.0"
    text = (ROOT / "recipes" / "a4-tensorfold-native" / "image" / "Dockerfile").read_text()
    for name in recipe.image.build.args:
        assert f"ARG {name}\n" in text
