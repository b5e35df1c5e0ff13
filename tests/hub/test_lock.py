"""Locks against a real hub client and real git repositories: resolved, refused, refreshed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard import locking
from sparkyard.actions_image import GitTree, MakeContext
from sparkyard.errors import StepFailed
from sparkyard.executors.git import git_tree, make_context
from sparkyard.lab.hub import Hub
from sparkyard.lock import Lock, LockedFile, LockedGit, read_lock
from sparkyard.recipe import BuildSpec, GitSpec, Source
from sparkyard.resolve import gaps, known_lock, own_lock_path
from sparkyard.resolving import Resolver
from tests.hub.checkpoints import Project, bytes_of, make_repository

URL = "https://git.example/maker/engine"
KEY = "image.build.git.engine"
AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example")


class Repository:
    """A real git repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        env = {**os.environ, "GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0000"}
        done = subprocess.run(
            ["git", *AUTHOR, *words], cwd=self.folder, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def engine(tmp_path):
    return Repository(tmp_path / "mirror" / "maker" / "engine")


@pytest.fixture
def hub(tmp_path):
    make_repository(tmp_path / "hub", {"config.json": 70, "a.safetensors": 90})
    with Hub(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def project(tmp_path, hub):
    made = Project(tmp_path, hub.url)
    mirrors = {"https://git.example/": f"{tmp_path}/mirror/"}
    made.inventory = replace(made.inventory, mirrors=mirrors)
    made.lane = replace(made.lane, inventory=made.inventory)
    return made


def with_engine(project: Project, commit: str) -> Project:
    """The lane with an image that is built from the engine at a commit."""
    spec = GitSpec(url=URL, commit=commit, source=Source(kind="chosen", why="test"))
    image = project.lane.recipe.image
    build = BuildSpec(base="here:1", git={"engine": spec})
    recipe = project.lane.recipe.model_copy(update={"image": image.model_copy(update={"build": build})})
    project.lane = replace(project.lane, recipe=recipe)
    return project


def resolved(project: Project) -> LockedGit:
    around = project.surroundings()
    try:
        return Resolver(project.lane, around, lambda _line: None).lock([KEY]).git[KEY]
    finally:
        around.close()


def refused(project: Project) -> str:
    with pytest.raises(StepFailed) as failure:
        resolved(project)
    return str(failure.value)


# git


def test_the_beginning_of_a_commit_becomes_the_whole(project, engine):
    first = engine.commit("a.py", "one")
    engine.commit("a.py", "two")
    assert resolved(with_engine(project, first[:12])) == LockedGit(URL, first[:12], first)


def test_one_commit_for_many_files_is_looked_for_once(project, engine):
    """boot10 has eight texts of one repository at one commit, and said so eight times."""
    whole = engine.commit("a.py", "one")
    spec = GitSpec(url=URL, commit=whole[:9], source=Source(kind="chosen", why="test"))
    told: list[str] = []
    around = project.surroundings()
    try:
        resolver = Resolver(project.lane, around, told.append)
        found = [resolver.git(f"patches.{name}.git", spec) for name in ("one", "two")]
    finally:
        around.close()
    assert found == [LockedGit(URL, whole[:9], whole)] * 2
    assert told == [f"{URL}: looking for commit {whole[:9]}"]


def test_a_commit_on_a_ref_that_is_no_branch_is_found(project, engine):
    engine.commit("a.py", "one")
    aside = engine.commit("a.py", "aside")
    engine.git("update-ref", "refs/pull/7/head", aside)
    engine.git("reset", "--quiet", "--hard", "HEAD~1")
    assert resolved(with_engine(project, aside[:10])).commit == aside


def test_a_beginning_that_fits_no_commit_is_refused(project, engine):
    engine.commit("a.py", "one")
    said = refused(with_engine(project, "0" * 12))
    assert "000000000000 is no commit on any branch, tag or other ref of" in said
    assert f"asked for {KEY}" in said


def test_a_beginning_that_fits_two_commits_names_both(project, engine):
    """Seven digits cannot be made to meet by trying, so the pin is one that both commits are made to begin with."""
    commits = [engine.commit("a.py", str(n)) for n in range(40)]
    by_first: dict[str, list[str]] = {}
    for commit in commits:
        by_first.setdefault(commit[:1], []).append(commit)
    prefix, twins = next((p, found) for p, found in sorted(by_first.items()) if len(found) > 1)
    build = with_engine(project, "0" * 12).lane.recipe.image.build
    assert build is not None
    build.git["engine"] = build.git["engine"].model_copy(update={"commit": prefix})
    said = refused(project)
    assert f"{prefix} fits {len(twins)} commits of {URL}" in said
    assert all(twin in said for twin in twins)


def test_a_locked_commit_needs_no_network_once_it_is_here(project, engine, tmp_path):
    whole = engine.commit("a.py", "one")
    with_engine(project, whole)
    resolved(project)
    (tmp_path / "mirror").rename(tmp_path / "away")
    assert resolved(project).commit == whole


def test_a_commit_stays_when_its_branch_moves_away(project, engine, tmp_path):
    first = engine.commit("a.py", "one")
    aside = engine.commit("a.py", "two")
    with_engine(project, aside)
    resolved(project)
    engine.git("reset", "--quiet", "--hard", first)
    engine.git("reflog", "expire", "--expire=now", "--all")
    engine.git("gc", "--quiet", "--prune=now")
    assert resolved(project).commit == aside
    subprocess.run(
        ["git", "-C", str(next((tmp_path / "head/git").iterdir())), "gc", "--quiet", "--prune=now"],
        check=True,
    )
    assert resolved(project).commit == aside


def test_a_commit_that_is_gone_is_named(project, engine):
    engine.commit("a.py", "one")
    said = refused(with_engine(project, "d" * 40))
    assert f"commit {'d' * 40} is not in {URL} any more" in said
    assert "invoke lock --refresh" in said


def test_no_repository_is_told_without_a_question(project, tmp_path):
    said = refused(with_engine(project, "d" * 40))
    assert (
        f"{URL} (by way of {tmp_path}/mirror/maker/engine) could not be fetched: there is no such repository"
        in said
    )


def test_an_interrupted_clone_is_filled_on(project, engine, tmp_path):
    whole = engine.commit("a.py", "one")
    with_engine(project, whole)
    resolved(project)
    clone = next((tmp_path / "head" / "git").iterdir())
    for file in [*clone.rglob("pack-*"), *clone.glob("refs/**/*"), *clone.glob("objects/??/*")]:
        if file.is_file():
            file.unlink()
    (clone / "packed-refs").unlink(missing_ok=True)
    (clone / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    assert resolved(project).commit == whole


# trees


class Here:
    """The world of an executor: its shells."""

    def __init__(self, project: Project) -> None:
        self.around = project.surroundings()

    def shell(self, node: str):
        return self.around.shell(node)


def test_a_tree_is_written_as_it_was_committed(project, engine, tmp_path):
    (engine.folder / ".gitattributes").write_text("* text=auto eol=crlf\nsecret export-ignore\n")
    engine.commit("pkg/run.sh", "#!/bin/sh\n")
    (engine.folder / "pkg" / "run.sh").chmod(0o755)
    engine.git("update-index", "--chmod=+x", "pkg/run.sh")
    whole = engine.commit("secret", "kept\n")
    clone = str(engine.folder / ".git")
    target = tmp_path / "out"
    (target / "old").mkdir(parents=True)
    git_tree(GitTree(clone, whole, str(target)), "spark-1", Here(project))  # type: ignore[arg-type]
    assert sorted(p.name for p in target.iterdir()) == [".gitattributes", "pkg", "secret"]
    assert os.access(target / "pkg" / "run.sh", os.X_OK)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_context_is_the_recipes_folder_and_the_trees(project, engine, tmp_path):
    whole = engine.commit("setup.py", "x = 1\n")
    source = tmp_path / "recipe"
    source.mkdir()
    (source / "build.sh").write_text("make\n")
    contexts = tmp_path / "contexts"
    old, new = f"tiny-{'0' * 12}", f"tiny-{'1' * 12}"
    others = [f"other-{'0' * 12}", f"tiny-two-{'0' * 12}"]
    for name in (old, *others):
        (contexts / name).mkdir(parents=True)
    folder = contexts / new
    tree = GitTree(str(engine.folder / ".git"), whole, f"{folder}/engine")
    make_context(MakeContext(str(source), str(folder), (tree,), "tiny-"), "spark-1", Here(project))  # type: ignore[arg-type]
    assert (folder / "engine" / "setup.py").read_text() == "x = 1\n"
    assert (folder / "build.sh").read_text() == "make\n"
    assert sorted(p.name for p in contexts.iterdir()) == sorted([*others, new])
    (source / "engine").mkdir()
    with pytest.raises(StepFailed, match="in the recipe's build context and a git source too"):
        make_context(MakeContext(str(source), str(folder), (tree,), "tiny-"), "spark-1", Here(project))  # type: ignore[arg-type]
    assert (folder / "engine" / "setup.py").is_file()


# the whole lock


def asked_again(project: Project) -> list[str]:
    """What `invoke lock` would refuse, after a first lock."""
    around = project.surroundings()
    try:
        resolver = Resolver(project.lane, around, lambda _line: None)
        known = known_lock(project.lane)
        return list(locking.differences(known, resolver.lock(locking.every_key(project.lane))))
    finally:
        around.close()


def test_everything_is_locked_and_holds(project, engine):
    whole = engine.commit("a.py", "one")
    with_engine(project, whole[:9])
    assert gaps(project.lane, known_lock(project.lane)) == ("checkpoints.small", KEY)
    project.manifests()
    assert gaps(project.lane, known_lock(project.lane)) == ()
    assert known_lock(project.lane).git == {KEY: LockedGit(URL, whole[:9], whole)}
    assert asked_again(project) == []


def test_a_branch_that_moved_names_both(project, tmp_path):
    was = project.manifests()["small"].commit
    (tmp_path / "hub/example/small/config.json").write_bytes(bytes_of(71))
    [difference] = asked_again(project)
    assert difference.startswith(f"checkpoint small: example/small@main was {was}, is ")
    assert not difference.endswith(was)


def test_a_file_that_grew_names_both(project):
    project.manifests()
    known = known_lock(project.lane)
    locked = known.checkpoints["small"]
    first, *rest = locked.manifest.files
    grown = replace(locked, manifest=replace(locked.manifest, files=(replace(first, size=91), *rest)))
    now = replace(known, checkpoints={"small": grown})
    assert list(locking.differences(known, now)) == ["checkpoint small: a.safetensors had 90 bytes, has 91"]
    fewer = replace(
        known, checkpoints={"small": replace(locked, manifest=replace(locked.manifest, files=tuple(rest)))}
    )
    assert list(locking.differences(known, fewer)) == [
        "checkpoint small: a.safetensors is gone from example/small"
    ]
    assert list(locking.differences(fewer, known)) == [
        "checkpoint small: a.safetensors is new in example/small"
    ]


def test_a_pin_that_changed_in_the_recipe_is_a_gap_and_said(project, engine):
    first, second = engine.commit("a.py", "one"), engine.commit("a.py", "two")
    with_engine(project, first[:9])
    project.manifests()
    with_engine(project, second[:9])
    assert gaps(project.lane, known_lock(project.lane)) == (KEY,)
    said: list[str] = []
    project.manifests(say=said.append)
    assert f"{KEY}: the lock is for {URL}@{first[:9]}, the recipe says {URL}@{second[:9]}" in said
    assert known_lock(project.lane).git[KEY].commit == second


def test_only_pins_that_are_not_whole_need_a_yes(project, engine):
    whole = engine.commit("a.py", "one")
    with_engine(project, whole)
    project.manifests()
    known = known_lock(project.lane)
    assert list(locking.uncertain(known)) == ["checkpoints.small"]
    assert own_lock_path(project.lane).is_file()


def test_a_refresh_forgets_the_hashes_of_edited_texts(project, engine):
    commit = engine.commit("a.py", "one")
    with_engine(project, commit)
    found = Lock(git={KEY: LockedGit(URL, commit, commit)})
    locking.keep(project.lane, Lock(files={"template": LockedFile("a" * 64, "b" * 64)}))
    locking.keep(project.lane, found)
    assert set((read_lock(own_lock_path(project.lane)) or Lock()).files) == {"template"}
    locking.keep(project.lane, found, refresh=True)
    assert (read_lock(own_lock_path(project.lane)) or found).files == {}


def with_config(project: Project, hub_folder: Path, config: bytes) -> None:
    """The lane with a template that names the checkpoint's config, which is this."""
    (hub_folder / "example/small/config.json").write_bytes(config)
    recipe = project.lane.recipe.model_copy(update={"env": {"HEADS": "{{ checkpoints.small.config.heads }}"}})
    project.lane = replace(project.lane, recipe=recipe)


def test_a_config_that_templates_name_is_kept_in_the_lock(project, tmp_path):
    with_config(project, tmp_path / "hub", b'{"heads": 8}')
    project.manifests()
    assert known_lock(project.lane).manifests["small"].config == {"heads": 8}
    assert asked_again(project) == []


def test_an_older_lock_without_the_config_has_a_gap(project, tmp_path):
    project.manifests()
    with_config(project, tmp_path / "hub", b'{"heads": 8}')
    assert known_lock(project.lane).manifests["small"].config is None
    assert gaps(project.lane, known_lock(project.lane)) == ("checkpoints.small",)


@pytest.mark.parametrize(
    ("config", "why"), [(b"{", "Expecting property name"), (b"[1]", "is no JSON object")]
)
def test_a_config_that_is_no_json_object_is_refused(project, tmp_path, config, why):
    with_config(project, tmp_path / "hub", config)
    with pytest.raises(StepFailed, match=why) as failure:
        project.manifests()
    assert "config.json of example/small@" in str(failure.value)
    assert not own_lock_path(project.lane).exists()
