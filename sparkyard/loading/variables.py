"""The variables that an inventory may set, what each may hold, and why others are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkyard.loading import kinds
from sparkyard.loading.marked import UNREADABLE, Faults, Marked, dotted
from sparkyard.loading.phrases import describe, did_you_mean, quoted, unknown
from sparkyard.loading.wiring import per_node

LANE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
LINK = ("address", "interface", "hcas")
LINK_MORE = ("mtu",)
"""Keys of a link that may be left out."""
PRIORITY = "ansible_group_priority"


def _lane(value: object) -> str:
    if fault := kinds.text(value):
        return fault
    good = LANE_NAME.fullmatch(str(value))
    return "" if good else f"a lane's name is letters, digits, _ and -, found {quoted(str(value))}"


SCALARS: Mapping[str, kinds.Check] = {
    "lane": _lane,
    "revert_to": _lane,
    "root": kinds.folder,
    "models": kinds.folder,
    "rank": kinds.whole(0, 63),
    "hub_endpoint": kinds.url,
    "lab": kinds.flag,
    "stand_in": kinds.flag,
    "ansible_connection": kinds.choice("local", "ssh"),
    "ansible_host": kinds.word,
    "ansible_port": kinds.whole(1, 65535),
    "ansible_user": kinds.word,
    "ansible_ssh_private_key_file": kinds.path,
    "ansible_python_interpreter": kinds.text,
}
KNOWN = (*SCALARS, "link", "peer_hcas", "lanes", "mirrors", PRIORITY)
OVERRIDABLE = ("root", "models", "hub_endpoint", "revert_to")
"""Variables of the whole inventory that the environment and ``--set`` may replace, besides the lane's settings."""

_SSH_CONFIG = "put it below Host NODE in ~/.ssh/config"
_NO_PASSWORDS = "log in with a key instead (ssh-copy-id)"
_NO_ROOT = "sparkyard never becomes root"
_KEYS_CHECKED = "host keys are always checked (invoke trust)"
_REFUSED: tuple[tuple[str, str], ...] = (
    (r"ansible_(ssh_)?pass(word)?", _NO_PASSWORDS),
    (r"ansible_(become|sudo|su)(_.*)?", _NO_ROOT),
    (r"ansible_(ssh_)?host_key_checking", _KEYS_CHECKED),
    (r"ansible_ssh_(host|port|user)", "an old name; write ansible_{last}"),
    (
        r"ansible_(ssh|scp|sftp)_(common_|extra_)?(args|executable|transfer_method|retries|pipelining)",
        _SSH_CONFIG,
    ),
    (
        r"ansible_(remote_tmp|shell_.*|pipelining|timeout|control_.*)",
        "sparkyard does not use it; delete the line",
    ),
)


def check_variables(variables: Mapping[str, Marked], key: str, faults: Faults) -> None:
    """Refuse unknown names and wrong values in one set of variables, wherever it stands."""
    for name, value in variables.items():
        where = dotted(key, name)
        if _refuse_open(value, where, faults):
            continue
        if name in SCALARS:
            _check(value, where, SCALARS[name], faults)
        elif name == "link":
            _link(value, where, faults)
        elif name == "peer_hcas":
            _peer_hcas(value, where, faults)
        elif name == "lanes":
            _lanes(value, where, faults)
        elif name == "mirrors":
            _mirrors(value, where, faults)
        else:
            faults.at(value, where, _refusal(name))


def _check(value: Marked, key: str, check: kinds.Check, faults: Faults) -> None:
    if value.value is not UNREADABLE and (fault := check(value.plain())):
        faults.at(value, key, fault)


def _refuse_open(value: Marked, key: str, faults: Faults) -> bool:
    """Refuse placeholders and Jinja in every text below; whether there were any."""
    found = [(where, leaf, kinds.left_open(leaf.value)) for where, leaf in value.leaves(key)]
    for where, leaf, fault in found:
        if fault:
            faults.at(leaf, where, fault)
    return any(fault for _, _, fault in found)


def _refusal(name: str) -> str:
    if name == PRIORITY:
        return "works only among a group's vars in hosts.yml"
    if reason := per_node(name):
        return reason
    for pattern, reason in _REFUSED:
        if re.fullmatch(pattern, name):
            return f"not supported: {reason.format(last=name.rsplit('_', 1)[-1])}"
    if name.startswith("ansible_") and not did_you_mean(name, KNOWN, cutoff=0.85):
        return "not supported: sparkyard does not use it; delete the line"
    fault = unknown("variable", name, KNOWN)
    return fault if "(" in fault else f"{fault}; docs/inventory.md lists them"


def _link(value: Marked, key: str, faults: Faults) -> None:
    if not isinstance(value.value, dict):
        if value.value is not UNREADABLE:
            faults.at(
                value, key, f"a mapping of {', '.join(LINK)} is expected, found {describe(value.value)}"
            )
        return
    checks: Mapping[str, kinds.Check] = {
        "address": kinds.ipv4,
        "interface": kinds.word,
        "hcas": _hcas,
        "mtu": kinds.whole(1280, 9000),
    }
    for name, item in value.value.items():
        if name in checks:
            _check(item, dotted(key, name), checks[name], faults)
        else:
            faults.at(item, dotted(key, name), unknown("key", name, (*LINK, *LINK_MORE)))


def _hcas(value: object) -> str:
    if not isinstance(value, list) or not value:
        return f"a list such as [rocep1s0f1, roceP2p1s0f1] is expected, found {describe(value)}"
    if fault := next((f for f in map(kinds.word, value) if f), ""):
        return fault
    twice = [name for name in value if value.count(name) > 1]
    return f"{twice[0]} stands there twice" if twice else ""


def _peer_hcas(value: Marked, key: str, faults: Faults) -> None:
    """The shape only: rank of a peer to the HCAs of the cable to it. Both ends of a cable are compared with all nodes at hand."""
    if not isinstance(value.value, dict) or not value.value:
        if value.value is not UNREADABLE:
            found = describe(value.value)
            faults.at(value, key, f"a mapping of a peer's rank to a list of HCAs is expected, found {found}")
        return
    for name, item in value.value.items():
        if not name.isdecimal():
            faults.at(item, dotted(key, name), f"the rank of a peer is expected, found {quoted(name)}")
        _check(item, dotted(key, name), _hcas, faults)


def _lanes(value: Marked, key: str, faults: Faults) -> None:
    """The shape only: which lanes and settings there are is known with the recipes."""
    if value.value is None or value.value is UNREADABLE:
        return
    if not isinstance(value.value, dict):
        faults.at(value, key, f"a mapping of lanes is expected, found {describe(value.value)}")
        return
    for name, lane in value.value.items():
        if not isinstance(lane.value, dict) and lane.value is not UNREADABLE:
            found = describe(lane.value)
            faults.at(lane, dotted(key, name), f"a mapping of the lane's settings is expected, found {found}")


def _mirrors(value: Marked, key: str, faults: Faults) -> None:
    """Prefixes and what stands in their place; read as one whole, as Ansible has it."""
    if value.value is UNREADABLE:
        return
    if not isinstance(value.value, dict):
        faults.at(
            value, key, f"a mapping of prefix to replacement is expected, found {describe(value.value)}"
        )
        return
    for prefix, item in value.value.items():
        if fault := kinds.mirror_prefix(prefix):
            faults.at(item, dotted(key, prefix), fault)
        _check(item, dotted(key, prefix), kinds.mirror, faults)
