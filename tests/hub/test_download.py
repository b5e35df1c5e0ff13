"""Downloads from the local hub through the real engine, scripts and hub client: whole, interrupted, damaged, refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparkyard.errors import SparkyardError
from sparkyard.executors import fetch as fetching
from sparkyard.hub import Hub as Client
from sparkyard.lab.hub import Hub
from sparkyard.patience import Patience
from tests.hub.checkpoints import REPO, Project, flip, make_repository, on_disk
from tests.machine.typed import until

BIG = 24_000_000
SIZES = {"config.json": 700, "model.safetensors": BIG, "sub/x y.bin": 12_000_000, "empty.txt": 0}


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(fetching, "PATIENCE", Patience(base=0.01))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))


@pytest.fixture
def hub(tmp_path):
    make_repository(tmp_path / "hub", SIZES)
    with Hub(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def second(hub, tmp_path):
    """The same repositories with a record of their own: connections of a killed run are not in it."""
    with Hub(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def project(tmp_path, hub):
    made = Project(tmp_path, hub.url)
    made.manifests()
    hub.faults.forget()  # what the lock asked is not the download's
    return made


def bodies(hub):
    """Bytes of files that the hub sent."""
    return sum(r.sent for r in hub.requests if r.path.startswith("/cdn/") or "/resolve/" in r.path)


def same(project, tmp_path):
    for name in SIZES:
        here, there = project.path(name).read_bytes(), (tmp_path / "hub" / REPO / name).read_bytes()
        assert hashlib.sha256(here).digest() == hashlib.sha256(there).digest(), name


def tree(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_twice_and_the_second_run_asks_the_hub_nothing(hub, project, tmp_path):
    assert project.run() == 0
    same(project, tmp_path)
    assert bodies(hub) == sum(SIZES.values())
    assert not (project.path() / ".incoming").exists()
    hub.faults.forget()
    assert project.run() == 0
    assert hub.requests == []
    assert {kind for kind, _ in project.kinds} == {"step-ok"}


def test_check_changes_nothing_and_names_the_download(hub, project, tmp_path):
    before = tree(tmp_path / "head") if (tmp_path / "head").exists() else []
    project.manifests()
    assert project.run(check=True) == 6
    assert (tree(tmp_path / "head") if (tmp_path / "head").exists() else []) == before
    assert bodies(hub) == 0
    [event] = [e for e in project.events if e.type == "step-would-change"]
    assert f"download 4 files, {sum(SIZES.values())} bytes" in event.data["actions"][0]


def test_a_flipped_byte_with_the_old_time_is_found_named_and_healed(hub, project, tmp_path):
    project.run()
    flip(project.path("model.safetensors"))
    hub.faults.forget()
    assert project.run() == 0
    same(project, tmp_path)
    assert "model.safetensors: content differs" in project.said
    assert bodies(hub) == BIG
    assert ("step-changed", "checkpoint:small@spark-1") in project.kinds


def test_a_touched_file_is_read_and_not_fetched(hub, project):
    project.run()
    os.utime(project.path("model.safetensors"))
    hub.faults.forget()
    assert project.run() == 0
    assert hub.requests == []
    assert project.run(check=True) == 0


def test_deep_reads_everything_and_heals_what_the_ledger_hides(hub, project, tmp_path):
    project.run()
    path = project.path("model.safetensors")
    flip(path)
    [ledger] = (tmp_path / "head" / "ledger").iterdir()
    seen = path.stat()
    lines = [line.split("\t") for line in ledger.read_text().splitlines()]
    forged = [
        [*f[:3], str(seen.st_mtime_ns), str(seen.st_ctime_ns), f[5]] if f[1] == str(seen.st_ino) else f
        for f in lines
    ]
    ledger.write_text("".join("\t".join(fields) + "\n" for fields in forged))
    assert project.run() == 0
    assert {kind for kind, _ in project.kinds} == {"step-ok"}
    assert project.run(deep=True) == 0
    same(project, tmp_path)
    assert "model.safetensors: content differs" in project.said


def test_a_missing_seal_or_file_and_a_wrong_size_are_healed(hub, project, tmp_path):
    project.run()
    project.path().with_name(project.path().name + ".seal.json").unlink()
    project.path("config.json").unlink()
    os.truncate(project.path("model.safetensors"), 5)
    assert project.run() == 0
    same(project, tmp_path)
    assert f"model.safetensors: 5 bytes, expected {BIG}" in project.said
    assert project.run(check=True) == 0


def test_other_files_are_reported_and_left(hub, project):
    project.run()
    project.path("mine.txt").write_text("mine")
    assert project.run() == 0
    assert "'mine.txt' is not in the listing, left alone" in project.said
    assert project.path("mine.txt").read_text() == "mine"


def test_a_link_where_a_folder_belongs_stops_the_run(hub, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    project.path().mkdir(parents=True)
    project.path("sub").symlink_to(tmp_path / "elsewhere")
    assert project.run() == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


# interruptions

KILLED = """
import sys
from pathlib import Path
from tests.hub.checkpoints import Project
Project(Path(sys.argv[1]), sys.argv[2]).run()
"""


def kill_midway(project, hub, tmp_path, after):
    """A download in a process of its own, killed when ``after`` bytes of model.safetensors are on disk."""
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), hub.url], cwd=root, stderr=subprocess.DEVNULL
    )
    part = project.path(".incoming/model.safetensors.part")
    try:
        until(lambda: child.poll() is not None or on_disk(part) > after)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -9


def test_after_a_kill_only_the_missing_bytes_are_fetched(hub, second, project, tmp_path):
    project.manifests()
    hub.faults.set(rate=1_500_000)
    kill_midway(project, hub, tmp_path, BIG // 2)
    left = sum(SIZES.values()) - sum(
        path.stat().st_blocks * 512 for path in project.path().rglob("*") if path.is_file()
    )
    project = Project(tmp_path, second.url)
    assert project.run() == 0
    same(project, tmp_path)
    assert bodies(second) <= left + BIG // 100 + 12_000_000 // 100 + 100_000
    assert "bytes are here from an earlier run" in project.said
    assert not (project.path() / ".incoming").exists()


def test_after_a_cancel_the_next_run_goes_on(hub, second, project, tmp_path):
    project.manifests()
    hub.faults.set(rate=1_000_000)
    around = project.surroundings()

    def stop_when_it_moves():
        part = project.path(".incoming/model.safetensors.part")
        until(lambda: on_disk(part) > 2_000_000)
        around.interrupted.set()
        around.stop.set()

    stopper = threading.Thread(target=stop_when_it_moves)
    stopper.start()
    assert project.run(around=around) == 130
    stopper.join()
    project = Project(tmp_path, second.url)
    assert project.run() == 0
    same(project, tmp_path)
    assert bodies(second) < sum(SIZES.values()) - 1_500_000


def test_a_map_of_other_content_is_not_trusted(hub, project, tmp_path):
    part = project.path(".incoming/model.safetensors.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * BIG)
    part.with_name(part.name + ".json").write_text(
        '{"version": 1, "size": 1, "digest": "x", "done": [[0, 1]]}'
    )
    (part.parent / "orphan.part").write_bytes(b"x")
    (part.parent / ".cache" / "huggingface").mkdir(parents=True)
    (part.parent / ".cache" / "huggingface" / "a.incomplete").write_bytes(b"x")
    assert project.run() == 0
    same(project, tmp_path)
    assert "removed 2 orphaned partial files" in project.said
    assert not (project.path() / ".incoming").exists()


def test_a_partial_file_with_wrong_bytes_is_thrown_away_and_fetched_once_more(hub, project, tmp_path):
    sha256 = next(f.sha256 for f in project.manifest.files if f.path == "model.safetensors")
    part = project.path(".incoming/model.safetensors.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    part.with_name(part.name + ".json").write_text(
        f'{{"version": 1, "size": {BIG}, "digest": "sha256:{sha256}", "done": [[0, 1000]]}}'
    )
    assert project.run() == 0
    same(project, tmp_path)
    assert "thrown away, fetched once more" in project.said


# faults of the hub


def test_dropped_connections_go_on_in_mid_file(hub, project, tmp_path):
    hub.faults.set(drop_after=3_000_000, drops=4)
    assert project.run() == 0
    same(project, tmp_path)
    assert bodies(hub) == sum(SIZES.values())
    assert "goes on in" in project.said


def test_errors_of_the_hub_are_asked_again(hub, project, tmp_path):
    project.manifests()
    hub.faults.set(errors=2)
    assert project.run() == 0
    same(project, tmp_path)


def test_a_rate_limit_waits_as_told_and_says_so(hub, project, tmp_path):
    project.manifests()
    hub.faults.set(busy=2, retry_after=0.2)
    assert project.run() == 0
    same(project, tmp_path)
    assert "limits the rate (429): waiting 0.2 s as it asks" in project.said


def test_a_rate_limit_while_listing_is_said_too(hub):
    hub.faults.set(busy=1, retry_after=0.1)
    said: list[str] = []
    waits: list[float] = []
    assert Client(hub.url, say=said.append, wait=waits.append).manifest(REPO, "main").files
    assert waits == [0.1]
    assert "rate limit (429); asked again in 0.1 s" in said[0]


def refused(project):
    assert project.run() == 1
    [event] = [e for e in project.events if e.type == "step-failed"]
    return f"{event.message} {event.data}"


@pytest.mark.parametrize(
    ("faults", "says"),
    [({"busy": -1, "retry_after": 0.01}, "limits the rate (429)"), ({"errors": -1}, "answered 500 for")],
)
def test_a_hub_that_answers_is_never_called_no_network(hub, project, faults, says):
    project.manifests()
    hub.faults.set(**faults)
    said = refused(project)
    assert says in said
    assert "no network" not in said


def test_wrong_bytes_twice_end_the_run_and_leave_no_such_file(hub, project):
    hub.faults.set(wrong=("model.safetensors",))
    assert "model.safetensors: content differs" in refused(project)
    assert not project.path("model.safetensors").exists()
    assert not project.path(".incoming/model.safetensors.part").exists()
    hub.faults.clear()
    assert project.run() == 0


def test_a_file_shorter_than_listed_is_named(hub, project):
    project.manifests()
    hub.faults.set(truncated=("model.safetensors",))
    words = refused(project)
    assert f"the hub sends {BIG // 2} bytes, its listing says {BIG}" in words


def test_no_network_says_how_much_is_here(hub, project):
    project.run()
    project.path("model.safetensors").unlink()
    hub.faults.set(offline=True)
    words = refused(project)
    assert "no network to" in words
    assert "0 of its 1 files are here" in words


def test_a_gated_repository_says_where_to_accept(hub, project):
    project.manifests()
    hub.faults.set(gated=(REPO,))
    words = refused(project)
    assert "is gated: its licence is not accepted" in words
    assert f"accept the licence of {REPO} at {hub.url}/{REPO}" in words


def message(call):
    with pytest.raises(SparkyardError) as failure:
        call()
    return str(failure.value)


@pytest.mark.parametrize(
    ("repo", "revision", "faults", "words"),
    [
        (REPO, "main", {"gated": (REPO,)}, "is gated"),
        (REPO, "dev", {}, "is there, its revision dev is not"),
        (REPO, "0" * 12, {}, "is no branch, tag or commit"),
        ("example/none", "main", {}, "no token was given"),
        (REPO, "main", {"denied": True}, "wants a token"),
        (REPO, "main", {"offline": True}, "no network to"),
        (REPO, "main", {"errors": -1}, "answered 500"),
        (REPO, "main", {"busy": -1, "retry_after": 9999}, "asks to wait 9999 s"),
    ],
)
def test_each_refusal_has_its_own_words(hub, repo, revision, faults, words):
    hub.faults.set(**faults)
    client = Client(hub.url, wait=lambda _: None)
    shown = message(lambda: client.manifest(repo, revision))
    assert words in shown
    assert "next: " in shown


def test_a_token_is_sent_and_never_shown(hub, project, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_planted")
    hub.faults.set(token="hf_planted")
    assert project.run() == 0, project.said
    assert {(request.path.startswith("/cdn/"), request.token) for request in hub.requests} == {
        (True, False),
        (False, True),
    }
    hub.faults.set(token="other")
    assert "refused the token" in message(lambda: Client(hub.url, wait=lambda _: None).manifest(REPO, "main"))
    everything = project.said + "".join(p.read_text(errors="replace") for p in project.folder.rglob("*.json"))
    assert "hf_planted" not in everything


def test_a_short_commit_is_completed(hub):
    client = Client(hub.url, wait=lambda _: None)
    whole = client.commit(REPO, "main")
    assert client.commit(REPO, whole[:8]) == whole


def test_a_full_listing_comes_page_by_page(tmp_path):
    make_repository(tmp_path / "hub", {f"f{number}.json": 10 + number for number in range(23)})
    with Hub(tmp_path / "hub", page=5) as hub:
        assert len(Client(hub.url).manifest(REPO, "main").files) == 23


# disk


def test_too_little_room_is_refused_before_the_first_byte(hub, project):
    project.limits(disk=10**15)
    assert project.run() == 1
    assert bodies(hub) == 0
    assert "needed" in project.said
    project.limits(disk=0)
    assert project.run() == 0
    project.limits(disk=10**15)
    assert project.run() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_fills_up_on_the_way(hub, second, project, tmp_path):
    project.manifests()
    disk = tmp_path / "head" / "models"
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)], check=True)
    try:
        hub.faults.set(rate=2_000_000)
        around = project.surroundings()

        def fill():
            part = project.path(".incoming/model.safetensors.part")
            until(part.exists)
            with (disk / "other").open("wb") as stream:
                stream.write(bytes(20_000_000))

        filler = threading.Thread(target=fill)
        filler.start()
        assert project.run(around=around) == 1
        filler.join()
        assert "is full" in project.said
        (disk / "other").unlink()
        project = Project(tmp_path, second.url)
        assert project.run() == 0
        same(project, tmp_path)
        assert bodies(second) < sum(SIZES.values())
    finally:
        subprocess.run(["umount", str(disk)], check=True)
