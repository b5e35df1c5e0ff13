"""Lane boot10 as it is rendered: capture sizes, Engram ranges from the real config, patches, order, safe defaults, rules, what the author ran."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkyard import facts
from sparkyard.actions import WaitMemory
from sparkyard.errors import ConfigError
from sparkyard.expectations import judge
from sparkyard.load import find_recipes, load_all
from sparkyard.model import Lane, Manifest, RemoteFile
from sparkyard.plan import Step, Verdict
from sparkyard.recipe_container import JobSpec
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.steps import preflight, service, switch
from sparkyard.steps.memory import MEMORY_BACK
from tests.unit import raw
from tests.unit.sample import ENGRAM_CONFIG as CONFIG
from tests.unit.words import behind, env, flag, mounts

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "dba1be0a40aa45a94ad051997016db3960a90277"
SITE = "/usr/local/lib/python3.12/dist-packages/vllm/"
TEXTS = {
    "attention.py": ("da9ef196", "models/deepseek_v4_1/attention.py"),
    "engram.py": ("c0329107", "models/deepseek_v4_1/common/engram.py"),
    "flashinfer_sparse.py": ("af0f8447", "models/deepseek_v4_1/nvidia/flashinfer_sparse.py"),
    "model_state.py": ("0a14bee6", "models/deepseek_v4_1/nvidia/model_state.py"),
    "sparse_attn_indexer.py": ("a9b73756", "model_executor/layers/sparse_attn_indexer.py"),
    "sparse_swa.py": ("cc419353", "v1/attention/backends/mla/sparse_swa.py"),
    "weight_utils.py": ("7e1027f1", "model_executor/model_loader/weight_utils.py"),
}
"""File, md5 and target by the table of patch/README.md."""


def lane(*sets: str) -> Lane:
    recipes = dict(find_recipes(ROOT, []))
    return load_all(ROOT / "inventory" / "four-spark", recipes, "boot10", environ={}, sets=list(sets))


def rendered(*sets: str) -> RenderedLane:
    files = (RemoteFile("config.json", 3311, blob="b" * 40),)
    here = lane(*sets)
    return render_lane(
        here, {"weights": Manifest(here.checkpoints["weights"].repo, COMMIT, files, config=CONFIG)}
    )


def sizes(*sets: str) -> list[int]:
    said = {flag(behind(container), "--compilation-config") for container in rendered(*sets).containers}
    (config,) = said
    assert config is not None
    return [int(number) for number in re.findall(r"\d+", config.partition("capture_sizes")[2])]


def refused(*sets: str) -> str:
    with pytest.raises(ConfigError) as caught:
        rendered(*sets)
    return "\n".join(str(fault) for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("sets", "wanted"),
    [
        ([], [5, 6, 10, 12, 15, 18, 20, 24, 25, 30, 35, 36, 40, 42, 48]),
        (["parallel=1"], [5, 6]),
        (["drafts=3", "parallel=4"], [3, 4, 6, 8, 9, 12, 16]),
        (["drafts=1", "parallel=3"], [1, 2, 3, 4, 6]),
    ],
)
def test_capture_sizes_are_the_multiples_of_k_and_of_k_and_one(sets, wanted):
    assert sizes(*sets) == wanted


def test_the_ranges_of_the_job_are_those_of_the_published_example_and_of_both_heights():
    (job,) = [job for job in rendered("engram=sparse").jobs if job.name == "engram"]
    ranges = {each.rank: behind(each)[3:] for each in job.containers}
    assert ranges[1] == ["1:96000564:192001740", "14:96003054:192007016"]
    assert ranges == {
        1: ["1:96000564:192001740", "14:96003054:192007016"],
        2: ["1:192001740:288003654", "14:192007016:288011564"],
        3: ["1:288003654:384006168", "14:288011564:384016682"],
    }
    assert behind(job.containers[0])[:3] == [
        "/opt/boot10/engram_local.py",
        "/models/DeepSeek-V4.1-Flash",
        "/engram-local",
    ]


def test_the_room_for_the_copy_is_that_of_its_rows():
    (job,) = [job for job in rendered("engram=sparse").jobs if job.name == "engram"]
    ours = [room.size or 0 for room in job.room]
    assert len(ours) == 3
    most = max(
        end - start
        for start, end in ((96_000_564, 192_001_740), (192_001_740, 288_003_654), (288_003_654, 384_006_168))
    )
    assert all(264 * most * 2 < size < 264 * most * 2 * 1.01 for size in ours)


def test_by_default_every_node_reads_its_own_whole_checkpoint():
    made = rendered()
    assert made.jobs == ()
    for container in made.containers:
        assert "/engram-local" not in mounts(container)
        assert "DSV41_ENGRAM_DIR" not in env(container)
        assert mounts(container)["/models/DeepSeek-V4.1-Flash"].endswith(",readonly")


def test_sparse_rows_are_for_workers_alone():
    for container in rendered("engram=sparse").containers:
        there = "/engram-local" in mounts(container)
        assert there == ("DSV41_ENGRAM_DIR" in env(container)) == (container.rank > 0)


def test_before_the_config_is_known_the_ranges_are_marks():
    (job,) = [job for job in render_lane(lane("engram=sparse"), {}).jobs if job.name == "engram"]
    assert all("<unlocked: config>" in word for word in behind(job.containers[0])[3:])


def test_seven_texts_with_the_published_md5_are_mounted_read_only_at_their_targets():
    recipe = lane().recipe
    assert {
        spec.file.rpartition("/")[2]: spec.md5 for name, spec in recipe.patches.items() if name != "mounts"
    } == {name: md5 for name, (md5, _) in TEXTS.items()}
    assert (recipe.patches["mounts"].file, recipe.patches["mounts"].md5) == ("patch/mounts.txt", "79a774bc")
    assert {spec.git.commit for spec in recipe.patches.values()} == {
        "d45538f67366c62da668c35ec1afd4fcd0e4c8b4"
    }
    assert [spec.edits for spec in recipe.patches.values()] == [[]] * 8
    for container in rendered().containers:
        over = {target: mount for target, mount in mounts(container).items() if target.startswith(SITE)}
        assert over.keys() == {SITE + target for _, target in TEXTS.values()}
        for name, (_, target) in TEXTS.items():
            assert f"/lanes/boot10/patches/{name}," in over[SITE + target]
            assert over[SITE + target].endswith(",readonly")


def test_the_order_is_3_2_1_0():
    assert [list(group) for group in rendered().order] == [[3], [2], [1], [0]]


def test_workers_are_headless_and_everything_else_is_the_same():
    first, *rest = (behind(container) for container in rendered().containers)
    assert "--headless" not in first
    for rank, words in enumerate(rest, 1):
        assert flag(words, "--node-rank") == str(rank)
        place = first.index("--node-rank") + 1
        assert [word for word in words if word != "--headless"] == [
            *first[:place],
            str(rank),
            *first[place + 1 :],
        ]


def test_the_api_stays_on_the_loopback_in_every_profile():
    for sets in ((), ("profile=published",)):
        assert {flag(behind(container), "--host") for container in rendered(*sets).containers} == {
            "127.0.0.1"
        }


def test_caches_are_dropped_only_when_a_person_allows_it():
    assert [job.name for job in rendered().jobs] == []
    (job,) = rendered("drop_caches=true").jobs
    assert (job.name, job.at) == ("drop-caches", "start")
    assert all("--privileged" in each.words for each in job.containers)
    assert all("--privileged" not in each.words for each in rendered("drop_caches=true").containers)


def test_memory_must_be_what_the_launcher_asks_for():
    assert lane().recipe.limits.memory == 100 * 1024**3


LITTLE, ENOUGH = 90 << 20, 110 << 20
"""Of MemAvailable, in KiB."""


def memory_steps(*sets: str) -> list[Step]:
    """Every step of a start that judges the memory of a node, and the jobs and ranks between them."""
    here = lane(*sets)
    made = rendered(*sets)
    steps = (*preflight.preflight_steps(here, made), *service.start_steps(here, made))
    return [
        step
        for step in steps
        if step.name in ("memory", "drop-caches") or re.fullmatch(r"service:rank@.*", step.id)
    ]


def judged(step: Step, available: int) -> Verdict:
    given = {facts.CONTAINERS: raw.containers()}
    return step.judge(raw.answers(raw.HEAD, given, memory={"MemTotal": 121 << 20, "MemAvailable": available}))


def test_memory_is_asked_for_after_the_caches_were_dropped_where_a_person_allows_it():
    """As the launcher has it: caches first, then 100 GiB, or it refuses to start."""
    steps = memory_steps("drop_caches=true")
    kinds = [step.id.partition("@")[0] for step in steps]
    assert kinds == [
        *["preflight:memory"] * 4, "job:drop-caches", *["service:memory"] * 4, *["service:rank"] * 4,
    ]  # fmt: skip
    first, gate, rank = steps[0], steps[5], steps[9]
    assert judged(first, LITTLE).state == "ok"
    assert "96.6 GB are free of 107.4 GB; asked again after job drop-caches" in judged(first, LITTLE).reason
    assert judged(gate, LITTLE).actions == (WaitMemory(100 * 1024**3, MEMORY_BACK),)
    assert judged(gate, ENOUGH).state == "ok"
    assert "job:drop-caches@spark-1" in gate.needs
    assert {step.id for step in steps[5:9]} <= set(rank.needs)


def test_without_that_a_lack_of_memory_ends_the_start_before_anything():
    steps = memory_steps()
    assert [step.id.partition("@")[0] for step in steps] == [*["preflight:memory"] * 4, *["service:rank"] * 4]
    assert judged(steps[0], LITTLE).state == "blocked"


@pytest.mark.parametrize(("sets", "waiting"), [((), 4), (("drop_caches=true",), 0)])
def test_a_switch_leaves_the_wait_for_memory_to_a_start_that_frees_some(sets, waiting):
    assert len(switch.memory_steps(lane(*sets), rendered(*sets).jobs, ())) == waiting


def test_a_job_of_a_build_frees_no_memory_for_a_start():
    given = lane("drop_caches=true").recipe.jobs["drop-caches"].model_dump() | {"at": "build"}
    with pytest.raises(ValueError, match=r"`frees_memory` is for a job of a start"):
        JobSpec.model_validate(given)


def test_a_lane_that_runs_has_its_memory():
    gate = memory_steps("drop_caches=true")[5]
    mine = {"name": "sparkyard-boot10-rank-0", "labels": {"sparkyard.lane": "boot10"}}
    given = {facts.CONTAINERS: raw.containers(mine)}
    seen = gate.judge(raw.answers(raw.HEAD, given, memory={"MemTotal": 121 << 20, "MemAvailable": LITTLE}))
    assert seen.state == "ok"


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["expose=true"], "expose lets every computer on the network use the API"),
        (
            ["batched_tokens=256", "parallel=64"],
            "batched_tokens 256 is less than one round of 64 requests with 5 drafts each, 384",
        ),
        (["port=29541"], "29541"),
        (["engram=nfs"], "nfs"),
    ],
)
def test_what_does_not_fit_together_is_refused(sets, words):
    assert words in refused(*sets)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("The capital of France is Paris.", True),
        ("Paris, the city of light, is the capital of France; it has been so for centuries.", True),
        ("Paris Paris Paris Paris Paris Paris Paris Paris Paris", False),
        ("Paris!!!!!!!!!!!!!!!!!!", False),
        ("Paris \u5a18\u5a18\u5a18\u5a18\u5a18\u5a18\u5a18\u5a18\u5a18", False),
        ("Paris is\nis\nis\nis\nis\nis\nis\nis\nis\n", False),
    ],
)
def test_a_token_that_repeats_itself_without_end_is_seen(text, good):
    (check,) = [
        check for check in lane().recipe.verify if check.name == "no token repeats itself without end"
    ]
    reply = {"choices": [{"message": {"content": text}}]}
    assert (not any(judge(reply, expect) for expect in check.expect)) is good


def test_every_source_of_the_image_is_at_a_full_commit_and_every_stage_is_there():
    recipe = lane().recipe
    assert recipe.image.build is not None
    assert all(re.fullmatch(r"[0-9a-f]{40}", git.commit) for git in recipe.image.build.git.values())
    assert recipe.image.build.git["vllm"].commit == "e47aa780bccf59f59dfa2cbb18e17a10b4fe69ba"
    assert recipe.image.build.git["flashinfer"].commit == "07869c61ba581e6d6b8ad8d142f4a6c89b707cc1"
    assert recipe.image.build.base.endswith(":nightly-8a728663c1c3eeace834a95f5654fa653cc1998c")
    text = (ROOT / "recipes" / "boot10" / "image" / "Dockerfile").read_text()
    assert re.findall(r"^FROM \S+ AS (\w+)$", text, re.M) == [
        "extension",
        "overlay1",
        "overlay3",
        "overlay4",
        "overlay5",
    ]
    copied = {
        source.split("/")[0]
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M)
        for source in line.split()[:-1]
    }
    assert copied == recipe.image.build.git.keys()
