"""Image registries: which digest a tag has now, asked by the registry's HTTP API (version 2), anonymously."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from sparkyard.errors import StepFailed
from sparkyard.mirrors import mirrored
from sparkyard.pins import has_registry

ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
HUB = "docker.io"
HUB_HOST = "registry-1.docker.io"
LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?", re.I)
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Reference:
    """An image in a registry: host (with port), repository, and tag or digest."""

    host: str
    repository: str
    tag: str


def parse(reference: str) -> Reference:
    """The parts of a reference that names its registry. Raises ValueError for one that does not."""
    if not has_registry(reference):
        raise ValueError(f"{reference} does not name a registry")
    host, _, rest = reference.partition("/")
    path, at, tag = rest.partition("@")
    if not at:
        folder, slash, last = rest.rpartition("/")
        name, _, tag = last.partition(":")
        path = folder + slash + name
    if host in (HUB, f"index.{HUB}"):
        host = HUB_HOST
        path = path if "/" in path else f"library/{path}"
    return Reference(host, path, tag or "latest")


class Registry:
    """Asks registries; ``mirrors`` of the inventory stand in for some of them."""

    def __init__(self, mirrors: Mapping[str, str], timeout: float = 30.0) -> None:
        self._mirrors = mirrors
        self._timeout = timeout

    def digest(self, reference: str) -> str:
        """The digest (``sha256:…``) that a tag has now. Raises StepFailed, each cause in its own words."""
        place = mirrored(reference, self._mirrors)
        asked = parse(place)
        answer = self._manifest(asked, reference, plain=place != reference)
        if answer.status_code != 200:
            raise _refused(reference, asked, answer)
        told, found = (
            answer.headers.get("Docker-Content-Digest", ""),
            f"sha256:{hashlib.sha256(answer.content).hexdigest()}",
        )
        if told and told != found:
            raise StepFailed(f"{asked.host} says that {reference} is {told}, and what it gives is {found}")
        return found

    def _manifest(self, asked: Reference, reference: str, *, plain: bool) -> httpx2.Response:
        here = LOOPBACK.fullmatch(asked.host) is not None
        schemes = ("http",) if here else (("https", "http") if plain else ("https",))
        errors: list[str] = []
        with httpx2.Client(timeout=self._timeout, follow_redirects=True, trust_env=not here) as client:
            for scheme in schemes:
                url = f"{scheme}://{asked.host}/v2/{asked.repository}/manifests/{asked.tag}"
                try:
                    return self._get(client, url, asked, secure=scheme == "https")
                except (httpx2.HTTPError, OSError) as error:
                    errors.append(f"{url}: {error or type(error).__name__}")
        raise StepFailed(
            f"no answer from the registry {asked.host}",
            details=[f"asked for {reference}", *errors],
            next_step="connect this machine, or set `mirrors` in the inventory",
        )

    def _get(self, client: httpx2.Client, url: str, asked: Reference, *, secure: bool) -> httpx2.Response:
        headers = {"Accept": ACCEPT}
        answer = client.get(url, headers=headers)
        if answer.status_code == 401:
            token = _token(client, answer.headers.get("WWW-Authenticate", ""), asked, secure=secure)
            if token:
                answer = client.get(url, headers={**headers, "Authorization": f"Bearer {token}"})
        return answer


def _token(client: httpx2.Client, challenge: str, asked: Reference, *, secure: bool) -> str:
    """The token that a registry sends anybody for; empty when it wants a name and a password."""
    kind, _, rest = challenge.partition(" ")
    told = dict(CHALLENGE.findall(rest))
    realm = told.get("realm", "")
    if kind.lower() != "bearer" or not realm or (secure and urlsplit(realm).scheme != "https"):
        return ""
    query = {"service": told["service"]} if "service" in told else {}
    answer = client.get(
        realm, params={**query, "scope": told.get("scope", f"repository:{asked.repository}:pull")}
    )
    if answer.status_code != 200:
        return ""
    try:
        body = answer.json()
        return str(body.get("token") or body.get("access_token") or "")
    except (ValueError, AttributeError):
        return ""


def _refused(reference: str, asked: Reference, answer: httpx2.Response) -> StepFailed:
    status = answer.status_code
    if status == 404:
        return StepFailed(
            f"{asked.host} has no image {asked.repository}:{asked.tag}",
            details=[f"asked for {reference}"],
            next_step="correct the image's reference in the recipe",
        )
    if status in (401, 403):
        return StepFailed(
            f"{asked.host} does not give {asked.repository} to people without an account ({status})",
            next_step=f"write the reference with its digest: docker login {asked.host}, then docker buildx imagetools inspect {reference}",
        )
    if status == 429:
        return StepFailed(f"{asked.host} asks to wait (429)", next_step="type the same line again in an hour")
    return StepFailed(f"{asked.host} answered {status} to a question for {reference}")
