"""Lanes that a kit's own scripts start: what is meant by exact name and image, what is on record, what goes when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkyard import facts, load
from sparkyard.actions import Run, SaveLogs, StartScripts, StopContainer, StopScripts, WriteFile
from sparkyard.actions_image import GitFetch
from sparkyard.lock import Lock
from sparkyard.model import Manifest, RemoteFile
from sparkyard.plan import Answers, Plan, Step, Verdict, joined, of_others
from sparkyard.records import Record, parse
from sparkyard.render import render_lane
from sparkyard.steps import clone, life, preflight, scripts_found
from sparkyard.steps import switch as changing
from tests.unit import raw

ROOT = Path(__file__).resolve().parents[2]
LANE = load.load_all(
    ROOT / "inventory" / "two-spark",
    load.find_recipes(ROOT, []),
    "kit",
    environ={},
    sets=("api_key=k-0123456789",),
)
FILES = (RemoteFile("config.json", 1), RemoteFile("a.safetensors", 1))
RENDERED = render_lane(
    LANE, {name: Manifest(spec.repo, "a" * 40, FILES) for name, spec in LANE.checkpoints.items()}, Lock()
)
HEAD, WORKER = LANE.nodes
KIT = RENDERED.scripts
assert KIT is not None
CLONE = scripts_found.clone_question(RENDERED)
THERE = (0, KIT.commit + "\n", "")
NO_CLONE = (2, "", "")
NAMES = {HEAD.name: "dsv41-exl3-head", WORKER.name: "dsv41-exl3-worker"}


def id_of(number: int) -> str:
    return f"{number:064x}"


def record(node: Any, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "container": NAMES[node.name],
        "lane": "kit",
        "hash": RENDERED.containers[0].hash,
        "nodes": "spark-1,spark-2",
        "image": RENDERED.image.reference,
        "id": id_of(0),
        "known": {"gid.rocep1s0f1": "3", "gid.rocep1s0f0@spark-2": "3"} if node is HEAD else {},
    }
    return Record(**(values | changes))


def asked(
    node: Any, *found: dict[str, Any], on_record: Record | None = None, clone_: tuple[int, str, str] = THERE
) -> Answers:
    status, out, err = raw.containers(*found)
    if on_record is not None:
        details = [
            {
                "id": id_of(number),
                "name": f"/{one['name']}",
                "state": {
                    "Status": one.get("state", "running"),
                    "ExitCode": 0,
                    "StartedAt": "2026-11-01T10:00:00Z",
                },
                "restarts": 0,
                "labels": None,
                "image": one.get("image", "i"),
                "image_id": "sha256:1",
            }
            for number, one in enumerate(found)
            if one["name"] == on_record.container
        ]
        out = on_record.text() + out + "".join(json.dumps(one) + "\n" for one in details)
    answers = raw.answers(node, {facts.CONTAINERS: (status, out, err), CLONE: clone_})
    other = WORKER if node is HEAD else HEAD
    told = {other.name: {"home": "/home/worker", "gid.rocep1s0f0": "3", "gid.rocep1s0f1": "3"}}
    return Answers(node.name, answers.given, {**of_others(node.name, told), **answers.discovered})


def own(node: Any, **changes: Any) -> dict[str, Any]:
    return {"name": NAMES[node.name], "image": RENDERED.image.reference} | changes


def verdicts(steps: tuple[Step, ...], head: Answers, worker: Answers) -> dict[str, Verdict]:
    """What the engine would make of it: steps that are right only together are judged again."""
    answers = {HEAD.name: head, WORKER.name: worker}
    plan = Plan("start", "kit", steps)
    first = {step.id: step.judge(answers[step.node]) for step in steps}
    return {step.id: step.judge(answers[step.node]) for step in joined(plan, answers, first).steps}


def changing_ids(found: dict[str, Verdict]) -> list[str]:
    return [id_ for id_, verdict in found.items() if verdict.state == "change"]


START = life.start_steps(LANE, RENDERED)
STOP = life.stop_steps(LANE, RENDERED)


def test_a_first_start_records_what_is_begun_runs_the_script_and_records_the_ids():
    found = verdicts(START, asked(HEAD), asked(WORKER))
    assert changing_ids(found) == [
        "service:begin@spark-1",
        "service:begin@spark-2",
        "service:start@spark-1",
        "service:ready@spark-1",
    ]
    (start,) = found["service:start@spark-1"].actions
    assert isinstance(start, StartScripts)
    folder = "/home/spark/.local/share/sparkyard/lanes/kit/clone"
    assert start.command.words == ("env", f"--chdir={folder}", "./start.sh", "start")
    assert start.containers == (("spark-1", "dsv41-exl3-head"), ("spark-2", "dsv41-exl3-worker"))
    (write,) = found["service:begin@spark-1"].actions
    assert isinstance(write, WriteFile)
    assert write.path == "/home/spark/.local/state/sparkyard/started/dsv41-exl3-head"
    assert parse(write.content.decode()) == record(HEAD, id="")
    assert found["service:record@spark-1"].state == "blocked"


def test_what_runs_as_wanted_is_left_alone():
    head, worker = (asked(n, own(n), on_record=record(n)) for n in (HEAD, WORKER))
    assert changing_ids(verdicts(START, head, worker)) == ["service:ready@spark-1"]


def test_a_container_that_was_begun_and_never_recorded_is_known_by_name_and_image():
    head, worker = (asked(n, own(n), on_record=record(n, id="")) for n in (HEAD, WORKER))
    found = verdicts(START, head, worker)
    assert changing_ids(found) == [
        "service:ready@spark-1",
        "service:record@spark-1",
        "service:record@spark-2",
    ]
    other = asked(HEAD, own(HEAD, image="busybox"), on_record=record(HEAD, id=""))
    assert verdicts(START, other, worker)["service:start@spark-1"].state != "ok"


def test_a_record_of_another_container_is_not_its_record():
    head = asked(HEAD, own(HEAD), on_record=record(HEAD, id=id_of(7)))
    assert facts.containers(head)[0].lane == ""


def test_one_that_was_started_by_hand_goes_only_after_a_yes():
    found = verdicts(STOP, asked(HEAD, own(HEAD)), asked(WORKER, own(WORKER), on_record=record(WORKER)))
    assert (
        found["service:stop-logs@spark-1"].destroys
        == "dsv41-exl3-head on spark-1 is running, and would be stopped"
    )
    assert found["service:stop-logs@spark-2"].destroys == ""
    starting = verdicts(START, asked(HEAD, own(HEAD)), asked(WORKER))
    assert "was started by hand" in starting["service:outdated-logs@spark-1"].destroys


def test_a_tag_or_digest_of_the_kits_repository_is_the_kit():
    for image in (f"{LANE.recipe.image.pull.repository}:2.9bpw", RENDERED.image.pulled):  # type: ignore[union-attr]
        found = verdicts(STOP, asked(HEAD, own(HEAD, image=image)), asked(WORKER))
        (stop,) = found["service:stop@spark-1"].actions
        assert stop == StopContainer("dsv41-exl3-head", 60.0, image)


def test_another_image_under_its_name_is_never_touched():
    found = verdicts(STOP, asked(HEAD, own(HEAD, image="busybox:1")), asked(WORKER))
    assert {v.state for id_, v in found.items() if id_.endswith("spark-1")} == {"blocked"}
    assert "it is not the kit's, and was left alone" in found["service:stop@spark-1"].reason


def test_a_stop_saves_logs_runs_the_kits_own_stop_and_looks_for_what_is_left():
    head, worker = (asked(n, own(n), on_record=record(n)) for n in (HEAD, WORKER))
    found = verdicts(STOP, head, worker)
    assert changing_ids(found) == [step.id for step in STOP]
    assert found["service:stop-logs@spark-2"].actions == (SaveLogs("dsv41-exl3-worker"),)
    (script,) = found["service:stop-script@spark-1"].actions
    assert isinstance(script, StopScripts)
    assert script.command.words[-2:] == ("./start.sh", "stop")
    needs = {step.id: step.needs for step in STOP}
    assert set(needs["service:stop@spark-2"]) >= {"service:stop-script@spark-1", "service:stop-logs@spark-2"}


def test_without_the_clone_its_containers_are_stopped_one_by_one():
    head, worker = (asked(n, own(n), on_record=record(n), clone_=NO_CLONE) for n in (HEAD, WORKER))
    found = verdicts(STOP, head, worker)
    assert found["service:stop-script@spark-1"].state == "skipped"
    assert [type(a) for a in found["service:stop@spark-2"].actions] == [StopContainer]


def test_an_old_record_goes():
    found = verdicts(STOP, asked(HEAD, on_record=record(HEAD)), asked(WORKER))
    (forget,) = found["service:stop@spark-1"].actions
    assert isinstance(forget, Run)
    assert forget.command.words[:2] == ("rm", "-f")


def test_a_dead_rank_takes_the_other_one_with_it():
    head = asked(HEAD, own(HEAD), on_record=record(HEAD))
    worker = asked(WORKER, own(WORKER, state="exited"), on_record=record(WORKER))
    found = verdicts(START, head, worker)
    for id_ in ("outdated-logs@spark-1", "outdated-script@spark-1", "outdated@spark-2", "start@spark-1"):
        assert found[f"service:{id_}"].state == "change", id_
    assert not any(verdict.destroys for verdict in found.values())


def test_another_setting_starts_it_anew_after_a_yes():
    head = asked(HEAD, own(HEAD), on_record=record(HEAD, hash="0"))
    worker = asked(WORKER, own(WORKER), on_record=record(WORKER, hash="0"))
    found = verdicts(START, head, worker)
    assert "was started with other settings" in found["service:outdated-logs@spark-1"].destroys


def test_the_clone_is_brought_to_its_commit():
    (step,) = clone.clone_steps(LANE, RENDERED)
    assert KIT is not None
    assert step.judge(asked(HEAD)).state == "ok"
    missing = step.judge(asked(HEAD, clone_=NO_CLONE))
    assert [type(action) for action in missing.actions] == [GitFetch, Run]
    assert missing.reason == f"the kit's clone is not there yet: {KIT.commit} is to come"
    changed = step.judge(asked(HEAD, clone_=(0, f"{KIT.commit}\n M start.sh\n", "")))
    assert "and 1 of its files was changed" in changed.reason
    assert step.judge(asked(HEAD, clone_=(127, "", ""))).next_step == "sudo apt install git"


def test_the_kit_on_record_is_a_lane_that_runs_and_by_hand_it_holds_its_own_ports():
    steps = {step.id: step for step in preflight.preflight_steps(LANE, RENDERED)}
    taken = ['LISTEN 0 128 0.0.0.0:8888 0.0.0.0:* users:(("vllm",pid=1,fd=3))']
    by_hand = raw.answers(HEAD, {facts.CONTAINERS: raw.containers(own(HEAD))}, listening=taken)
    assert steps["preflight:ports@spark-1"].judge(by_hand).state == "ok"
    alone = raw.answers(HEAD, {}, listening=taken)
    assert steps["preflight:ports@spark-1"].judge(alone).state == "blocked"


def test_beside_another_lane_a_port_that_it_does_not_hold_must_be_free():
    other = raw.containers({"name": "x", "labels": {"sparkyard.lane": "A", "sparkyard.hash": "1"}})
    taken = ['LISTEN 0 128 0.0.0.0:8888 0.0.0.0:* users:(("nc",pid=1,fd=3))']
    answers = raw.answers(HEAD, {facts.CONTAINERS: other}, listening=taken)
    plain = preflight.preflight_steps(LANE, RENDERED)
    (step,) = [s for s in changing.beside(plain, LANE, RENDERED, []) if s.id == "preflight:ports@spark-1"]
    assert step.judge(answers).state == "blocked"
    (theirs,) = [
        s for s in changing.beside(plain, LANE, RENDERED, [RENDERED]) if s.id == "preflight:ports@spark-1"
    ]
    assert theirs.judge(answers).state == "ok"
