"""Images, files and verify checks, judged from raw answers."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from sparkyard import facts
from sparkyard.actions import Request, Run, WriteFile
from sparkyard.actions_image import BuildImage, ShipImage
from sparkyard.build_context import build_hash, entries
from sparkyard.model import RenderedFile
from sparkyard.plan import Answers, Verdict
from sparkyard.render import render_lane
from sparkyard.steps import files, image, verify
from tests.unit import raw, sample

LANE = sample.lane(api_key="sk-hidden")
RENDERED = render_lane(LANE, {})
IMAGE = facts.image_question(RENDERED.image.reference)
BUILT = {"labels": {"sparkyard.build": RENDERED.image.mark}}
BUILD, SHIP = image.build_steps(LANE, RENDERED)
FILES = {(step.name, step.node): step for step in files.file_steps(RENDERED)}


def test_a_missing_image_is_built_with_the_exact_words():
    verdict = BUILD.judge(raw.answers(raw.HEAD, {IMAGE: raw.NO_IMAGE}))
    (build,) = verdict.actions
    assert isinstance(build, BuildImage)
    mark, context = RENDERED.image.mark, str(sample.RECIPES / "tiny" / "image")
    assert build.command.words == (
        *("docker", "build", "--tag", f"sparkyard/tiny:{mark[:12]}", "--label", f"sparkyard.build={mark}"),
        *("--build-arg", "BASE=example/base@sha256:00", "--build-arg", "STREAMS=4"),
        *("--file", f"{context}/Dockerfile", context),
    )


@pytest.mark.parametrize("step", [BUILD, SHIP])
def test_an_image_with_the_right_label_is_right_whatever_its_id(step):  # T53
    for id_ in ("sha256:1", "sha256:2"):
        node = raw.HEAD if step is BUILD else raw.WORKER
        assert step.judge(raw.answers(node, {IMAGE: raw.image(id=id_, **BUILT)})).state == "ok"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"labels": {"sparkyard.build": "0"}}, "has another sparkyard.build label than this recipe makes"),
        ({"labels": None}, "has another sparkyard.build label than this recipe makes"),
        ({**BUILT, "architecture": "amd64"}, "is for amd64, and this machine is arm64"),  # T52
    ],
)
def test_an_image_that_is_not_the_wanted_one_is_shipped_again(changes, reason):
    verdict = SHIP.judge(raw.answers(raw.WORKER, {IMAGE: raw.image(**changes)}))
    assert verdict.reason.endswith(reason)
    assert verdict.actions == (ShipImage(RENDERED.image.reference, "10.0.0.2"),)


def test_what_is_shown_of_shipping_is_one_line_of_shell():
    line = ShipImage("sparkyard/tiny:1", "10.0.0.2").shown()
    asked, filtered, loaded = line.split(" | python3 -I ")[0], line.split(" | ")[-2], line.split(" | ")[-1]
    assert asked.startswith(
        "{ docker image inspect --format '{{json .RootFS.Layers}}' sparkyard/tiny:1; ssh 10.0.0.2 'case "
    )
    assert asked.endswith("; echo; docker save sparkyard/tiny:1; }")
    assert filtered.endswith("scripts/node/trim.py")
    assert loaded == "ssh 10.0.0.2 docker load"


def test_a_build_beside_a_serving_lane_needs_room():
    busy = raw.containers({"name": "e", "labels": {"sparkyard.lane": "X"}})
    given = {IMAGE: raw.NO_IMAGE, facts.CONTAINERS: busy}
    verdict = BUILD.judge(raw.answers(raw.HEAD, given, memory={"MemAvailable": 4 << 20}))
    assert (verdict.state, verdict.next_step) == ("blocked", "invoke stop --lane=X")
    assert verdict.reason.startswith("the build needs the lane stopped: 4.3 GB are free beside lane X")
    assert BUILD.judge(raw.answers(raw.HEAD, given)).state == "change"


def test_a_build_that_the_guard_would_kill_at_once_is_not_begun():
    data = sample.recipe_data() | {"limits": {"memory": 9 << 30, "guard": 5 << 30}}
    rendered = render_lane(sample.lane(data=data), {})
    build = next(step for step in image.build_steps(LANE, rendered) if step.id == BUILD.id)
    given = {IMAGE: raw.NO_IMAGE, facts.CONTAINERS: raw.containers()}
    verdict = build.judge(raw.answers(raw.HEAD, given, memory={"MemAvailable": 4 << 20}))
    assert (verdict.state, verdict.reason) == (
        "blocked",
        "4.3 GB of memory are free; the build would be killed below 5.4 GB (limits.guard)",
    )
    assert build.judge(raw.answers(raw.HEAD, given)).state == "change"


def test_an_image_can_be_pulled_by_digest():
    data = sample.recipe_data()
    digest = "sha256:" + "b" * 64
    data["image"] = {**data["image"], "build": None, "pull": {"repository": "example/e", "digest": digest}}
    lane = sample.lane(data=data)
    rendered = render_lane(lane, {})
    pull, _ = image.build_steps(lane, rendered)
    asked = facts.image_question("sparkyard/tiny:bbbbbbbbbbbb")
    missing = pull.judge(raw.answers(raw.HEAD, {asked: raw.NO_IMAGE}))
    assert [action.shown() for action in missing.actions] == [
        f"docker pull example/e@{digest}",
        f"docker tag example/e@{digest} sparkyard/tiny:bbbbbbbbbbbb",
    ]
    assert all(isinstance(action, Run) for action in missing.actions)
    there = raw.answers(raw.HEAD, {asked: raw.image(digests=[f"example/e@{digest}"])})
    assert pull.judge(there).state == "ok"
    other = raw.answers(raw.HEAD, {asked: raw.image(digests=["example/e@sha256:00"])})
    assert pull.judge(other).state == "change"


def test_the_build_hash_is_of_content_modes_and_arguments(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM scratch\n")
    before = build_hash(tmp_path, file, "b", {})
    assert before == build_hash(tmp_path, file, "b", {})
    (tmp_path / "__pycache__").mkdir()
    assert before == build_hash(tmp_path, file, "b", {})
    seen = {
        before,
        build_hash(tmp_path, file, "c", {}),
        build_hash(tmp_path, file, "b", {"A": "1"}),
    }
    file.chmod(0o755)
    seen.add(build_hash(tmp_path, file, "b", {}))
    (tmp_path / "new").symlink_to("Dockerfile")
    seen.add(build_hash(tmp_path, file, "b", {}))
    assert len(seen) == 5
    assert [entry[:2] for entry in entries(tmp_path)] == [("Dockerfile", "x"), ("new", "l")]


def file_of(name: str) -> RenderedFile:
    return next(each for each in RENDERED.files_of("spark-1") if each.name == name)


def answer(name: str, content: str, mode: str = "644") -> Answers:
    rendered = file_of(name)
    data = content.encode()
    line = (
        hashlib.sha256(data).hexdigest() + "  -"
        if rendered.secret
        else "content " + base64.b64encode(data).decode()
    )
    return raw.answers(
        raw.HEAD, {files.question(rendered): (0, f"regular file|{mode}|{len(data)}\n{line}", "")}
    )


def judged(name: str, answers: Answers) -> Verdict:
    return FILES[name, "spark-1"].judge(answers)


@pytest.mark.parametrize(("name", "mode"), [("engine", "644"), ("keys", "600")])
def test_a_file_as_wanted_is_left_alone(name, mode):
    assert judged(name, answer(name, file_of(name).content, mode)).state == "ok"


def test_a_missing_file_is_written_below_the_home_of_its_node():
    missing: Any = {
        files.question(file_of("keys")): (1, "", "stat: cannot statx 'x': No such file or directory")
    }
    (action,) = judged("keys", raw.answers(raw.HEAD, missing)).actions
    assert action == WriteFile(
        "/home/spark/.local/share/sparkyard/lanes/T/keys.env", b"API_KEY=sk-hidden\n", 0o600
    )


def test_discovered_values_are_filled_into_files():
    (action,) = judged("profile", answer("profile", "old")).actions
    assert isinstance(action, WriteFile)
    assert action.content == b"export RANK=0\nexec serve --host 10.0.0.1 --gid 3\n"


def test_other_content_shows_a_diff_and_secrets_none():
    verdict = judged("engine", answer("engine", "A=sk-hidden\n"))
    assert verdict.diff[0][1:] == ("A=********\n", file_of("engine").content)
    secret = judged("keys", answer("keys", "API_KEY=old\n", "600"))
    assert (secret.state, secret.diff) == ("change", ())


def test_a_secret_that_others_may_read_is_written_again():
    verdict = judged("keys", answer("keys", file_of("keys").content, "644"))
    assert verdict.reason.endswith("has mode 0644, not 0600")


def test_a_folder_in_the_place_of_a_file_is_not_touched():
    answers = raw.answers(raw.HEAD, {files.question(file_of("engine")): (0, "directory|755|4096\n", "")})
    assert judged("engine", answers).state == "blocked"


def test_a_file_whose_values_are_not_known_is_not_written():
    answers = raw.answers(raw.HEAD, devices=raw.devices(raw.HEAD, "f1", address=""))
    assert judged("profile", answers).reason == "gid could not be discovered on spark-1"


def test_each_check_is_a_request_on_the_head():
    steps = verify.verify_steps(LANE, RENDERED)
    assert [(step.id, step.recheck) for step in steps] == [
        ("verify:greedy@spark-1", False),
        ("verify:models@spark-1", False),
    ]
    (request,) = steps[0].judge(raw.answers(raw.HEAD)).actions
    assert isinstance(request, Request)
    assert (request.url, request.api_key) == ("http://127.0.0.1:8000", "sk-hidden")
    assert "sk-hidden" not in repr(request)
