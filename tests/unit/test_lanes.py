"""``invoke lanes``: rows from raw answers, and the whole verb as typed, without any node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from sparkyard import choosing, lane_rows, load
from sparkyard.errors import ConfigError, SparkyardError, Unreachable
from sparkyard.facts import CONTAINERS, image_question
from sparkyard.lane_answers import answer_rows
from sparkyard.lane_rows import Candidate
from sparkyard.model import Manifest, RemoteFile
from sparkyard.plan import Answers, Question
from sparkyard.render import render_lane
from tests.unit import raw, sample
from tests.unit.test_docs import ROOT

FILE = RemoteFile("config.json", 3, blob="b" * 40)
MANIFEST = Manifest("example/tiny", sample.COMMIT, (FILE,))
GIB = 2**30


def candidate(**recipe: Any) -> Candidate:
    data = sample.recipe_data()
    data["image"] = {**data["image"], "bytes": 5 * GIB}
    data["limits"] = {"memory": 100 * GIB, "disk": GIB}
    lane = sample.lane(data=data | recipe)
    name = next(iter(lane.checkpoints))
    return Candidate("T", lane.recipe, "", lane, render_lane(lane, {name: MANIFEST}), {name: MANIFEST})


ONE = candidate()
HEAD = ONE.nodes[0]
assert ONE.rendered is not None
IMAGE = image_question(ONE.rendered.image.reference)
BUILT = raw.image(labels={"sparkyard.build": ONE.rendered.image.mark})
COPY = ONE.copies(HEAD)[0]


def tree(*files: str) -> tuple[int, str, str]:
    lines = "".join(f"//f\t7\t3\t1\t1.000000000\t1.000000000\t{name}\n" for name in files)
    return 0, f"tree 1\nfs ab\n{lines}//ledger\n\n//seal\n\n//done\n", ""


def disk(free: int) -> tuple[int, str, str]:
    return 0, f"disk 1\nfs ab\navailable {free}\nat /\n//done\n", ""


def answers(
    image=raw.NO_IMAGE, files=(), free=100 * GIB, node=raw.HEAD, running: str = "", **system: Any
) -> Answers:
    given: dict[Question, Any] = {IMAGE: image, COPY.asked: tree(*files)}
    given |= dict.fromkeys(
        (q for q in lane_rows.questions([ONE])[node.name] if q.ask == "ask_disk"), disk(free)
    )
    if running:
        given[CONTAINERS] = raw.containers({"name": "e", "labels": {"sparkyard.lane": running}})
    return raw.answers(node, given, **system)


def test_every_lane_asks_each_node_once():
    asked = lane_rows.questions([ONE, ONE])
    assert asked.keys() == {"spark-1", "spark-2"}
    assert len(asked["spark-1"]) == len(set(asked["spark-1"]))


def test_nothing_is_there_yet():
    row = lane_rows.node_row(ONE, HEAD, {"spark-1": answers()})
    assert (row["downloaded"], row["built"], row["running"], row["there"]) == ("no", "no", "", "nothing")
    assert row["disk_needed"] == 3 + 6 * GIB
    assert row["disk"] == "6.4 GB needed; 6.4 GB to come, 107 GB free"
    assert row["memory"].startswith("107 GB needed, ")
    assert row["short"] == ""


def test_what_is_there_is_taken_off_and_named():
    row = lane_rows.node_row(ONE, HEAD, {"spark-1": answers(BUILT, ["config.json"], running="T")})
    assert (row["downloaded"], row["built"], row["running"]) == ("yes", "yes", "T")
    assert row["there"] == "downloaded, built, T runs"
    assert row["disk"] == "6.4 GB needed; 1.1 GB to come, 107 GB free"


def test_what_lacks_is_why_it_is_not_possible():
    told = {"spark-1": answers(free=GIB), "spark-2": answers(node=raw.WORKER)}
    row = lane_rows.lane_row(ONE, told)
    assert row["possible"] == "spark-1: 5.4 GB too little disk"
    small = {"spark-1": answers(memory={"MemTotal": 64 << 20, "MemAvailable": 60 << 20})}
    assert "of memory in all, 107 GB needed" in lane_rows.lane_row(ONE, small)["possible"]


def test_how_far_it_is_in_one_phrase():
    done = answers(BUILT, ["config.json"])
    worker = answers(node=raw.WORKER)
    told: tuple[dict[str, Answers | SparkyardError], ...] = (
        {"spark-1": answers(), "spark-2": worker},
        {"spark-1": done, "spark-2": worker},
        {"spark-1": answers(running="T"), "spark-2": worker},
        {"spark-1": done, "spark-2": Unreachable("gone")},
        {},
    )
    phrases = {lane_rows.lane_row(ONE, each)["here"] for each in told}
    assert phrases == {
        "nothing yet", "downloaded on 1 of 2, built on 1 of 2", "running on 1 of 2 nodes", "unreachable", "not asked",
    }  # fmt: skip


def test_a_node_that_says_nothing_keeps_what_is_known_without_it():
    row = lane_rows.node_row(ONE, HEAD, {"spark-1": Unreachable("gone")})
    assert (row["there"], row["disk"], row["memory"]) == ("unreachable", "6.4 GB needed", "107 GB needed")
    broken = Answers("spark-1", {})
    assert lane_rows.node_row(ONE, HEAD, {"spark-1": broken})["there"].startswith("could not check: ")


def test_a_size_that_nobody_knows_is_said():
    unknown = candidate(image=sample.recipe_data()["image"])
    assert lane_rows.node_row(unknown, HEAD, {})["disk"] == "1.1 GB needed, and image, of unknown size"


def test_yes_without_a_condition_only_when_every_node_was_asked_and_every_size_is_known_or_there():
    both = {"spark-1": answers(), "spark-2": answers(node=raw.WORKER)}
    assert lane_rows.lane_row(ONE, both)["possible"] == "yes"
    assert lane_rows.lane_row(ONE, {"spark-1": both["spark-1"]})["possible"] == "yes, as far as is known"
    unknown = candidate(image=sample.recipe_data()["image"])
    assert lane_rows.lane_row(unknown, both)["possible"] == "yes, as far as is known"
    built = {"spark-1": answers(BUILT), "spark-2": answers(BUILT, node=raw.WORKER)}
    assert lane_rows.lane_row(unknown, built)["possible"] == "yes"


def test_a_node_that_gets_no_checkpoint_is_not_counted_as_downloaded():
    assert ONE.lane is not None
    on_head = {name: spec.model_copy(update={"nodes": "head"}) for name, spec in ONE.lane.checkpoints.items()}
    recipe = ONE.recipe.model_copy(update={"checkpoints": on_head})
    headed = replace(ONE, recipe=recipe, lane=replace(ONE.lane, recipe=recipe))
    worker = answers(node=raw.WORKER)
    nothing = {"spark-1": answers(), "spark-2": worker}
    assert lane_rows.lane_row(headed, nothing)["here"] == "nothing yet"
    assert lane_rows.node_row(headed, headed.nodes[1], nothing)["there"] == "nothing"
    done = {"spark-1": answers(files=["config.json"]), "spark-2": worker}
    assert lane_rows.lane_row(headed, done)["here"] == "downloaded"


def test_a_job_whose_room_is_not_locked_yet_is_of_unknown_size():
    lane = load.load_all(ROOT / "inventory/four-spark", load.find_recipes(ROOT, []), "B", environ={}, sets=[])
    sglang = Candidate("B", lane.recipe, "", lane, render_lane(lane, {}), {})
    assert "job pack" in lane_rows.needed(sglang, lane.nodes[0]).unknown


# --- the file of answers --------------------------------------------------------------------------------------------------


def known() -> choosing.Choosing:
    file = choosing.read(ROOT / "recipes" / choosing.FILE)
    assert file is not None
    return file


KNOWN = known()


def test_every_lane_that_is_recommended_is_there_and_every_source_is_named():
    lanes = set(load.find_recipes(ROOT, []))
    assert {name for answer in KNOWN.answers for name in answer.run} <= lanes
    named = {answer.source for answer in KNOWN.answers} | {caveat.source for caveat in KNOWN.caveats}
    assert named == KNOWN.sources.keys()


def test_the_posts_answers():
    runs = {answer.when: answer.run for answer in KNOWN.answers if answer.source == "post"}
    assert list(runs.values()) == [["C", "B"], ["B"], ["C"], ["C", "D"], ["A4"]]


def test_each_measure_finds_figures_of_the_lanes_that_were_compared():
    recipes = {name: load.load_recipe(folder) for name, folder in load.find_recipes(ROOT, []).items()}
    for measure in KNOWN.measures:
        having = {n for n, r in recipes.items() if any(re.search(measure.what, one.what) for one in r.expect)}
        assert {"C", "D"} <= having, measure.name


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sources:\n  post: {kind: published, ", "sources:\n  post: {", "Field required"),
        ("[C, B]", "[]", "at least 1 item"),
        ('what: "qeval"', 'what: "("', "is no regular expression"),
        ("source: guide}", "source: nobody}", "nobody is not there"),
        ("answers:", "answer:", "Extra inputs are not permitted"),
        ("sources:", "sources: [", "is no YAML"),
    ],
)
def test_a_fault_in_the_file_is_named(tmp_path, old, new, words):
    text = (ROOT / "recipes" / choosing.FILE).read_text()
    assert old in text
    (tmp_path / "x.yml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        choosing.read(tmp_path / "x.yml")
    assert words in str(refused.value)


def test_only_lanes_that_were_looked_at_are_said_to_be_possible_or_not():
    """With ``--lane`` nothing is known of the others; and a lane without room is no answer."""
    rows = {row["if you mostly"]: row for row in answer_rows({"B": "yes"}, KNOWN)}
    assert all("B" in row["run"] for row in rows.values())
    assert {str(row["possible here"]) for row in rows.values()} == {"['B']"}
    lacking = {"B": "spark-1: 5 GB too little disk", "C": "yes, as far as is known"}
    told = {tuple(row["run"]): row["possible here"] for row in answer_rows(lacking, KNOWN)}
    assert (told["C", "B"], told["B",], told["C",]) == (["C"], "none", ["C"])
    assert {str(row["possible here"]) for row in answer_rows({"B": "no"}, KNOWN)} == {"none", "not B"}


def test_no_file_is_no_fault(tmp_path):
    assert choosing.read(tmp_path / "none.yml") is None


# --- as typed -------------------------------------------------------------------------------------------------------------


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("SPARKYARD_")}
    return subprocess.run(
        [sys.executable, "-m", "invoke", "lanes", "--check", *words],
        cwd=ROOT, env=plain | {"COLUMNS": "80"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_without_a_node_what_is_known_is_shown_within_80_columns():
    done = typed("--inventory=two-spark")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "which should you run?" in done.stdout


def test_rows_for_machines():
    done = typed("--inventory=two-spark", "--json")
    rows = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    lanes = {row["lane"]: row for row in rows if row.get("table") == "lanes"}
    assert (lanes["A"]["possible"], lanes["A"]["here"]) == ("yes, as far as is known", "not asked")
    assert lanes["C"]["possible"] == "needs 4 nodes, this inventory has 2"
    assert "lab" not in lanes
    nodes = [row for row in rows if row.get("table") == "lanes-nodes" and row["lane"] == "A"]
    assert [row["node"] for row in nodes] == ["spark-1", "spark-2"]
    answers_ = [row for row in rows if row.get("table") == "lanes-answers"]
    assert answers_[0]["possible here"] == "none"


def test_the_fabric_decides_too():
    """A ring of cables: C as the example has it; B once its profile is chosen; nobody published the other lanes of four on one."""
    done = typed("--inventory=four-spark-ring", "--json")
    rows = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    possible = {row["lane"]: row["possible"] for row in rows if row.get("table") == "lanes"}
    assert possible["C"] == "yes, as far as is known"
    assert "names cables (peer_hcas), and fabric is switched; choose the ring" in possible["B"]
    for lane in ("A4", "D", "boot10"):
        assert (
            "names cables (peer_hcas), and this lane is published behind one switch alone" in possible[lane]
        )


def test_a_lane_that_is_not_there_is_refused():
    done = typed("--inventory=two-spark", "--lane=Z")
    assert done.returncode == 2
    assert "there is no lane Z" in done.stderr


def test_a_recipe_with_faults_is_a_row_among_the_others():
    done = typed("--inventory=two-spark", "--json", "--recipes=tests/data/recipes")
    assert done.returncode == 0
    rows = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    lanes = {row["lane"]: row for row in rows if row.get("table") == "lanes"}
    assert lanes["T"]["possible"].startswith("its recipe has ")
    assert lanes["A"]["possible"] == "yes, as far as is known"
    alone = typed("--inventory=two-spark", "--lane=T", "--recipes=tests/data/recipes")
    assert alone.returncode == 2


def test_a_job_s_room_in_a_folder_that_is_kept_is_counted_once():
    """Lane D's export fills its own cache: 523.6 GB on the head and 170 GB on a worker, settings (10 MB) and 30 GB for the rest."""
    lane = load.load_all(ROOT / "inventory/four-spark", load.find_recipes(ROOT, []), "D", environ={}, sets=[])
    flare = Candidate("D", lane.recipe, "", lane, render_lane(lane, {}), {})
    sums = [sum(lane_rows.needed(flare, node).known.values()) for node in lane.nodes[:2]]
    assert sums == [553_610_000_000, 200_010_000_000]
