"""What a person must not set for a whole lane, because it is each node's own or is found anew at every start."""

from __future__ import annotations

import re

from sparkyard.env_dialects import WIRING

_GID = "GID indexes are discovered at each start; take it out"
_HCA = "HCAs are each node's own; set its link.hcas"
PER_NODE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(.*_)?GID(_?(INDEX|IDX))?", re.IGNORECASE), _GID),
    (re.compile(r"(.*_)?HCAS?|.*_RDMA_DEVICES?|.*_IB_DEVICES?", re.IGNORECASE), _HCA),
)
EMPTY = "empty is not unset for its reader; leave it out"


def per_node(name: str) -> str:
    """Why a variable or setting of this name cannot be set for all nodes; nothing when it can."""
    return next((why for pattern, why in PER_NODE if pattern.fullmatch(name)), "")


def env_fault(name: str, value: object) -> str:
    """Why a person must not give an engine this variable; nothing when they may. None takes a variable of the recipe away."""
    if value is None:
        return ""
    return per_node(name) or (EMPTY if value == "" and WIRING.match(name) else "")
