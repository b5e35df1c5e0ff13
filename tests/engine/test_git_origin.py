"""Where a clone came from, with the real git over HTTP: a renamed project's old address leads to the new one, and that is noted."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparkyard.actions_image import GitFetch, GitTree, MakeContext
from sparkyard.executors import EXECUTORS, git
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld
from tests.engine.local_nodes import surroundings

AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example")


class Renamed(SimpleHTTPRequestHandler):
    """Serves repositories as files; what was `/old/engine` is `/new/engine` now."""

    def do_GET(self) -> None:
        if self.path.startswith("/old/"):
            self.send_response(301)
            self.send_header("Location", self.path.replace("/old/", "/new/", 1))
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_told: object) -> None:
        """Keep quiet."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    handler = partial(Renamed, directory=str(tmp_path / "host"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def commit(tmp_path: Path) -> str:
    """The one commit of the repository below ``host/new/engine``."""

    def run(*words: str) -> str:
        done = subprocess.run(["git", *AUTHOR, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    work, bare = str(tmp_path / "work"), str(tmp_path / "host/new/engine")
    run("init", "--quiet", "--initial-branch=main", work)
    (tmp_path / "work" / "setup.py").write_text("x = 1\n")
    run("-C", work, "add", ".")
    run("-C", work, "commit", "--quiet", "--message", "one")
    run("clone", "--quiet", "--bare", work, bare)
    run("-C", bare, "update-server-info")
    return run("-C", work, "rev-parse", "HEAD")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StepWorld]:
    around = surroundings(tmp_path)
    yield StepWorld(
        around, Step("image", "x", "spark-1", "x", lambda _: Verdict("ok")), lambda _event: None, {}
    )
    around.close()


def origin_in_the_context(world: StepWorld, folder: Path, fetch: GitFetch) -> str:
    """What a build finds beside the checkout, after a fetch."""
    git.git_fetch(fetch, "spark-1", world)
    (folder / "recipe").mkdir()
    context = folder / "contexts" / f"x-{'0' * 12}"
    tree = GitTree(fetch.folder, fetch.commit, f"{context}/engine")
    make = MakeContext(str(folder / "recipe"), str(context), (tree,), "x-")
    EXECUTORS[MakeContext](make, "spark-1", world)
    assert (context / "engine" / "setup.py").is_file()
    return (context / "engine.origin").read_text()


@pytest.mark.parametrize(("asked", "came_from"), [("new", "new"), ("old", "new")])
def test_a_build_finds_where_its_source_came_from(world, host, commit, tmp_path, asked, came_from):
    url = f"{host}/{asked}/engine"
    told = origin_in_the_context(world, tmp_path, GitFetch(url, commit, str(tmp_path / "clone.git"), url))
    assert told == f"origin {host}/{came_from}/engine\ncommit {commit}\n"


def test_of_a_mirror_the_name_that_it_stands_for_is_noted(world, host, commit, tmp_path):
    url = "https://git.example/maker/engine.git"
    fetch = GitFetch(url, commit, str(tmp_path / "clone.git"), f"{host}/old/engine")
    told = origin_in_the_context(world, tmp_path, fetch)
    assert told == f"origin https://git.example/maker/engine\ncommit {commit}\n"
