"""Paths from listings, patterns, seals and locks."""

from dataclasses import replace
from typing import Any

import pytest

from sparkyard.errors import ConfigError, StepFailed
from sparkyard.lock import (
    Lock,
    Locked,
    LockedFile,
    LockedGit,
    LockedImage,
    format_lock,
    parse_lock,
    read_lock,
    write_lock,
)
from sparkyard.manifest import file_fault, path_fault, refuse_unsafe, seal_entries, seal_text, wanted
from sparkyard.model import Manifest, RemoteFile
from sparkyard.recipe import CheckpointSpec, Source
from sparkyard.resolve import from_lock

SHA = "a" * 64
BLOB = "b" * 40
COMMIT = "c" * 40
FILES = (
    RemoteFile("README.md", 10, blob=BLOB),
    RemoteFile("config.json", 20, blob=BLOB),
    RemoteFile("model-1.safetensors", 3000, sha256=SHA),
    RemoteFile("vision/model.safetensors", 500, sha256=SHA),
)
MANIFEST = Manifest("org/name", COMMIT, FILES)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        "./a",
        "a\\b",
        "a\nb",
        "a\tb",
        "a\0b",
        ".incoming/x",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    assert path_fault(path)
    with pytest.raises(StepFailed, match="must not be used"):
        refuse_unsafe([RemoteFile(path, 1, sha256=SHA)], "org/name")


@pytest.mark.parametrize("path", ["a", "a b/ü.json", "..a", "a/.gitattributes", "-rf", "$(x)", "a/.incoming"])
def test_an_odd_but_harmless_path_is_taken(path):
    assert path_fault(path) == ""


def test_an_entry_without_a_hash_or_with_a_wrong_one_is_refused():
    assert "neither" in file_fault(RemoteFile("a", 1))
    assert "neither" in file_fault(RemoteFile("a", 1, sha256="zz"))
    assert "negative" in file_fault(RemoteFile("a", -1, sha256=SHA))


def test_a_file_that_is_also_a_folder_or_listed_twice_is_refused():
    a = RemoteFile("a", 1, sha256=SHA)
    with pytest.raises(StepFailed) as failure:
        refuse_unsafe([a, RemoteFile("a/b", 1, sha256=SHA)], "x")
    assert "'a' is a file and a folder" in str(failure.value)
    with pytest.raises(StepFailed, match="must not") as failure:
        refuse_unsafe([a, a], "x")
    assert "listed twice" in str(failure.value)


def test_patterns_choose_files_and_stars_cross_folders():
    def paths(*patterns):
        return [file.path for file in wanted(FILES, patterns, "x")]

    assert paths("*") == sorted(file.path for file in FILES)
    assert paths("*.safetensors") == ["model-1.safetensors", "vision/model.safetensors"]
    assert paths("vision/", "config.json") == ["config.json", "vision/model.safetensors"]


def test_a_pattern_that_fits_nothing_is_named():
    with pytest.raises(StepFailed, match=r"no file of org/name@c matches '\*\.gguf'") as failure:
        wanted(FILES, ["*.json", "*.gguf"], "org/name@c")
    assert "README.md" in str(failure.value)
    with pytest.raises(StepFailed, match="an empty list"):
        wanted(FILES, [], "x")


def test_two_lanes_with_different_files_share_a_seal():
    one = replace(MANIFEST, files=FILES[:2])
    other = replace(MANIFEST, files=FILES[2:])
    first = seal_text(one, {})
    both = seal_text(other, seal_entries(first, other))
    assert seal_entries(both, one) == seal_entries(first, one) | {f.path: f"sha256:{SHA}" for f in FILES[2:]}
    assert seal_text(one, seal_entries(both, one)) == both


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": 1}', '{"files": {}}', '{"version": 3, "files": {}}']
)
def test_a_damaged_seal_seals_nothing(text):
    assert seal_entries(text, MANIFEST) == {}


def test_a_seal_of_another_commit_seals_nothing():
    assert seal_entries(seal_text(MANIFEST, {}), replace(MANIFEST, commit="d" * 40)) == {}


def some_lock(**parts: Any) -> Lock:
    return Lock({"small": Locked("main", MANIFEST)}, **parts)


WHOLE = Lock(
    {
        "small": Locked("main", replace(MANIFEST, config={"heads": [8], "n": None}), ("*",)),
        "big": Locked(COMMIT, MANIFEST),
    },
    {"image.build.git.engine": LockedGit("https://git.example/a/b", COMMIT[:12], COMMIT)},
    {"image.build.base": LockedImage("registry.example/base:1", f"sha256:{SHA}")},
    {"template": LockedFile(SHA, "b" * 64)},
)


def test_a_lock_comes_back_from_its_text(tmp_path):
    assert parse_lock(format_lock(WHOLE), "x") == WHOLE
    write_lock(tmp_path / "locks" / "A.json", WHOLE)
    assert read_lock(tmp_path / "locks" / "A.json") == WHOLE
    assert [path.name for path in (tmp_path / "locks").iterdir()] == ["A.json"]
    assert read_lock(tmp_path / "none.json") is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_lock_of_an_older_version_is_read(version):
    text = format_lock(some_lock()).replace('"version": 3', f'"version": {version}')
    assert parse_lock(text, "x") == some_lock()


def test_a_lock_goes_over_another_entry_by_entry():
    over = Lock(
        {"big": Locked("dev", MANIFEST)}, images={"image.build.base": LockedImage("x", f"sha256:{SHA}")}
    )
    both = over.over(WHOLE)
    assert both.checkpoints == {"small": WHOLE.checkpoints["small"], "big": over.checkpoints["big"]}
    assert both.images == over.images
    assert both.git == WHOLE.git
    assert both.files == WHOLE.files


def test_a_lock_cut_anywhere_is_refused():
    text = format_lock(WHOLE)
    for cut in range(len(text.rstrip())):
        with pytest.raises(ConfigError):
            parse_lock(text[:cut], "locks/A.json")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"version": 3', '"version": 4', "is 4, this sparkyard reads 1 and 2 and 3"),
        ("config.json", "../config.json", "has empty"),
        (f'"commit": "{COMMIT}"', '"commit": "ccccccc"', "is not a 40-hex commit"),
        (f'"sha256": "{SHA}"', f'"sha256": "{SHA[1:]}"', "has neither"),
        (COMMIT[:12] + '"', "d" * 12 + '"', "is not a 40-hex commit that begins with 'dddddddddddd'"),
        (f"sha256:{SHA}", f"sha256:{SHA}0", "is not sha256: and 64 hex digits"),
        ("b" * 64, "b" * 63, "is not two sha256 of 64 hex digits"),
    ],
)
def test_a_lock_with_unsafe_content_is_refused(old, new, words):
    with pytest.raises(ConfigError) as failure:
        parse_lock(format_lock(WHOLE).replace(old, new), "locks/A.json")
    assert words in str(failure.value)
    assert "locks/A.json" in str(failure.value)


def spec(**changes):
    values: dict[str, Any] = {
        "repo": "org/name",
        "revision": "main",
        "source": Source(kind="chosen", why="test"),
    }
    return CheckpointSpec(**(values | changes))


def test_a_lock_serves_the_pin_that_it_was_made_for():
    locked = Locked("main", MANIFEST, ("*",))
    assert from_lock(locked, spec()) == MANIFEST
    assert from_lock(locked, spec(revision="dev")) is None
    assert from_lock(locked, spec(repo="org/other")) is None
    assert from_lock(locked, spec(files=["*.json"])) is None
    assert from_lock(None, spec()) is None
    assert from_lock(Locked("d" * 40, MANIFEST), spec(revision="d" * 40)) is None


def test_a_lock_of_the_whole_tree_serves_any_pattern():
    found = from_lock(Locked("main", MANIFEST), spec(files=["*.json"]))
    assert found is not None
    assert [f.path for f in found.files] == ["config.json"]
