"""Git sources of a build: which steps there are, what they would do, and what the image's tag is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkyard.actions_image import BuildImage, GitFetch, MakeContext
from sparkyard.facts import image_question
from sparkyard.lock import Lock, LockedGit, LockedImage
from sparkyard.model import Lane
from sparkyard.pins import BASE, has_registry, needs_digest, pinned_image, without_tag
from sparkyard.plan import Question, required
from sparkyard.render import render_lane
from sparkyard.resolve import fitting, gaps
from sparkyard.steps.image import build_steps
from tests.unit import raw, sample

URL = "https://git.example/maker/engine"
KEY = "image.build.git.engine"
WHOLE = "ab" * 20
SHORT = WHOLE[:12]
TAGGED = "nvcr.io/nvidia/pytorch:26.07-py3"
DIGEST = f"sha256:{'c' * 64}"
LOCK = Lock(git={KEY: LockedGit(URL, SHORT, WHOLE)}, images={BASE: LockedImage(TAGGED, DIGEST)})


def lane(**build: object) -> Lane:
    data = sample.recipe_data()
    source = {"kind": "chosen", "why": "test"}
    git = {"engine": {"url": URL, "commit": SHORT, "source": source}}
    data["image"]["build"] |= {"base": TAGGED, "git": git} | build
    return sample.lane(data=data)


def test_pins_that_nobody_knows_are_gaps_and_marks():
    made = lane()
    assert gaps(made, Lock())[-2:] == (KEY, BASE)
    rendered = render_lane(made, {})
    assert rendered.unlocked[-1] == KEY
    assert rendered.image.trees[0].commit == f"<unlocked: {SHORT}>"
    assert f"BASE={TAGGED}" in rendered.image.words


def test_a_locked_build_names_the_digest_and_its_own_context():
    image = render_lane(lane(), {}, LOCK).image
    assert f"BASE=nvcr.io/nvidia/pytorch@{DIGEST}" in image.words
    root = f"{sample.HOME}/.local/share/sparkyard"
    assert image.context == image.words[-1] == f"{root}/contexts/{image.name}-{image.mark[:12]}"
    [tree] = image.trees
    assert (tree.url, tree.commit, tree.place) == (URL, WHOLE, URL)
    assert tree.clone == f"{root}/git/git.example--maker--engine.git"
    assert tree.folder == f"{image.context}/engine"
    assert image.local_base == ""


def test_the_tag_is_made_of_commits_and_digests():
    other_commit = Lock(git={KEY: LockedGit(URL, SHORT, SHORT + "0" * 28)}, images=LOCK.images)
    other_digest = Lock(git=LOCK.git, images={BASE: LockedImage(TAGGED, f"sha256:{'d' * 64}")})
    marks = {render_lane(lane(), {}, lock).image.mark for lock in (LOCK, other_commit, other_digest)}
    assert len(marks) == 3


def test_a_mirror_changes_where_and_not_what():
    made = lane()
    mirrors = {"https://git.example/": "/srv/git", "nvcr.io/": "192.0.2.1:5000"}
    behind = Lane(
        made.name,
        made.recipe,
        made.recipe_folder,
        sample.inventory(2, mirrors=mirrors),
        made.nodes,
        made.settings,
    )
    image, direct = render_lane(behind, {}, LOCK).image, render_lane(made, {}, LOCK).image
    assert f"BASE=192.0.2.1:5000/nvidia/pytorch@{DIGEST}" in image.words
    assert image.trees[0].place == "/srv/git/maker/engine"
    assert image.trees[0].clone == direct.trees[0].clone
    assert image.mark == direct.mark


def test_a_lock_for_another_pin_is_not_used():
    assert BASE in gaps(
        lane(base="nvcr.io/nvidia/pytorch:1"), fitting(lane(base="nvcr.io/nvidia/pytorch:1"), LOCK)
    )
    assert BASE not in gaps(lane(), fitting(lane(), LOCK))


RENDERED = render_lane(lane(), {}, LOCK)
IMAGE = image_question(RENDERED.image.reference)
SOURCE, BUILD, SHIP = build_steps(lane(), RENDERED)
CLONE = Question("ask_git", (RENDERED.image.trees[0].clone, WHOLE))
RIGHT = {"labels": {"sparkyard.build": RENDERED.image.mark}}


def test_a_commit_that_is_missing_is_fetched():
    verdict = SOURCE.judge(raw.answers(raw.HEAD, {IMAGE: raw.NO_IMAGE, CLONE: (1, "", "")}))
    [fetch] = verdict.actions
    assert isinstance(fetch, GitFetch)
    assert (fetch.url, fetch.commit, fetch.place) == (URL, WHOLE, URL)
    assert "<discovered" not in fetch.folder


def test_a_commit_that_is_there_is_right():
    assert SOURCE.judge(raw.answers(raw.HEAD, {IMAGE: raw.NO_IMAGE, CLONE: (0, "", "")})).state == "ok"


def test_no_source_is_needed_for_an_image_that_is_there():
    verdict = SOURCE.judge(raw.answers(raw.HEAD, {IMAGE: raw.image(**RIGHT), CLONE: (1, "", "")}))
    assert verdict.state == "ok"


def test_without_git_the_source_step_says_so():
    verdict = SOURCE.judge(raw.answers(raw.HEAD, {IMAGE: raw.NO_IMAGE, CLONE: (127, "", "")}))
    assert (verdict.state, verdict.reason) == ("blocked", "git is not installed")


def test_what_is_not_locked_is_not_fetched():
    rendered = render_lane(lane(), {})
    source = build_steps(lane(), rendered)[0]
    verdict = source.judge(raw.answers(raw.HEAD, {image_question(rendered.image.reference): raw.NO_IMAGE}))
    assert (verdict.state, verdict.next_step) == ("blocked", "invoke lock")


def test_the_context_is_made_before_the_build_and_no_mark_is_left():
    verdict = BUILD.judge(raw.answers(raw.HEAD, {IMAGE: raw.NO_IMAGE}))
    context, build = verdict.actions
    assert isinstance(context, MakeContext)
    assert isinstance(build, BuildImage)
    assert context.folder == build.context == build.command.words[-1]
    assert "<discovered" not in f"{context} {build}"
    assert BUILD.needs == (SOURCE.id,)


def test_a_base_without_a_registry_must_be_here():
    data = sample.recipe_data()
    data["image"]["build"]["base"] = "here/base:1"
    made = sample.lane(data=data)
    rendered = render_lane(made, {})
    [build, _ship] = build_steps(made, rendered)
    image, base = image_question(rendered.image.reference), image_question("here/base:1")
    missing = build.judge(raw.answers(raw.HEAD, {image: raw.NO_IMAGE, base: raw.NO_IMAGE}))
    assert missing.state == "blocked"
    assert "here/base:1 is not on this machine, and its name has no registry in it" in missing.reason
    assert build.judge(raw.answers(raw.HEAD, {image: raw.NO_IMAGE, base: raw.image()})).state == "change"


def test_a_worker_with_other_layers_gets_the_heads_image():
    worker = raw.answers(raw.WORKER, {IMAGE: raw.image(**RIGHT, layers=["sha256:a", "sha256:b"])})
    same = raw.answers(raw.HEAD, {IMAGE: raw.image(**RIGHT, layers=["sha256:a", "sha256:b"])})
    other = raw.answers(raw.HEAD, {IMAGE: raw.image(**RIGHT, layers=["sha256:a", "sha256:c"])})
    assert SHIP.also == {"spark-1": (IMAGE,)}
    assert SHIP.judge(replace(worker, others={"spark-1": same})).state == "ok"
    verdict = SHIP.judge(replace(worker, others={"spark-1": other}))
    assert verdict.state == "change"
    assert "has other content than the head's: 1 of its 2 layers are the same" in verdict.reason
    asked = required(SHIP, "build --lane=T").judge(replace(worker, others={"spark-1": other}))
    assert (asked.state, asked.next_step) == ("blocked", "invoke build --lane=T")


@pytest.mark.parametrize(
    ("reference", "registry", "digest"),
    [
        ("nvcr.io/nvidia/pytorch:26.07-py3", True, True),
        ("localhost/x:1", True, True),
        ("127.0.0.1:5000/x", True, True),
        ("nvcr.io/x@sha256:00", True, False),
        ("sparkyard-lab/engine-base:latest", False, False),
        ("debian:12", False, False),
    ],
)
def test_only_a_tag_in_a_registry_needs_a_digest(reference, registry, digest):
    assert (has_registry(reference), needs_digest(reference)) == (registry, digest)


def test_a_digest_stands_in_for_the_tag():
    assert (
        pinned_image("127.0.0.1:5000/x:1", LockedImage("127.0.0.1:5000/x:1", DIGEST))
        == f"127.0.0.1:5000/x@{DIGEST}"
    )
    assert (
        pinned_image("127.0.0.1:5000/x:1", LockedImage("127.0.0.1:5000/x:2", DIGEST)) == "127.0.0.1:5000/x:1"
    )
    assert without_tag("127.0.0.1:5000/x") == "127.0.0.1:5000/x"
