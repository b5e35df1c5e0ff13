"""The Hub: what a revision is, which files it holds, where they are fetched. The only importer of huggingface_hub.

As a program (``python -m sparkyard.hub``) it fetches files by the client's own way, told on standard input; a process of its own
because a stalled or cancelled transfer of the client can only be ended from outside.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import httpx2
from huggingface_hub import HfApi, constants, get_token, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

from sparkyard.errors import StepFailed
from sparkyard.hub_refusals import Refusal, RevisionMissing
from sparkyard.manifest import COMMIT, is_content, refuse_unsafe, wanted
from sparkyard.model import Manifest, RemoteFile
from sparkyard.patience import Patience, Wait, told_to_wait, waiting

PUBLIC = "https://huggingface.co"
SHORT = re.compile(r"[0-9a-f]{7,39}")
Answer = TypeVar("Answer")
logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its warnings would stand between our lines


def endpoint_of(given: str | None) -> str:
    """The hub to ask: as given (the inventory), else HF_ENDPOINT, else the public one."""
    return (given or constants.ENDPOINT).rstrip("/")


class Hub:
    """One hub, asked with the person's token (HF_TOKEN, or the token file of ``hf auth login``).

    Args:
        endpoint: None for HF_ENDPOINT or the public hub.
        say: gets one line when it waits.
        wait: sleeps; raises Interrupted when the run is cancelled.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        say: Callable[[str], None] = lambda line: None,
        wait: Wait | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.endpoint = endpoint_of(endpoint)
        self._api = HfApi(endpoint=self.endpoint)
        self._say = say
        self._wait = wait or waiting(threading.Event())
        self._patience = patience or Patience()

    @property
    def public(self) -> bool:
        return self.endpoint == PUBLIC

    def commit(self, repo: str, revision: str) -> str:
        """The 40-hex commit of a branch, tag, commit or the first 7 or more letters of one.

        Raises StepFailed, each cause with its own message, and Interrupted.
        """
        try:
            sha = self._ask(
                lambda: self._api.model_info(repo, revision=revision, timeout=30).sha, repo, revision
            )
        except RevisionMissing:
            if not SHORT.fullmatch(revision):
                raise
            return self._commit_by_prefix(repo, revision)
        if not COMMIT.fullmatch(sha or ""):
            raise StepFailed(f"{self.endpoint} gave no commit for {repo}@{revision}, but {sha!r}")
        return str(sha)

    def _commit_by_prefix(self, repo: str, prefix: str) -> str:
        found = sorted({c for c in self._commits(repo, prefix) if c.startswith(prefix)})
        if len(found) == 1:
            return found[0]
        seen = f"fits {len(found)} commits" if found else "is no branch, tag or commit on any branch"
        raise RevisionMissing(
            f"{prefix} {seen} of {repo}",
            details=found,
            next_step="write the full 40-hex commit as `revision`",
        )

    def _commits(self, repo: str, asked: str) -> list[str]:
        """The commits of every branch and tag."""
        refs = self._ask(lambda: self._api.list_repo_refs(repo), repo, asked)
        names = [*(ref.name for ref in (*refs.branches, *refs.tags)), *(ref.ref for ref in refs.converts)]
        heads = [ref.target_commit for ref in (*refs.branches, *refs.tags, *refs.converts)]
        for name in names:
            log = self._ask(lambda name=name: self._api.list_repo_commits(repo, revision=name), repo, name)  # type: ignore[misc]
            heads += [commit.commit_id for commit in log]
        return heads

    def manifest(self, repo: str, revision: str, patterns: Sequence[str] = ("*",)) -> Manifest:
        """The wanted files of a revision, with the sha256 of large files and the git blob id of small ones.

        Raises StepFailed for a listing with unsafe paths and for a pattern that matches nothing, else as ``commit``.
        """
        commit = revision if COMMIT.fullmatch(revision) else self.commit(repo, revision)
        tree = self._ask(
            lambda: list(self._api.list_repo_tree(repo, revision=commit, recursive=True)), repo, revision
        )
        files = tuple(_remote_file(entry) for entry in tree if isinstance(entry, RepoFile))
        named = f"{repo}@{commit[:12]}"
        refuse_unsafe(files, named)
        return Manifest(repo, commit, wanted(files, patterns, named))

    def url(self, manifest: Manifest, file: RemoteFile) -> str:
        """Where a file is fetched; may redirect."""
        return hf_hub_url(manifest.repo, file.path, revision=manifest.commit, endpoint=self.endpoint)

    def headers(self) -> dict[str, str]:
        """The headers of every request, with the token when there is one. Never shown."""
        return {**build_hf_headers(library_name="sparkyard"), "Accept-Encoding": "identity"}

    def refusal(self, response: httpx2.Response, manifest: Manifest) -> StepFailed:
        """What a response that is not a file means."""
        try:
            hf_raise_for_status(response)
        except (HfHubHTTPError, OSError) as error:
            return explained(error, manifest.repo, manifest.commit, self.endpoint)
        return StepFailed(
            f"{self.endpoint} answered {response.status_code} where a file of {manifest.repo} was expected"
        )

    def read(self, manifest: Manifest, file: RemoteFile, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes of a small file, compared with its hash, or those from ``start`` up to ``stop`` of any file, as they come.

        Raises StepFailed, each cause with its own message, also for bytes that are not what the listing says.
        """
        last = (file.size if stop is None else stop) - 1
        headers = {**self.headers(), "Range": f"bytes={start}-{last}"} if last >= start else self.headers()

        def get() -> bytes:
            with httpx2.Client(follow_redirects=True, timeout=60) as client:
                response = client.get(self.url(manifest, file), headers=headers)
            hf_raise_for_status(response)
            return response.content if response.status_code == 206 else response.content[start : last + 1]

        content = self._ask(get, manifest.repo, manifest.commit)
        whole = (start, last) == (0, file.size - 1)
        if len(content) != last + 1 - start or (whole and not is_content(file, content)):
            raise StepFailed(
                f"{self.endpoint} gave other bytes of {file.path} than its listing of {manifest.repo} says"
            )
        return content

    def _ask(self, question: Callable[[], Answer], repo: str, revision: str) -> Answer:
        """Ask; wait when told to; try again a few times when the hub or the network fails."""
        failures = 0
        while True:
            try:
                return question()
            except (HfHubHTTPError, httpx2.HTTPError, OSError) as error:
                seconds = self._pause(error, failures)
                if seconds is None:
                    raise explained(error, repo, revision, self.endpoint) from error
                if not rate_limited(error):
                    failures += 1
                self._say(f"{self.endpoint}: {_short(error)}; asked again in {seconds:g} s")
            self._wait(seconds)

    def _pause(self, error: Exception, failures: int) -> float | None:
        """Seconds to wait before asking again; None when asking again is no use."""
        if rate_limited(error):
            assert isinstance(error, HfHubHTTPError)
            told = told_to_wait(error.response.headers)
            seconds = self._patience.pause(5) if told is None else told
            return seconds if seconds <= self._patience.longest else None
        passing = isinstance(error, httpx2.TransportError) or (
            isinstance(error, HfHubHTTPError) and _status(error) >= 500
        )
        return self._patience.pause(failures + 1) if passing and failures + 1 < self._patience.tries else None


def _remote_file(entry: RepoFile) -> RemoteFile:
    if entry.lfs is not None:
        return RemoteFile(entry.path, entry.lfs.size, sha256=entry.lfs.sha256)
    return RemoteFile(entry.path, entry.size, blob=entry.blob_id)


def _status(error: Exception) -> int:
    response = getattr(error, "response", None)
    return 0 if response is None else int(response.status_code)


def rate_limited(error: Exception) -> bool:
    return _status(error) == 429


def _short(error: Exception) -> str:
    if rate_limited(error):
        return "rate limit (429)"
    return f"error {_status(error)}" if _status(error) else f"no answer ({type(error).__name__})"


def explained(error: Exception, repo: str, revision: str, endpoint: str) -> StepFailed:
    """What an error of the client means, in words for people. Gated comes before not-found: its class is a kind of that."""
    refusal = Refusal(repo, revision, endpoint, token=bool(get_token()))
    kinds: tuple[tuple[type[Exception], Callable[[], StepFailed]], ...] = (
        (GatedRepoError, refusal.gated),
        (DisabledRepoError, refusal.disabled),
        (RevisionNotFoundError, refusal.no_revision),
        (RemoteEntryNotFoundError, refusal.no_file),
        (OfflineModeIsEnabled, refusal.offline),
    )
    for kind, words in kinds:
        if isinstance(error, kind):
            return words()
    if isinstance(error, RepositoryNotFoundError) and _status(error) != 401:
        return refusal.not_found()
    if status := _status(error):
        headers = error.response.headers if isinstance(error, HfHubHTTPError) else {}
        return refusal.by_status(status, told_to_wait(headers))
    return refusal.no_network(str(error))


def fetch_by_client(order: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
    """Fetch the files of an order by the client's own way (Xet when the hub offers it), telling of bytes and files.

    ``order``: repo, commit, endpoint, folder, files (paths).
    """
    logger = logging.getLogger("huggingface_hub")
    logger.setLevel(logging.WARNING)
    logger.handlers[:] = [_Telling(tell)]
    for path in order["files"]:
        try:
            hf_hub_download(
                order["repo"],
                path,
                revision=order["commit"],
                endpoint=order["endpoint"],
                local_dir=order["folder"],
                tqdm_class=_counter(tell),
            )
        except Exception as error:  # told to the other side, which knows what to do
            fault = explained(error, order["repo"], order["commit"], order["endpoint"])
            tell(
                {
                    "error": fault.message,
                    "next": fault.next_step,
                    "path": path,
                    "errno": getattr(error, "errno", None),
                }
            )
            return
        tell({"file": path})


class _Telling(logging.Handler):
    """Hands the client's warnings (that it waits, that it tries again) to the other side."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell({"said": record.getMessage()})


def _counter(tell: Callable[[dict[str, Any]], None]) -> Any:
    """A progress bar that tells instead of drawing."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with the client

    class Counter(tqdm):  # type: ignore[misc]
        def __init__(self, *words: Any, **settings: Any) -> None:
            settings.pop("name", None)
            super().__init__(*words, **{**settings, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            tell({"bytes": int(n or 0)})
            return None

    return Counter


def main() -> None:
    """Read an order from standard input, fetch, tell in JSON lines."""

    def tell(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)  # the answer

    fetch_by_client(json.load(sys.stdin), tell)
    tell({"done": True})


if __name__ == "__main__":
    main()
