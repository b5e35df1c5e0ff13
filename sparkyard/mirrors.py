"""Other places for what a recipe names: git repositories and image registries behind a mirror. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """The URL or image reference with the longest prefix that ``mirrors`` knows replaced; itself when none fits.

    A prefix that ends in ``/`` stands for everything below it; any other one is a whole URL.
    """
    fitting = [
        prefix for prefix in mirrors if url == prefix or (prefix.endswith("/") and url.startswith(prefix))
    ]
    if not fitting:
        return url
    prefix = max(fitting, key=len)
    rest = url.removeprefix(prefix)
    return mirrors[prefix].rstrip("/") + "/" + rest if rest else mirrors[prefix]
