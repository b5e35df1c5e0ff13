"""The lab's hub, asked by the real huggingface_hub client."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import HfApi, errors, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.hf_api import RepoFile, RepoFolder

from sparkyard.lab.hub import Hub
from sparkyard.lab.hub_answers import Refusal, parse_range
from sparkyard.lab.hub_files import blob_id

REPO = "lab/small"
WEIGHTS = bytes(range(256)) * 4096
CONFIG = b'{"model_type": "tiny"}\n'


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    root = tmp_path / "repos" / REPO
    (root / "parts").mkdir(parents=True)
    (root / "config.json").write_bytes(CONFIG)
    (root / "parts" / "model.safetensors").write_bytes(WEIGHTS)
    with Hub(tmp_path / "repos") as running:
        yield running


@pytest.fixture
def api(hub: Hub) -> HfApi:
    return HfApi(endpoint=hub.url, token=False)


def fetch(hub: Hub, tmp_path: Path, file: str = "parts/model.safetensors") -> bytes:
    got = hf_hub_download(REPO, file, endpoint=hub.url, cache_dir=tmp_path / "cache", token=False)
    return Path(got).read_bytes()


def url(hub: Hub, file: str, revision: str = "main") -> str:
    return hf_hub_url(REPO, file, revision=revision, endpoint=hub.url)


def test_a_repository_is_told_at_a_commit_of_forty_digits(api: HfApi) -> None:
    info = api.model_info(REPO)
    assert info.sha
    assert len(info.sha) == 40
    assert api.repo_info(REPO, revision=info.sha).sha == info.sha
    assert [ref.target_commit for ref in api.list_repo_refs(REPO).branches] == [info.sha]
    assert [commit.commit_id for commit in api.list_repo_commits(REPO)] == [info.sha]


def test_the_commit_follows_the_content_and_nothing_else(api: HfApi, hub: Hub, tmp_path: Path) -> None:
    before = api.model_info(REPO).sha
    config = tmp_path / "repos" / REPO / "config.json"
    config.write_bytes(b"{}")
    changed = api.model_info(REPO).sha
    config.write_bytes(CONFIG)
    assert changed != before
    assert api.model_info(REPO).sha == before


def test_the_tree_has_git_ids_and_sha256(api: HfApi) -> None:
    rows = {row.path: row for row in api.list_repo_tree(REPO, recursive=True)}
    config, weights = rows["config.json"], rows["parts/model.safetensors"]
    assert isinstance(rows["parts"], RepoFolder)
    assert isinstance(config, RepoFile)
    assert isinstance(weights, RepoFile)
    assert (config.size, config.blob_id, config.lfs) == (len(CONFIG), blob_id(CONFIG), None)
    assert weights.lfs is not None
    assert weights.lfs.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert weights.lfs.size == weights.size == len(WEIGHTS)


def test_git_ids_are_those_of_git() -> None:
    assert blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_long_tree_comes_in_pages(tmp_path: Path) -> None:
    root = tmp_path / "repos" / REPO
    root.mkdir(parents=True)
    for number in range(7):
        (root / f"{number}.txt").write_text(str(number))
    with Hub(tmp_path / "repos", page=3) as hub:
        rows = list(HfApi(endpoint=hub.url, token=False).list_repo_tree(REPO, recursive=True))
        pages = [request for request in hub.requests if "/tree/" in request.path]
    assert [row.path for row in rows] == [f"{number}.txt" for number in range(7)]
    assert len(pages) == 3


def test_metadata_of_large_and_small_files(api: HfApi, hub: Hub) -> None:
    commit = api.model_info(REPO).sha
    small = get_hf_file_metadata(url(hub, "config.json"), token=False)
    large = get_hf_file_metadata(url(hub, "parts/model.safetensors"), token=False)
    assert (small.commit_hash, small.etag, small.size) == (commit, blob_id(CONFIG), len(CONFIG))
    assert (large.commit_hash, large.size) == (commit, len(WEIGHTS))
    assert large.etag == hashlib.sha256(WEIGHTS).hexdigest()
    assert "/cdn/" in large.location


def test_the_client_downloads_both_kinds(hub: Hub, tmp_path: Path) -> None:
    assert fetch(hub, tmp_path) == WEIGHTS
    assert fetch(hub, tmp_path, "config.json") == CONFIG


def test_ranges(hub: Hub) -> None:
    with httpx2.Client(follow_redirects=True) as client:
        place = url(hub, "parts/model.safetensors")
        middle = client.get(place, headers={"Range": "bytes=100-199"})
        tail = client.get(place, headers={"Range": f"bytes={len(WEIGHTS) - 5}-"})
        beyond = client.get(place, headers={"Range": f"bytes={len(WEIGHTS)}-"})
    assert (middle.status_code, middle.content) == (206, WEIGHTS[100:200])
    assert middle.headers["Content-Range"] == f"bytes 100-199/{len(WEIGHTS)}"
    assert (tail.status_code, tail.content) == (206, WEIGHTS[-5:])
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(WEIGHTS)}")


@pytest.mark.parametrize(
    ("header", "size", "wanted"),
    [("", 9, None), ("bytes=0-3", 9, (0, 3)), ("bytes=4-", 9, (4, 8)), ("bytes=-2", 9, (7, 8)), ("bytes=0-99", 9, (0, 8)),
     ("bytes=0-1,3-4", 9, None)],
)  # fmt: skip
def test_range_headers(header: str, size: int, wanted: tuple[int, int] | None) -> None:
    assert parse_range(header, size) == wanted


def test_a_range_outside_is_refused() -> None:
    with pytest.raises(Refusal):
        parse_range("bytes=9-", 9)


def test_what_is_not_there(api: HfApi, hub: Hub) -> None:
    commit = api.model_info(REPO).sha
    assert commit
    with pytest.raises(errors.RepositoryNotFoundError):
        api.model_info("lab/none")
    with pytest.raises(errors.RevisionNotFoundError):
        api.model_info(REPO, revision="0" * 40)
    with pytest.raises(errors.RevisionNotFoundError):
        api.model_info(REPO, revision=commit[:8])
    with pytest.raises(errors.RemoteEntryNotFoundError):
        get_hf_file_metadata(url(hub, "none.json"), token=False)
    hub.faults.set(prefixes=True)
    assert api.model_info(REPO, revision=commit[:8]).sha == commit


def test_gated_and_tokens(api: HfApi, hub: Hub) -> None:
    hub.faults.set(gated=[REPO])
    with pytest.raises(errors.GatedRepoError):
        api.model_info(REPO)
    hub.faults.clear()
    hub.faults.set(token="hf_right")
    with pytest.raises(errors.HfHubHTTPError):
        api.model_info(REPO)
    assert api.model_info(REPO, token="hf_right").sha
    assert [request.status for request in hub.requests][-2:] == [401, 200]
    hub.faults.set(denied=True)
    with pytest.raises(errors.HfHubHTTPError):
        api.model_info(REPO, token="hf_right")


def test_counted_answers_come_so_often_and_no_more(hub: Hub) -> None:
    hub.faults.set(busy=2, retry_after=7, errors=1, only="*/resolve/*")
    with httpx2.Client() as client:
        api = client.get(f"{hub.url}/api/models/{REPO}")
        answers = [client.get(url(hub, "config.json")) for _ in range(4)]
    assert api.status_code == 200
    assert [answer.status_code for answer in answers] == [429, 429, 500, 200]
    assert answers[0].headers["Retry-After"] == "7"


def test_dropped_connections_are_mended_by_the_client(hub: Hub, tmp_path: Path) -> None:
    hub.faults.set(drop_after=300_000, drops=2)
    assert fetch(hub, tmp_path) == WEIGHTS
    bodies = [request for request in hub.requests if request.method == "GET" and "/cdn/" in request.path]
    # The client writes in pieces of 10 MB, so of a small file each try begins anew.
    assert [request.sent for request in bodies] == [300_000, 300_000, len(WEIGHTS)]


def test_wrong_bytes_have_the_right_size(hub: Hub, tmp_path: Path) -> None:
    hub.faults.set(wrong=["parts/*"])
    got = fetch(hub, tmp_path)
    assert len(got) == len(WEIGHTS)
    assert got != WEIGHTS


def test_a_truncated_file_is_shorter_than_listed(hub: Hub, tmp_path: Path) -> None:
    hub.faults.set(truncated=["parts/*"])
    with httpx2.Client(follow_redirects=True) as client:
        assert len(client.get(url(hub, "parts/model.safetensors")).content) == len(WEIGHTS) // 2
    with pytest.raises(OSError, match=r"(?i)consistency|size"):
        fetch(hub, tmp_path)


def test_offline_answers_nothing(hub: Hub) -> None:
    hub.faults.set(offline=True)
    with httpx2.Client() as client, pytest.raises(httpx2.TransportError):
        client.get(url(hub, "config.json"))


def test_a_rate_is_kept(hub: Hub, tmp_path: Path) -> None:
    hub.faults.set(rate=2_000_000)
    began = time.monotonic()
    assert fetch(hub, tmp_path) == WEIGHTS
    assert time.monotonic() - began >= 0.9 * len(WEIGHTS) / 2_000_000


def test_faults_and_the_record_over_http(hub: Hub) -> None:
    with httpx2.Client(base_url=hub.url) as client:
        assert client.post("/lab/faults", json={"busy": 1}).json()["busy"] == 1
        assert client.get(f"/api/models/{REPO}").status_code == 429
        assert client.post("/lab/faults", json={"buzy": 1}).status_code == 400
        assert client.request("DELETE", "/lab/faults").json()["busy"] == 0
        seen = client.request("DELETE", "/lab/requests").json()
        assert [request["status"] for request in seen] == [429]
        assert client.get("/lab/requests").json() == []


def test_a_request_is_in_the_record_before_its_answer_leaves(hub: Hub) -> None:
    hub.faults.set(rate=1000)
    place = url(hub, "parts/model.safetensors")
    with httpx2.Client(follow_redirects=True) as client, client.stream("GET", place) as answer:
        next(answer.iter_raw(1))
        assert [request.status for request in hub.requests] == [302, 200]
        assert 0 < hub.requests[-1].sent < len(WEIGHTS)


def test_an_answer_that_goes_on_is_not_in_the_next_record(hub: Hub) -> None:
    hub.faults.set(rate=20_000)
    with httpx2.Client(follow_redirects=True) as client:
        with client.stream("GET", url(hub, "parts/model.safetensors")) as answer:
            next(answer.iter_raw(1))
            hub.faults.forget()
        client.get(url(hub, "config.json"))
    assert [request.path.rpartition("/")[2] for request in hub.requests] == ["config.json"]


def test_no_way_out_of_the_folder(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no")
    with httpx2.Client() as client:
        answer = client.get(f"{hub.url}/{REPO}/resolve/main/..%2F..%2F..%2Fsecret")
    assert answer.status_code == 404
