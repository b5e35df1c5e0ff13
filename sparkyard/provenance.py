"""Where every value of a recipe comes from: each pinned or tuned value with its source, and what has none. Pure.

A value is known by its key: the dotted key of the recipe, with three readings that hold when lines move: words are keyed by their flag
(``services.rank.words.--context``), mounts by their target (``services.rank.mounts./model``), and flags that come several times also by
what stands before ``=`` (``services.rank.options.--ulimit.memlock``).

In a pattern of ``sources``, ``*`` stands for any text and ``{a,b}`` for one of several; everything else stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.recipe import (
    BuildSpec,
    CheckpointSpec,
    ContainerSpec,
    GitSpec,
    ImageSpec,
    JobSpec,
    MadeSpec,
    Part,
    Recipe,
    Source,
)

FLAG = re.compile(r"(?:^|%\})(--?[A-Za-z][\w-]*)(?=$|=|\{)")
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Pinned:
    """One value of a recipe.

    Attributes:
        key: as ``sources`` names it; ``path`` is where it stands in the file.
        value: as people read it.
        source: None when nothing says where it comes from.
        pattern: the entry of ``sources`` that says it; empty when the value has a source of its own.
    """

    key: str
    path: Path
    value: str
    source: Source | None = None
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Lack:
    """What is wrong with the sources of a recipe: where, and in which words."""

    key: str
    path: Path
    message: str


def pinned(recipe: Recipe) -> tuple[Pinned, ...]:
    """Every pinned or tuned value, once, in the order of the recipe's parts."""
    matchers = {pattern: matcher(pattern) for pattern in recipe.sources}
    return tuple(_sourced(value, recipe.sources, matchers) for value in _values(recipe))


def lacks(recipe: Recipe) -> tuple[Lack, ...]:
    """Values without a source or with two, and entries of ``sources`` that say nothing."""
    found: list[Lack] = []
    matchers = {pattern: matcher(pattern) for pattern in recipe.sources}
    used: set[str] = set()
    for value in _values(recipe):
        by = [] if value.source else [p for p, match in matchers.items() if match.fullmatch(value.key)]
        used.update(by)
        if not value.source and not by:
            found.append(Lack(value.key, value.path, "no source: say in `sources` where it comes from"))
        elif len(by) > 1:
            found.append(Lack(value.key, value.path, f"two entries of sources fit: {by[0]} and {by[1]}"))
    idle = (pattern for pattern in recipe.sources if pattern not in used)
    found += [Lack(f"sources.{p}", ("sources", p), "fits no value that needs a source") for p in idle]
    return tuple(found)


def matcher(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern of ``sources``."""
    parts = re.split(r"(\*|\{[^{}]*\})", pattern)
    return re.compile("".join(_matched(part) for part in parts), re.DOTALL)


def _matched(part: str) -> str:
    if part == "*":
        return ".*"
    if part.startswith("{") and part.endswith("}"):
        return f"(?:{'|'.join(re.escape(word.strip()) for word in part[1:-1].split(','))})"
    return re.escape(part)


def _sourced(value: Pinned, sources: Mapping[str, Source], matchers: Mapping[str, re.Pattern[str]]) -> Pinned:
    if value.source is not None:
        return value
    by = next((pattern for pattern, match in matchers.items() if match.fullmatch(value.key)), "")
    return Pinned(value.key, value.path, value.value, sources.get(by), by)


# the values of a recipe


def _values(recipe: Recipe) -> Iterator[Pinned]:
    yield _plain("nodes", _count(recipe.nodes.at_least, recipe.nodes.at_most))
    for name, setting in recipe.settings.items():
        yield _own(("settings", name), "secret" if setting.secret else setting.default, setting.source)
    for name, checkpoint in recipe.checkpoints.items():
        yield _own(("checkpoints", name), checkpoint_words(checkpoint), checkpoint.source)
    yield from _image(recipe.image)
    yield from _offered(recipe)
    for name, patch in recipe.patches.items():
        yield _own(("patches", name, "git"), f"{patch.file} of {git_words(patch.git)}", patch.git.source)
        yield _own(("patches", name), f"{len(patch.edits)} edits, placed at {patch.path}", patch.source)
    if recipe.scripts is not None:
        yield _own(("scripts", "git"), git_words(recipe.scripts.git), recipe.scripts.git.source)
        yield from _fields("scripts", recipe.scripts, ("start", "stop", "containers"))
    yield from _entries(("env",), recipe.env)
    for name, file in recipe.files.items():
        if file.template is not None:
            yield _plain(f"files.{name}", file.template)
        yield from _entries(("files", name, "values"), file.values)
    yield from _containers(recipe)
    yield _plain("order", recipe.order)
    yield from _entries(("ports",), recipe.ports)
    yield from _fields("ready", recipe.ready, type(recipe.ready).model_fields)
    yield from _fields("stop", recipe.stop, type(recipe.stop).model_fields)
    yield from _fields("limits", recipe.limits, ("memory", "disk", "guard"))
    for name, kept in recipe.kept.items():
        yield _own(("kept", name), f"{kept.path}, {kept.bytes} bytes", kept.source)
    for number, check in enumerate(recipe.verify):
        yield Pinned(f"verify.{number}", ("verify", number), check.name)


def _offered(recipe: Recipe) -> Iterator[Pinned]:
    """Profiles and published lines, which have sources of their own."""
    for name, profile in recipe.profiles.items():
        yield _own(("profiles", name), profile.settings, profile.source)
    for number, line in enumerate(recipe.published):
        yield _own(
            ("published", number), f"{line.name}: {line.part} of {line.of}, rank {line.rank}", line.source
        )


def _image(image: ImageSpec) -> Iterator[Pinned]:
    yield _own(("image",), image_words(image), image.source)
    yield from _fields("image", image, ("bytes",))
    if image.build is not None:
        yield from _build(image.build)
    if image.made is not None:
        yield from _made(image.made)


def _made(made: MadeSpec) -> Iterator[Pinned]:
    yield _own(("image", "made", "git"), git_words(made.git), made.git.source)
    for number, words in enumerate(made.steps):
        yield Pinned(f"image.made.steps.{number}", ("image", "made", "steps", number), " ".join(words))
    yield from _fields("image.made", made, ("reference", "memory"))
    yield from _entries(("image", "made", "labels"), made.labels)


def _build(build: BuildSpec) -> Iterator[Pinned]:
    for name, git in build.git.items():
        yield _own(("image", "build", "git", name), git_words(git), git.source)
    yield from _entries(("image", "build", "args"), build.args)
    yield from _fields("image.build", build, ("memory",))


def _containers(recipe: Recipe) -> Iterator[Pinned]:
    for name, service in recipe.services.items():
        yield from _container(("services", name), service)
    for name, job in recipe.jobs.items():
        yield from _job(name, job)
    if recipe.stages:
        yield _plain("stages", recipe.stages)


def _job(name: str, job: JobSpec) -> Iterator[Pinned]:
    """What the job is has its own source; its words, sizes, limits and patterns are found in ``sources``."""
    yield _own(("jobs", name), f"{job.about}, in {job.at}, on {job.nodes}", job.source)
    yield from _container(("jobs", name), job)
    for part in ("makes", "room", "says"):
        for number, one in enumerate(getattr(job, part)):
            yield Pinned(f"jobs.{name}.{part}.{number}", ("jobs", name, part, number), shown(one))
    yield from _fields(
        f"jobs.{name}",
        job,
        (
            "order",
            "needs",
            "bound_to",
            "variant",
            "timeout",
            "log_silence",
            "memory",
            "gpu",
            "grace",
            "fresh",
        ),
    )


def _container(place: tuple[str, str], service: ContainerSpec) -> Iterator[Pinned]:
    yield from _words((*place, "options"), service.options)
    yield from _entries((*place, "env"), service.env)
    for number, mount in enumerate(service.mounts):
        key = ".".join((*place, "mounts", mount.target))
        yield Pinned(key, (*place, "mounts", number), mount_words(mount.source, mount.read_only))
    yield from _words((*place, "words"), service.words)
    if service.gate is not None:
        yield Pinned(".".join((*place, "gate")), (*place, "gate"), shown(service.gate))


def _words(place: tuple[str, ...], words: Sequence[str]) -> Iterator[Pinned]:
    groups = _grouped(words)
    flags = [flag for _, flag, _ in groups]
    for number, flag, texts in groups:
        key = flag or str(number)
        if flag and flags.count(flag) > 1:
            key = f"{flag}.{texts[-1].partition('=')[0] if len(texts) > 1 else number}"
        yield Pinned(".".join((*place, key)), (*place, number), " ".join(texts))


def _grouped(words: Sequence[str]) -> list[tuple[int, str, list[str]]]:
    """Each flag with the value behind it, and each word that is neither: (index, flag or nothing, texts)."""
    groups: list[tuple[int, str, list[str]]] = []
    for number, word in enumerate(words):
        flag = FLAG.search(word)
        if flag is None and groups and groups[-1][1] and len(groups[-1][2]) == 1:
            groups[-1][2].append(word)
        else:
            groups.append((number, flag[1] if flag else "", [word]))
    return groups


def _own(path: Path, value: Any, source: Source) -> Pinned:
    return Pinned(".".join(map(str, path)), path, shown(value), source)


def _plain(key: str, value: Any) -> Pinned:
    return Pinned(key, tuple(key.split(".")), shown(value))


def _entries(place: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[Pinned]:
    for name, value in values.items():
        yield Pinned(".".join((*place, name)), (*place, name), shown(value))


def _fields(place: str, part: Part, names: Any) -> Iterator[Pinned]:
    """The fields that the recipe sets; what it leaves out is sparkyard's own default."""
    for name in names:
        if name in part.model_fields_set:
            yield _plain(f"{place}.{name}", getattr(part, name))


# in words


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, Part):
        return ", ".join(f"{name} {shown(getattr(value, name))}" for name in sorted(value.model_fields_set))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) or "nothing"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return "not set" if value is None or value == "" else str(value)


def _count(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def checkpoint_words(spec: CheckpointSpec) -> str:
    files = "" if spec.files == ["*"] else f", files {', '.join(spec.files)}"
    return f"{spec.repo} @ {spec.revision}{files}" + (f" (when {spec.when})" if spec.when else "")


def git_words(git: GitSpec) -> str:
    return f"{git.url.removeprefix('https://')} @ {git.commit}"


def image_words(image: ImageSpec) -> str:
    if image.pull is not None:
        return f"{image.pull.repository}@{image.pull.digest}"
    if image.made is not None:
        return f"made here by the scripts of {git_words(image.made.git)}"
    assert image.build is not None
    return f"built here on {image.build.base}"


def mount_words(source: str, read_only: bool) -> str:
    return f"{source}, {'read only' if read_only else 'writable'}"
