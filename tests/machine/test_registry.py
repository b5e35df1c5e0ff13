"""Digests from a real registry (Debian's docker-registry) with an image that a real Docker engine pushed."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkyard.errors import StepFailed
from sparkyard.registry import Reference, Registry, parse
from tests.machine.docker_engine import DockerEngine, running
from tests.machine.typed import until
from tests.ports import free_port

pytestmark = pytest.mark.machine
PASSWORDS = "person:$2y$05$Yp4ohzUjGeGfQJzDrvdW5OZ8dVGTyYmyyo0sUFyRSnSSfTMZYqbkC\n"


@contextlib.contextmanager
def serving(folder: Path, more: str = "") -> Iterator[str]:
    """A registry on loopback; its host and port."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed")
    host = f"127.0.0.1:{free_port()}"
    folder.mkdir()
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\nhttp: {{addr: '{host}'}}\n{more}"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
    try:
        until(lambda: answers(host) or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield host
    finally:
        process.terminate()
        process.wait()


def answers(host: str) -> bool:
    address, _, port = host.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((address, int(port)), 10):
        return True
    return False


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Iterator[DockerEngine]:
    with running(tmp_path_factory.mktemp("engine")) as made:
        made.add_image("base:1")
        made.add_image("base:2", filler=b"two")
        yield made


@pytest.fixture
def registry(tmp_path) -> Iterator[str]:
    with serving(tmp_path / "registry") as host:
        yield host


def push(engine: DockerEngine, image: str, reference: str) -> str:
    """Push, and what the engine says that it pushed."""
    engine.docker("tag", image, reference)
    said = engine.docker("push", reference)
    return next(
        word for line in said.splitlines() if "digest:" in line for word in line.split() if "sha256:" in word
    )


def test_the_digest_is_the_one_that_was_pushed_and_can_be_pulled(engine, registry):
    pushed = push(engine, "base:1", f"{registry}/maker/base:26.07-py3")
    digest = Registry({}).digest(f"{registry}/maker/base:26.07-py3")
    assert digest == pushed
    engine.docker("pull", f"{registry}/maker/base@{digest}")


def test_a_tag_that_moved_has_another_digest(engine, registry):
    first = push(engine, "base:1", f"{registry}/maker/base:1")
    assert Registry({}).digest(f"{registry}/maker/base:1") == first
    second = push(engine, "base:2", f"{registry}/maker/base:1")
    assert Registry({}).digest(f"{registry}/maker/base:1") == second != first


def test_a_mirror_answers_for_another_registry(engine, registry):
    pushed = push(engine, "base:1", f"{registry}/hub/library/python:3.12")
    mirrors = {"nvcr.io/": f"{registry}/elsewhere/", "docker.io/": f"{registry}/hub/"}
    assert Registry(mirrors).digest("docker.io/library/python:3.12") == pushed


@pytest.mark.parametrize(
    ("name", "words"), [("maker/none:1", "has no image maker/none:1"), ("maker/base:9", "has no image")]
)
def test_what_is_not_there_is_named(engine, registry, name, words):
    push(engine, "base:1", f"{registry}/maker/base:1")
    with pytest.raises(StepFailed, match=words):
        Registry({}).digest(f"{registry}/{name}")


def test_a_registry_that_wants_an_account_is_told(tmp_path):
    passwords = tmp_path / "passwords"
    passwords.write_text(PASSWORDS)
    closed = f"auth: {{htpasswd: {{realm: r, path: {passwords}}}}}\n"
    refused = pytest.raises(StepFailed, match="to people without an account")
    with serving(tmp_path / "closed", closed) as host, refused:
        Registry({}).digest(f"{host}/maker/base:1")


def test_no_answer_is_told_with_what_was_asked():
    with pytest.raises(StepFailed) as failure:
        Registry({}).digest(f"127.0.0.1:{free_port()}/maker/base:1")
    assert "no answer from the registry 127.0.0.1:" in str(failure.value)
    assert "set `mirrors`" in str(failure.value)


class Tokens(http.server.BaseHTTPRequestHandler):
    """A registry and its token server in one: what the public ones ask of anybody."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""

    def do_GET(self) -> None:
        host = self.headers["Host"]
        if self.path.startswith("/token?service=here&scope=repository%3Amaker%2Fbase%3Apull"):
            self._send(200, json.dumps({"token": "for-anybody"}).encode(), {})
        elif self.headers.get("Authorization") == "Bearer for-anybody":
            self._send(200, b'{"schemaVersion": 2}', {})
        else:
            realm = f'Bearer realm="http://{host}/token",service="here",scope="repository:maker/base:pull"'
            self._send(401, b"", {"WWW-Authenticate": realm})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def test_a_token_for_anybody_is_fetched_as_the_challenge_says():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        digest = Registry({}).digest(f"127.0.0.1:{server.server_address[1]}/maker/base:1")
        server.shutdown()
    assert digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("nvcr.io/nvidia/pytorch:26.07-py3", Reference("nvcr.io", "nvidia/pytorch", "26.07-py3")),
        ("ghcr.io/a/b/c", Reference("ghcr.io", "a/b/c", "latest")),
        ("docker.io/python:3", Reference("registry-1.docker.io", "library/python", "3")),
        ("localhost:5000/x:1", Reference("localhost:5000", "x", "1")),
        ("nvcr.io/a/b@sha256:00", Reference("nvcr.io", "a/b", "sha256:00")),
    ],
)
def test_references_have_parts(reference, parts):
    assert parse(reference) == parts


def test_a_reference_without_a_registry_has_none():
    with pytest.raises(ValueError, match="does not name a registry"):
        parse("sparkyard-lab/engine-base:latest")
