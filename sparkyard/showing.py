"""A lane as a person reads it: what runs where, from which pins, what was chosen here and why, and what it may do. Pure.

Sections of rows for the tables ``show`` (name, value, source, about) and ``sources`` (key, value; kind and from stand above them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkyard import provenance, showing_jobs, showing_published
from sparkyard.command import MASK, discovered, generated
from sparkyard.lock import Lock
from sparkyard.model import Lane, Value
from sparkyard.pins import git_specs
from sparkyard.provenance import Pinned
from sparkyard.recipe import AgreeSpec, CheckpointSpec, GitSpec, PatchSpec, Source
from sparkyard.rendered import RenderedLane
from sparkyard.reporting.amounts import size

PRIVILEGED = (
    "--privileged", "--cap-add", "--device", "--gpus", "--ipc", "--network", "--oom-score-adj", "--pid", "--security-opt",
    "--ulimit", "--user", "--userns", "--uts",
)  # fmt: skip
"""Options of ``docker run`` that give a container more than it would have without."""

PLACES = re.compile(
    r"^((?:services|jobs)\.[^.]+\.(options|words|env|mounts)|files\.[^.]+\.values|settings|env)\."
)
"""What stands in front of the name by which people know a value."""
NUMBERED = re.compile(r"^(?:services|jobs)\.([^.]+)\.words\.(\d+)$")
"""A word without a flag: whose, and which."""
CONDITION = re.compile(r"\{%-? *if (.+?) *-?%\}([^{}]*)\{%-? *endif *-?%\}")
"""A whole value that stands in one ``{% if … %}``: the condition, and the words."""
LIMIT_WORDS = {
    "disk": "beside checkpoints and the folders above; ",
    "guard": "with less, what is being started, run as a job or built on that node is killed; ",
}
"""What the limits of ``limits`` mean, before where they come from."""
KINDS = ("published", "derived", "chosen", "rule", "published figure")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of one table below a heading."""

    title: str
    rows: tuple[Row, ...]
    table: str = "show"


def sections(lane: Lane, rendered: RenderedLane, lock: Lock, parity: str = "") -> tuple[Section, ...]:
    """Everything that ``invoke show`` tells of a lane. ``parity`` is what is known of its chat template's prompts."""
    values = provenance.pinned(lane.recipe)
    found = (
        Section("what runs where", tuple(_ranks(lane, rendered))),
        Section("jobs", tuple(showing_jobs.rows(rendered))),
        Section("pins", tuple(_pins(lane, lock))),
        Section("settings", tuple(_settings(lane))),
        Section("profiles: settings with a name", tuple(showing_published.profiles(lane))),
        Section("chosen here, because nobody published it", tuple(_chosen(values))),
        Section("folders that outlive the containers, on each node", tuple(_kept(lane, rendered))),
        Section("what each node must have free", tuple(_limits(lane))),
        Section("what each host must be, and is never changed to be", tuple(showing_published.hosts(lane))),
        Section("what the containers may do beyond an ordinary one", tuple(_privileged(values))),
        Section("exceptions to sparkyard's own rules", tuple(_exceptions(lane))),
        Section("rules", tuple(_rules(lane))),
        Section("what the logs must say once it serves", tuple(showing_published.logs(lane))),
        *_published(lane, lock),
        _figures(lane),
        Section("edited texts", tuple(_texts(lane, rendered))),
        Section("chat template", tuple(_template(lane, rendered, parity))),
    )
    return tuple(section for section in found if section.rows)


def sources(lane: Lane) -> tuple[Section, ...]:
    """Every pinned or tuned value once, below the source that it has; rules and figures too."""
    rows = [_cited(each.key, _masked(lane, each), each.source) for each in provenance.pinned(lane.recipe)]
    for number, rule in enumerate(lane.recipe.rules):
        rows.append({"key": f"rules.{number}", "value": rule.must, "kind": "rule", "from": rule.source})
    rows += [
        {"key": key, "value": value, "kind": "rule", "from": place} for key, value, place in _demands(lane)
    ]
    for number, one in enumerate(lane.recipe.expect):
        value = f"{one.what}: {one.value}"
        rows.append(
            {"key": f"expect.{number}", "value": value, "kind": "published figure", "from": one.source}
        )
    titles = list(dict.fromkeys((row["kind"], row["from"]) for row in rows))
    return tuple(
        Section(
            f"{kind}: {words}", tuple(r for r in rows if (r["kind"], r["from"]) == (kind, words)), "sources"
        )
        for kind, words in sorted(titles, key=lambda title: KINDS.index(title[0]))
    )


def _cited(key: str, value: str, source: Source | None) -> Row:
    assert source is not None, key  # the loader refuses a recipe with a value that has none
    return {"key": key, "value": value, "kind": source.kind, "from": _words(source)}


def _words(source: Source) -> str:
    return "; ".join(text for text in (source.cite, source.why) if text)


def _masked(lane: Lane, value: Pinned) -> str:
    name = value.path[1] if value.path[0] == "settings" else ""
    setting = lane.recipe.settings.get(str(name))
    return MASK if setting is not None and setting.secret and setting.default else value.value


# what runs where


def _ranks(lane: Lane, rendered: RenderedLane) -> Iterator[Row]:
    for node in lane.nodes:
        rank = lane.rank(node)
        names = [container.name for container in rendered.containers_of(node.name)]
        ports = [f"{what} on port {port}" for what, port in rendered.ports.get(node.name, {}).items()]
        order = next((n for n, group in enumerate(rendered.order, 1) if rank in group), 0)
        started = f"started in group {order} of {len(rendered.order)}" if len(rendered.order) > 1 else ""
        yield {
            "name": node.name,
            "value": f"rank {rank}: {', '.join(names)}" if names else f"rank {rank}",
            "about": "; ".join(text for text in (", ".join(ports), started) if text),
        }
    yield {"name": "API", "value": rendered.ready.url, "about": f"model {rendered.ready.body['model']}"}


# pins


def _pins(lane: Lane, lock: Lock) -> Iterator[Row]:
    for name, spec in lane.checkpoints.items():
        yield _row(name, _checkpoint(name, spec, lock), spec.source, _files(spec))
    image = lane.recipe.image
    yield _row("image", _image(lane, lock), image.source, _words(image.source))
    for key, git in git_specs(lane.recipe).items():
        yield _row(key.removesuffix(".git").rpartition(".")[2], _git(key, git, lock), git.source, "")


def _row(name: str, value: str, source: Source, about: str) -> Row:
    return {"name": name, "value": value, "source": source.kind, "about": about}


def _checkpoint(name: str, spec: CheckpointSpec, lock: Lock) -> str:
    locked = lock.checkpoints.get(name)
    if locked is None:
        return f"{spec.repo} @ {spec.revision}" + ("" if len(spec.revision) == 40 else ", unlocked")
    files = locked.manifest.files
    return f"{spec.repo} @ {locked.manifest.commit}, {len(files)} files, {size(locked.manifest.size)}"


def _files(spec: CheckpointSpec) -> str:
    return "" if spec.files == ["*"] else f"of its files only {', '.join(spec.files)}"


def _image(lane: Lane, lock: Lock) -> str:
    words = provenance.image_words(lane.recipe.image)
    digests = [image.digest for image in lock.images.values()]
    unlocked = lane.recipe.image.build is not None and not digests
    return ", ".join((words, *digests)) + (", unlocked" if unlocked else "")


def _git(key: str, git: GitSpec, lock: Lock) -> str:
    locked = lock.git.get(key)
    if locked is not None:
        return provenance.git_words(git.model_copy(update={"commit": locked.commit}))
    return provenance.git_words(git) + ("" if len(git.commit) == 40 else ", unlocked")


# settings and choices


def _settings(lane: Lane) -> Iterator[Row]:
    for name, value in lane.settings.items():
        setting = lane.recipe.settings[name]
        default = value.value in (setting.default, generated(name))
        yield {
            "name": name,
            "value": _shown(value),
            "source": setting.source.kind if default else f"set by {value.origin}",
            "about": setting.about,
        }


def _shown(value: Value) -> str:
    return MASK if value.secret and value.value else provenance.shown(value.value)


def _chosen(values: tuple[Pinned, ...]) -> Iterator[Row]:
    """One row for each reason; values that share an entry of ``sources`` share the row."""
    grouped: dict[str, tuple[list[str], Source]] = {}
    for value in values:
        if value.source is not None and value.source.kind == "chosen":
            names, _ = grouped.setdefault(value.pattern or value.key, ([], value.source))
            names.append(_short(value.key))
    for names, source in grouped.values():
        yield {"name": _once(names), "about": _words(source)}


def _once(names: Iterable[str]) -> str:
    """Names in a row: what several services have alike is told once."""
    return ", ".join(dict.fromkeys(names))


def _short(key: str) -> str:
    """The end of a key, by which people know the value; a word that belongs to no flag goes by its owner and number."""
    if found := NUMBERED.match(key):
        return f"word {found[2]} of {found[1]}"
    return PLACES.sub("", key)


# folders, limits, privileges, exceptions


def _kept(lane: Lane, rendered: RenderedLane) -> Iterator[Row]:
    folders = {kept.name: kept for kept in rendered.kept.get(lane.head.name, ())}
    for name, spec in lane.recipe.kept.items():
        lost = f"; begins anew when a change is made to {', '.join(spec.lost_with)}" if spec.lost_with else ""
        yield _row(name, _room(folders[name].size), spec.source, f"{spec.about}{lost}")


def _room(size_: int) -> str:
    return f"up to {size(size_)}" if size_ else "size not counted"


def _limits(lane: Lane) -> Iterator[Row]:
    limits = lane.recipe.limits
    by_key: Mapping[str, Pinned] = {value.key: value for value in provenance.pinned(lane.recipe)}
    for name, wanted in (("memory", limits.memory), ("disk", limits.disk), ("guard", limits.guard)):
        value = by_key.get(f"limits.{name}")
        if wanted and value is not None and value.source is not None:
            words = LIMIT_WORDS.get(name, "") + _words(value.source)
            yield _row(name, f"{size(wanted)} ({wanted:,} bytes)", value.source, words)


def _privileged(values: tuple[Pinned, ...]) -> Iterator[Row]:
    """One row for each reason, as for what was chosen."""
    grouped: dict[str, tuple[list[str], Source]] = {}
    for value in values:
        option = value.key.partition(".options.")[2].partition(".")[0]
        if option in PRIVILEGED and value.source is not None:
            grouped.setdefault(value.pattern, ([], value.source))[0].append(_conditional(value.value))
    for words, source in grouped.values():
        yield {"name": _once(words), "about": _words(source)}


def _conditional(text: str) -> str:
    """An option that is there only under a condition, in words instead of template code."""
    found = CONDITION.fullmatch(text)
    return f"{found[2]} (only when {found[1]})" if found else text


def _exceptions(lane: Lane) -> Iterator[Row]:
    scripts = lane.recipe.scripts
    for text in scripts.exceptions if scripts is not None else ():
        yield {"name": lane.name, "about": text}
    for name, spec in (*lane.recipe.jobs.items(), *lane.recipe.services.items()):
        for secret in spec.argv_secrets:
            about = f"takes {secret} only among its own words: while it runs, root and the owner of its process on that node can read it in the process list"
            yield {"name": name, "about": about}


def _rules(lane: Lane) -> Iterator[Row]:
    for rule in lane.recipe.rules:
        yield {"name": rule.must, "about": rule.source}
    for spec in lane.recipe.agree:
        yield {"name": _agreed(spec), "about": spec.source}


def _agreed(spec: AgreeSpec) -> str:
    return f"{spec.what}, everywhere the same: {', '.join(spec.names)}"


def _figures(lane: Lane) -> Section:
    figures = lane.recipe.expect
    places = list(dict.fromkeys(figure.source for figure in figures))
    one = f" by {places[0]}" if len(places) == 1 else ""
    rows = [
        {
            "name": figure.what,
            "value": figure.value,
            "about": figure.conditions + ("" if one else f" ({figure.source})"),
            "from": figure.source,
        }
        for figure in figures
    ]
    return Section(f"figures published{one}, quoted and not promised", tuple(rows))


def _published(lane: Lane, lock: Lock) -> Iterator[Section]:
    for title, rows in showing_published.lines(lane, lock):
        yield Section(title, rows, "published")


def _demands(lane: Lane) -> Iterator[tuple[str, str, str]]:
    """(key, value, where it comes from) of what must agree, what hosts must be and logs must say."""
    for number, agreed in enumerate(lane.recipe.agree):
        yield f"agree.{number}", _agreed(agreed), agreed.source
    for number, spec in enumerate(lane.recipe.host):
        yield f"host.{number}", f"{spec.what}: {spec.must}", spec.source
    for name, service in lane.recipe.services.items():
        for number, check in enumerate(service.log):
            yield f"services.{name}.log.{number}", f"{check.what}: {check.pattern}", check.source


TEMPLATE = "template"
"""The edited text that is a chat template: its prompts can be compared with the checkpoint's own encoder."""


def _texts(lane: Lane, rendered: RenderedLane) -> Iterator[Row]:
    for name, patch in lane.recipe.patches.items():
        if name != TEMPLATE:
            yield {"name": name, "about": _placed(name, patch, rendered)}


def _template(lane: Lane, rendered: RenderedLane, parity: str) -> Iterator[Row]:
    for name, patch in lane.recipe.patches.items():
        if name == TEMPLATE:
            yield {
                "name": name,
                "value": parity or "parity unproven",
                "about": _placed(name, patch, rendered),
            }


def _placed(name: str, patch: PatchSpec, rendered: RenderedLane) -> str:
    """What is edited, and where the text lies: on the head, as on every node where it has no path of its own."""
    here = next((each.path for each in rendered.patches if each.name == name), patch.path)
    edits = f"{len(patch.edits)} edit{'' if len(patch.edits) == 1 else 's'} of " if patch.edits else ""
    return f"{edits}{patch.file}, placed at {here.replace(discovered('home'), '~')}"
