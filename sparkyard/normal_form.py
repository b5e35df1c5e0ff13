"""A container's command line in one normal form, so that lines written by different hands can be compared. Pure: words in, mappings out.

Every entry has a key by which people know it, and a text:

- ``options``: a flag of ``docker run`` with its value; a flag that may come several times goes with what stands before ``=``
  (``--ulimit.memlock``) or with its whole value (``--cap-add.IPC_LOCK``);
- ``env``: a variable, from ``--env`` and from environment files;
- ``mounts``: the target of a mount with its source, and ``:ro`` where it is read only;
- ``words``: a flag behind the image with its value, or the number of a word that belongs to no flag.

Two ways to write one thing become the same: ``--gpus=all`` and ``--gpus all``, ``-v a:b:ro`` and ``--mount type=bind,…``,
``--device a`` and ``--device a:a``, ``memlock=-1`` and ``memlock=-1:-1``, JSON with and without blanks.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SWITCHES = frozenset(
    {
        "--detach", "--init", "--interactive", "--no-healthcheck", "--oom-kill-disable", "--privileged", "--publish-all", "--quiet",
        "--read-only", "--rm", "--tty",
    }
)  # fmt: skip
"""Options of ``docker run`` that have no value."""
LONG: Mapping[str, str] = {
    "-c": "--cpu-shares", "-d": "--detach", "-e": "--env", "-h": "--hostname", "-i": "--interactive", "-l": "--label",
    "-m": "--memory", "-P": "--publish-all", "-p": "--publish", "-q": "--quiet", "-t": "--tty", "-u": "--user", "-v": "--volume",
    "-w": "--workdir", "--net": "--network",
}  # fmt: skip
SEVERAL = frozenset(
    {
        "--add-host", "--cap-add", "--cap-drop", "--device", "--device-cgroup-rule", "--group-add", "--label", "--log-opt", "--publish",
        "--security-opt", "--sysctl", "--tmpfs", "--ulimit",
    }
)  # fmt: skip
"""Options that may come several times, each with another value."""
LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "--detach": (), "--name": (), "--label": (), "--cidfile": (), "--restart": ("no",), "--pull": ("never",),
}  # fmt: skip
"""Options that sparkyard sets itself for every container, and that say nothing about an engine: left out of comparisons, whatever their
value or only with the values named here. The image is left out too: it is a pin of its own."""

FLAG = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
MARK = re.compile(r"<(discovered|unlocked|generated): ([^<>]*)>")
Entries = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Form:
    """A command line in its normal form. ``image`` is empty where the line has none."""

    options: Entries = field(default_factory=dict)
    env: Entries = field(default_factory=dict)
    mounts: Entries = field(default_factory=dict)
    words: Entries = field(default_factory=dict)
    image: str = ""

    def parts(self) -> dict[str, Entries]:
        """All but the image, by the names that recipes use."""
        return {"options": self.options, "env": self.env, "mounts": self.mounts, "words": self.words}


def split(text: str) -> list[str]:
    """The words of a line as a POSIX shell takes them; marks such as ``<discovered: gid>`` stay whole. Raises ValueError."""
    held: list[str] = []

    def hold(mark: re.Match[str]) -> str:
        held.append(mark[0])
        return f"\ue000{len(held) - 1}\ue001"

    words = shlex.split(MARK.sub(hold, text.replace("\\\n", " ")))
    return [re.sub("\ue000(\\d+)\ue001", lambda at: held[int(at[1])], word) for word in words]


def of_run(words: Sequence[str], env_files: Entries | None = None) -> Form:
    """The form of ``docker run`` with its options, image and words.

    ``env_files``: path → content of environment files whose variables count as the container's own.
    """
    rest = list(words[2:] if list(words[:2]) == ["docker", "run"] else words)
    options: dict[str, str] = {}
    env: dict[str, str] = {}
    mounts: dict[str, str] = {}
    given: dict[str, str] = {}
    while rest and rest[0].startswith("-"):
        name, value = _option(rest)
        if name == "--env":
            given |= _variable(value)
        elif name == "--env-file" and env_files is not None and value in env_files:
            env |= of_env(env_files[value].splitlines())
        elif name in ("--volume", "--mount"):
            mounts |= _mount(name, value)
        elif name not in LEFT_OUT or (LEFT_OUT[name] and value not in LEFT_OUT[name]):
            options |= _entry(name, value, options)
    image = rest.pop(0) if rest else ""
    return Form(options, {**env, **given}, mounts, of_words(rest), image)


def of_words(words: Sequence[str]) -> dict[str, str]:
    """The words behind an image: a flag has all that follows it up to the next flag; one that comes again has all its values."""
    found: dict[str, str] = {}
    flag, values = "", list[str]()
    for number, word in enumerate(words):
        known = FLAG.fullmatch(word)
        if known:
            _put(found, flag, values)
            flag, values = known[1], [known[2]] if known[2] is not None else []
        elif flag:
            values.append(word)
        else:
            found[str(number)] = word
    _put(found, flag, values)
    return found


def _put(found: dict[str, str], flag: str, values: Sequence[str]) -> None:
    if flag:
        value = " ".join(compact(each) for each in values)
        found[flag] = f"{found[flag]} {value}".strip() if flag in found else value


def of_env(words: Sequence[str]) -> dict[str, str]:
    """``NAME=value`` words; ``-e``, ``--env`` and ``export`` before them say nothing."""
    kept = [word for word in words if word not in ("-e", "--env", "export", "")]
    return {name: value for word in kept for name, value in _variable(word.removeprefix("--env=")).items()}


def _variable(word: str) -> dict[str, str]:
    name, sign, value = word.partition("=")
    return {name: value if sign else f"${name}"}


def _option(rest: list[str]) -> tuple[str, str]:
    """The next option with its value, taken off."""
    name, sign, value = rest.pop(0).partition("=")
    name = LONG.get(name, name)
    if sign or name in SWITCHES:
        return name, value
    if not name.startswith("--") and len(name) > 2:  # -v/a:/b, -it
        short = LONG.get(name[:2], name[:2])
        return (short, "") if short in SWITCHES else (short, name[2:])
    return name, rest.pop(0) if rest else ""


def _entry(name: str, value: str, there: Mapping[str, str]) -> dict[str, str]:
    if name not in SEVERAL:
        return {name: value if name not in there or name in SWITCHES else f"{there[name]} {value}"}
    if name == "--device":
        source, _, rest = value.partition(":")
        target, _, modes = rest.partition(":")
        elsewhere = "" if target in ("", source) else target
        return {f"{name}.{source}": f"{elsewhere}:{modes}" if modes not in ("", "rwm") else elsewhere}
    before, sign, behind = value.partition("=")
    soft, _, hard = behind.partition(":")
    return {f"{name}.{before}": soft if sign and soft == hard else behind}


def _mount(name: str, value: str) -> dict[str, str]:
    if name == "--volume":
        source, target, *more = _volume(value)
        read_only = "ro" in ",".join(more).split(",")
    else:
        fields = dict(part.partition("=")[::2] for part in value.split(","))
        source = fields.get("source") or fields.get("src") or fields.get("type", "")
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
        read_only = any(fields.get(key, "false") in ("", "true", "1") for key in ("readonly", "ro"))
    return {target: f"{source}:ro" if read_only else source}


def _volume(value: str) -> list[str]:
    """Source, target and modes; a colon within a mark parts nothing."""
    held = MARK.sub(lambda mark: mark[0].replace(":", "\ue002"), value)
    parts = [part.replace("\ue002", ":") for part in held.split(":")]
    return parts if len(parts) > 1 else ["", *parts]


def compact(word: str) -> str:
    """JSON without blanks; any other word as it is."""
    if word[:1] not in "{[" or not word:
        return word
    try:
        return json.dumps(json.loads(word), separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return word


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry that is not the same on both sides; None where a side has none."""

    part: str
    key: str
    one: str | None
    other: str | None


def differences(one: Form, other: Form) -> Iterator[Difference]:
    """What is not the same, in the order of the parts and of the first side."""
    for part, entries in one.parts().items():
        there = other.parts()[part]
        for key in dict.fromkeys((*entries, *there)):
            if entries.get(key) != there.get(key):
                yield Difference(part, key, entries.get(key), there.get(key))
