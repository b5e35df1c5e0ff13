"""Mirrors: the longest prefix is replaced, and wrong ones are refused by name."""

import pytest

from sparkyard import load
from sparkyard.errors import ConfigError
from sparkyard.mirrors import mirrored
from tests.unit.projects import hosts, write_project

MIRRORS = {
    "https://github.com/": "/srv/git",
    "https://github.com/one/": "file:///srv/one/",
    "https://github.com/one/whole": "/srv/whole.git",
    "nvcr.io/": "127.0.0.1:5000/",
    "docker.io/library/": "192.0.2.1:5000/hub",
}


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/two/repo", "/srv/git/two/repo"),
        ("https://github.com/one/repo", "file:///srv/one/repo"),
        ("https://github.com/one/whole", "/srv/whole.git"),
        ("https://github.com/one/whole2", "file:///srv/one/whole2"),
        ("https://github.community/x/y", "https://github.community/x/y"),
        ("nvcr.io/nvidia/pytorch:26.07-py3", "127.0.0.1:5000/nvidia/pytorch:26.07-py3"),
        ("docker.io/library/python@sha256:1", "192.0.2.1:5000/hub/python@sha256:1"),
        ("quay.io/x", "quay.io/x"),
    ],
)
def test_the_longest_prefix_is_replaced(url, place):
    assert mirrored(url, MIRRORS) == place


def inventory(folder, text, more=()):
    write_project(folder, edits=[hosts("    lane: A\n", f"    lane: A\n{text}"), *more])
    return load.load_inventory(folder / "inventory/my", environ={}, sets=())


def test_mirrors_are_read_whole(tmp_path):
    found = inventory(tmp_path, "    mirrors: {https://github.com/: /srv/git, nvcr.io/: '127.0.0.1:5000'}\n")
    assert found.mirrors == {"https://github.com/": "/srv/git", "nvcr.io/": "127.0.0.1:5000"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mirrors: [a]", "a mapping of prefix to replacement is expected"),
        ("mirrors: {github.com: /srv}", "a prefix ends in a slash"),
        ("mirrors: {nvcr.io/: srv git}", "an absolute folder, a URL or host:port is expected"),
        ("mirrors: {nvcr.io/: ../git}", "an absolute folder, a URL or host:port is expected"),
        ("mirrors: {nvcr.io/: 5}", "text is expected"),
    ],
)
def test_wrong_mirrors_are_refused(tmp_path, text, words):
    with pytest.raises(ConfigError) as failure:
        inventory(tmp_path, f"    {text}\n")
    assert words in str(failure.value)
    assert "hosts.yml:4" in str(failure.value)


def test_mirrors_of_one_node_are_refused(tmp_path):
    edit = hosts("          rank: 1\n", "          rank: 1\n          mirrors: {nvcr.io/: 192.0.2.1}\n")
    with pytest.raises(ConfigError, match="1 fault") as failure:
        inventory(tmp_path, "", [edit])
    assert "not the same on every node" in str(failure.value)
