"""Which names hold secrets, before a recipe has said so."""

from __future__ import annotations

import re

_SECRET = re.compile(r"(^|_)(api_?key|token|secret|password)$", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a variable of this name is masked wherever it is shown: ``HF_TOKEN``, ``api_key``."""
    return _SECRET.search(name) is not None
