"""Jobs from recipe to rendered lane: what is refused, what a hash covers, what a stand-in changes, and the answers of a node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkyard import render_jobs, stand_in
from sparkyard.errors import ConfigError, CouldNotCheck
from sparkyard.guard import node_script
from sparkyard.job_facts import job_fact, made_fact, made_question
from sparkyard.loading.job_checks import check_jobs
from sparkyard.model import Origin, Value
from sparkyard.plan import Answer, Answers
from sparkyard.recipe import JobSpec, Recipe
from sparkyard.render import render_lane
from sparkyard.rendered_job import RenderedJob
from tests.unit import sample
from tests.unit.job_answers import rows

ENGINE = "engine"


def recipe(jobs: Mapping[str, Any], **more: Any) -> Recipe:
    return Recipe.model_validate(sample.recipe_data() | {"jobs": dict(jobs)} | more)


def said(jobs: Mapping[str, Any], **more: Any) -> list[str]:
    found: list[str] = []
    check_jobs(recipe(jobs, **more), lambda key, message: found.append(f"{key}: {message}"))
    return found


def job(name: str = "rows", data: dict[str, Any] | None = None, **changes: Any) -> RenderedJob:
    """A job of the tiny lane, rendered on two nodes."""
    whole = (data or sample.recipe_data()) | {"jobs": {name: rows(**changes)}}
    return render_lane(sample.lane(data=whole), {}).jobs[0]


def refused(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        job(**changes)
    return "\n".join(map(str, caught.value.faults))


@pytest.mark.parametrize("text", ["", " ", "{{ '' }}", "{% if rank > 9 %}/x{% endif %}"])
@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("room", "path"),
        ("room", "bytes"),
        ("makes", "path"),
        ("makes", "bytes"),
        ("makes", "at_least"),
        ("brings", "folder"),
    ],
)
def test_what_is_empty_is_told(part: str, key: str, text: str):
    sound = (
        {"path": "{{ root }}/rows/x", "bytes": "1"} if part != "brings" else {"setting": "key", "log": "k"}
    )
    data = sample.recipe_data()
    about = {"default": "", "about": "x", "source": {"kind": "chosen", "why": "test"}}
    data["settings"] = data["settings"] | {"key": about}
    assert f"jobs.rows.{part}.0.{key}: is empty" in refused(data=data, **{part: [sound | {key: text}]})


@pytest.mark.parametrize(("part", "key"), [("room", "path"), ("makes", "path")])
def test_a_path_is_one_line(part: str, key: str):
    entry = {"bytes": "1", key: "{{ root }}/rows/a\nb"}
    assert "holds a line break or another character that cannot be shown" in refused(**{part: [entry]})


# --- when a recipe is read --------------------------------------------------------------------------------------------


def test_a_sound_recipe_is_left_alone():
    jobs = {"rows": rows(), "pair": rows(at="start", needs=["rows"])}
    assert said(jobs) == []
    assert said(jobs, stages=["pair", ENGINE]) == []


@pytest.mark.parametrize(
    ("jobs", "more", "words"),
    [
        ({"rows": rows(needs=["row"])}, {}, "jobs.rows.needs.0: not a known job (did you mean rows?)"),
        (
            {"rows": rows(needs=["pair"]), "pair": rows(at="start")},
            {},
            "jobs.rows.needs.0: pair runs in start, after everything of build",
        ),
        (
            {"a": rows(needs=["b"]), "b": rows(needs=["c"]), "c": rows(needs=["a"])},
            {},
            "jobs.a.needs: jobs that need each other in a circle: a → b → c → a",
        ),
        ({"a": rows(needs=["a"])}, {}, "jobs.a.needs: jobs that need each other in a circle: a → a"),
        ({ENGINE: rows()}, {}, "jobs.engine: engine is the name of a service too; give the job another one"),
        ({"rows": rows(makes=[{"path": "{{ root }}/x"}])}, {}, "jobs.rows.makes.0: how large is it"),
        (
            {"rows": rows(makes=[{"path": "{{ root }}/x", "bytes": "1", "at_least": "1"}])},
            {},
            "jobs.rows.makes.0: `bytes` says it exactly",
        ),
        (
            {"rows": rows(nodes="head", says=[{"what": "w", "pattern": "p", "nodes": "workers"}])},
            {},
            "jobs.rows.says.0.nodes: the job has no rank there: it runs on head",
        ),
        ({"rows": rows(says=[{"what": "w", "pattern": "("}])}, {}, "jobs.rows.says.0.pattern: not a pattern"),
        ({"rows": rows(memory=8)}, {}, "jobs.rows.memory: 8 is less than 1 MiB"),
        ({"rows": rows()}, {"stages": [ENGINE, "rows"]}, "stages.1: rows runs in build, before every stage"),
        ({}, {"stages": [ENGINE, "engin"]}, "stages.1:"),
        ({}, {"stages": [ENGINE, ENGINE]}, "stages.1: engine stands at stages.0 too"),
        (
            {"pair": rows(at="start")},
            {"stages": [ENGINE]},
            "stages: pair is missing, and would never be started",
        ),
        (
            {"a": rows(at="start"), "b": rows(at="start", needs=["a"])},
            {"stages": ["b", "a", ENGINE]},
            "stages.0: b needs a, which comes after it",
        ),
    ],
)
def test_what_cannot_be_is_refused(jobs, more, words):
    found = said(jobs, **more)
    assert [text for text in found if text.startswith(words)], found


def test_a_circle_is_told_once():
    assert len(said({"a": rows(needs=["b"]), "b": rows(needs=["a"])})) == 1


# --- rendered ---------------------------------------------------------------------------------------------------------


def test_an_output_must_be_where_the_container_can_write():
    outside = [{"path": "{{ root }}/elsewhere/x", "bytes": "1"}]
    assert "elsewhere/x is below no mount that the job may write to" in refused(makes=outside)
    mounts = [{"source": "{{ root }}/rows", "target": "/out"}]
    assert "is below no mount that the job may write to" in refused(mounts=mounts)
    beside = [{"path": "{{ root }}/rows-beside", "bytes": "1"}]
    assert "is below no mount" in refused(makes=beside)


def test_sizes_are_whole_numbers():
    made = [{"path": "{{ root }}/rows/x", "bytes": "{{ 3 / 2 }}"}]
    assert "jobs.rows.makes.0.bytes: '1.5' is not a whole number of bytes" in refused(makes=made)
    found = job(makes=[{"path": "{{ root }}/rows/x", "bytes": "{{ 4096 * (rank + 1) }}"}])
    assert [output.size for output in found.makes] == [4096, 8192]


def test_a_size_that_is_not_locked_yet_is_not_known():
    made = [{"path": "{{ root }}/rows/x", "bytes": "{{ checkpoints.model.shards }}"}]
    assert [output.size for output in job(makes=made).makes] == [None, None]


def test_two_outputs_cannot_be_one_file():
    made = [{"path": "{{ root }}/rows/x", "bytes": "1"}] * 2
    assert "two of them are" in refused(makes=made)


def test_options_are_looked_at_as_those_of_services():
    assert "jobs.rows.options: --rm is set by sparkyard itself" in refused(options=["--rm"])


def test_all_ranks_have_one_hash_and_the_labels_of_a_job():
    found = job()
    assert {container.hash for container in found.containers} == {found.hash}
    words = found.containers[1].words
    assert "sparkyard.job=rows" in words
    assert not any(word.startswith("sparkyard.service=") for word in words)
    assert found.containers[1].name == "sparkyard-T-job-rows-1"


@pytest.mark.parametrize(
    "change",
    [
        {"words": ["pack", "{{ rank if rank == 0 else 7 }}"]},
        {"env": {"A": "1"}},
        {"options": ["--init"]},
        {"bound_to": ["abc"]},
        {"mounts": [{"source": "{{ root }}/rows", "target": "/other", "read_only": False}]},
    ],
)
def test_what_a_job_is_made_of_changes_its_hash_on_all_ranks(change):
    assert job(**change).hash != job().hash


@pytest.mark.parametrize(
    "change",
    [
        {"timeout": 61.0},
        {"says": [{"what": "w", "pattern": "p"}]},
        {"room": []},
        {"memory": 1 << 30},
        {"about": "other"},
        {"needs": []},
    ],
)
def test_what_a_job_is_not_made_of_does_not(change):
    assert job(**change).hash == job().hash


def test_a_file_that_it_mounts_counts_and_the_lane_s_environment_does_not():
    mounts = [{"source": "{{ root }}", "target": "/lane", "read_only": False}]
    whole = sample.recipe_data() | {"jobs": {"rows": rows(mounts=mounts)}}

    def rendered(**more: Any) -> RenderedJob:
        return render_lane(sample.lane(data=whole, **more), {}).jobs[0]

    before = rendered()
    assert {file.node for file in before.files} <= {"spark-1", "spark-2"}
    debug = {"DEBUG": Value("1", Origin("--set"))}
    assert rendered(env=debug).hash == before.hash
    assert not any("DEBUG" in word for each in rendered(env=debug).containers for word in each.words)


def test_a_job_that_does_not_belong_to_the_lane_is_not_there():
    whole = sample.recipe_data()
    name = next(iter(whole["settings"]))
    whole["jobs"] = {"rows": rows(when=f"lane.{name} == 'never'"), "next": rows(needs=["rows"])}
    (left,) = render_lane(sample.lane(data=whole), {}).jobs
    assert (left.name, left.needs) == ("next", ())


def test_stages_without_a_word_are_jobs_first_then_all_services():
    whole = sample.recipe_data() | {"jobs": {"build": rows(), "pair": rows(at="start")}}
    assert render_lane(sample.lane(data=whole), {}).stages == (("pair",), (ENGINE,))
    whole["stages"] = [ENGINE, "pair"]
    assert render_lane(sample.lane(data=whole), {}).stages == ((ENGINE,), ("pair",))


def test_jobs_are_ordered_by_their_needs():
    specs = {
        name: JobSpec.model_validate(rows(needs=needs))
        for name, needs in (("c", ["b"]), ("b", ["a"]), ("a", []))
    }
    assert render_jobs.in_order(specs) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("order", "groups"),
    [("together", ((0, 1),)), ("head-first", ((0,), (1,))), ("workers-first", ((1,), (0,)))],
)
def test_ranks_start_in_the_order_of_the_job(order, groups):
    assert job(order=order).order == groups


# --- stand-ins --------------------------------------------------------------------------------------------------------


def test_a_stand_in_keeps_exact_sizes_and_words_and_shortens_the_rest():
    spec = JobSpec.model_validate(
        rows(
            timeout=7200.0,
            log_silence=900.0,
            gate={"log": "x", "timeout": 1200.0},
            makes=[{"path": "/a", "bytes": "{{ 56 * 10 }}"}, {"path": "/b", "at_least": "452200000000"}],
            room=[{"path": "/a", "bytes": "{{ 523 * 1000 }}"}, {"path": "/a", "bytes": "1000"}],
        )
    )
    made = stand_in._job(spec)
    assert (made.timeout, made.log_silence) == (stand_in.LONGEST, stand_in.SILENCE)
    assert made.gate is not None
    assert made.gate.timeout == stand_in.LONGEST
    assert [(one.bytes, one.at_least) for one in made.makes] == [("{{ 56 * 10 }}", None), (None, "1")]
    assert [room.bytes for room in made.room] == ["1000000", "1000"]
    assert (made.words, made.mounts) == (spec.words, spec.mounts)


# --- what a node says -------------------------------------------------------------------------------------------------


def ask(*arguments: object, shell: str = "dash") -> Answer:
    text = f'set -u; export LC_ALL=C; {node_script("tree.sh")}\n{node_script("jobs.sh")}\n"$@"'
    words = [shell, "-c", text, shell, "ask_job", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, check=False)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_the_files_of_a_node_come_back_as_they_are(tmp_path: Path):
    (tmp_path / "whole").write_bytes(b"x" * 5000)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "whole")
    (tmp_path / "folder").mkdir()
    paths = tuple(str(tmp_path / name) for name in ("whole", "empty", "link", "folder", "no/such"))
    asked = made_question(paths)
    made = made_fact(Answers("spark-1", {asked: ask(*asked.arguments)}), asked)
    assert [made[path].kind for path in paths] == ["regular", "regular", "other", "other", "missing"]
    status = os.lstat(paths[0])
    assert made[paths[0]].identity == (5000, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    assert made[paths[0]].allocated == status.st_blocks * 512
    assert made[paths[4]].fs == made[paths[0]].fs


def test_records_come_back_and_damaged_ones_are_none(tmp_path: Path):
    (tmp_path / "seal").write_text('{"version": 1, "hash": "a"}\n')
    (tmp_path / "begun").write_text('{"version": 1, "ha')
    asked = made_question(()).__class__("ask_job", (str(tmp_path / "seal"), str(tmp_path / "begun")))
    fact = job_fact(Answers("spark-1", {asked: ask(*asked.arguments)}), asked)
    assert fact.seal == {"version": 1, "hash": "a"}
    assert fact.begun is None


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_in_the_place_of_a_record_is_named_and_not_waited_for(tmp_path: Path, make):
    make(tmp_path / "a seal")
    asked = made_question(()).__class__("ask_job", (str(tmp_path / "a seal"), str(tmp_path / "begun")))
    with pytest.raises(CouldNotCheck) as told:
        job_fact(Answers("spark-1", {asked: ask(*asked.arguments)}), asked)
    assert told.value.message == f"{tmp_path}/a seal is no regular file, and sparkyard keeps a record there"
    assert told.value.next_step == f"look at it and remove it: rm -r -- '{tmp_path}/a seal'"


def test_an_answer_that_is_cut_is_none(tmp_path: Path):
    (tmp_path / "whole").write_bytes(b"x")
    asked = made_question((str(tmp_path / "whole"),))
    whole = ask(*asked.arguments)
    for cut in range(len(whole.out.rstrip("\n"))):
        with pytest.raises(CouldNotCheck):
            job_fact(Answers("spark-1", {asked: Answer(0, whole.out[:cut])}), asked)


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_missing(tmp_path: Path):
    (tmp_path / "file").touch()
    answer = ask("/dev/null", "/dev/null", tmp_path / "file" / "below")
    assert answer.status == 1
    assert "Not a directory" in answer.err
