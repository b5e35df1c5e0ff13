"""``invoke diff``: two lanes side by side, their settings and the command lines of every rank. Connects to nothing.

What is the same is counted; what is not stands in a table. Rows that are the same on all ranks stand once. Secrets are masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkyard.alike import form_of
from sparkyard.command import MASK, mask
from sparkyard.errors import UsageError
from sparkyard.model import Lane
from sparkyard.normal_form import Entries, Form
from sparkyard.provenance import image_words, shown
from sparkyard.rendered import RenderedLane
from sparkyard.showing import Section
from sparkyard.showing_published import side

Row = dict[str, Any]
PARTS = ("options", "env", "mounts", "words")


@dataclass(frozen=True, slots=True)
class Side:
    """A lane as it is compared: with its name for people (``C@switched``) and as rendered."""

    name: str
    lane: Lane
    rendered: RenderedLane

    def containers(self, rank: int) -> dict[str, Form]:
        """Service → its form on a rank; nothing where the lane has no such rank."""
        if rank >= len(self.lane.nodes):
            return {}
        node = self.lane.nodes[rank].name
        files = self.rendered.files_of(node)
        return {c.service: form_of(c, files) for c in self.rendered.containers_of(node) if c.words}


def named(text: str) -> tuple[str, str]:
    """The lane and the profile of ``C@switched``; the profile is empty without one. Raises UsageError."""
    lane, sign, profile = text.partition("@")
    if not lane or (sign and not profile):
        raise UsageError(
            f"--with={text} is no lane, and no LANE@PROFILE" if text else "diff needs a second lane",
            next_step="invoke diff --lane=B --with=C, or --with=C@switched",
        )
    return lane, profile


def sections(one: Side, other: Side) -> tuple[Section, ...]:
    """The tables: settings, images and nodes, then every pair of services, what all ranks have in common first."""
    found = (
        _section("settings", [_counted(_settings(one.lane), _settings(other.lane))]),
        _section("lanes", [_counted(_whole(one), _whole(other))]),
        *_services(one, other),
    )
    return tuple(section for section in found if section.rows)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Rows that differ, and how many entries do not."""

    rows: tuple[Row, ...]
    equal: int


def _counted(one: Entries, other: Entries) -> _Compared:
    """What both have first, then what the one has alone, then the other."""
    keys = sorted(dict.fromkeys((*one, *other)), key=lambda key: (key not in one, key not in other))
    rows = tuple(
        {"what": key, "lane": side(one.get(key)), "with": side(other.get(key))}
        for key in keys
        if one.get(key) != other.get(key)
    )
    return _Compared(rows, len(keys) - len(rows))


def _section(title: str, compared: Sequence[_Compared]) -> Section:
    rows = tuple(row for each in compared for row in each.rows)
    equal = sum(each.equal for each in compared)
    told = f"{len(rows)} differ{'s' if len(rows) == 1 else ''}, {equal} the same"
    return Section(f"{title}: {told}", rows or ({"what": "no difference"},), "diff")


def _settings(lane: Lane) -> dict[str, str]:
    return {
        name: MASK if value.secret and value.value else shown(value.value)
        for name, value in lane.settings.items()
    }


def _whole(one: Side) -> dict[str, str]:
    """What is said once of a lane."""
    recipe = one.lane.recipe
    checkpoints = {spec.repo: spec.revision for spec in one.lane.checkpoints.values()}
    return {
        "title": recipe.title,
        "profile": str(one.lane.profile.value) if one.lane.profile is not None else "none",
        "nodes": ", ".join(node.name for node in one.lane.nodes),
        "image": image_words(recipe.image),
        "checkpoints": ", ".join(f"{repo} @ {revision}" for repo, revision in checkpoints.items()) or "none",
        "start order": recipe.order if isinstance(recipe.order, str) else shown(recipe.order),
        "started": ", then ".join(" and ".join(names) for names in one.rendered.stages),
        "built by": ", ".join(job.name for job in one.rendered.jobs) or "no job",
        "API": one.rendered.ready.url,
        "model": str(one.rendered.ready.body["model"]),
    }


# containers


def _services(one: Side, other: Side) -> Iterator[Section]:
    ranks = range(max(len(one.lane.nodes), len(other.lane.nodes)))
    places = {rank: _pairs(one.containers(rank), other.containers(rank)) for rank in ranks}
    for pair in dict.fromkeys(pair for each in places.values() for pair in each):
        on = [rank for rank in ranks if pair in places[rank]]
        compared = {rank: _forms(one, other, pair, rank) for rank in on}
        yield from _by_rank(pair, compared)


def _pairs(one: Mapping[str, Form], other: Mapping[str, Form]) -> list[tuple[str, str]]:
    """The services of both sides that stand beside each other: those of one name, then the others in their order."""
    same = [name for name in one if name in other]
    left = [name for name in one if name not in same]
    right = [name for name in other if name not in same]
    most = max(len(left), len(right))
    rest = zip(left + [""] * (most - len(left)), right + [""] * (most - len(right)), strict=True)
    return [*((name, name) for name in same), *rest]


def _forms(one: Side, other: Side, pair: tuple[str, str], rank: int) -> dict[str, _Compared]:
    """Part → what differs there. A side without such a container has no entries."""
    entries = []
    for each, name in zip((one, other), pair, strict=True):
        form = each.containers(rank).get(name, Form())
        secrets = each.rendered.secrets
        entries.append({part: {k: mask(v, secrets) for k, v in form.parts()[part].items()} for part in PARTS})
    return {part: _counted(entries[0][part], entries[1][part]) for part in PARTS}


def _by_rank(pair: tuple[str, str], compared: Mapping[int, Mapping[str, _Compared]]) -> Iterator[Section]:
    """For each part the rows that all ranks have, then those of a rank alone."""
    first, *rest = compared.values()
    for part in PARTS:
        common = [row for row in first[part].rows if all(row in each[part].rows for each in rest)]
        equal = min(each[part].equal for each in compared.values())
        if common or equal:
            title = f"{part} of {_told(pair)}, {_on(list(compared))}"
            yield _section(title, [_Compared(tuple(common), equal)])
    for rank, each in compared.items():
        own = [row for part in PARTS for row in each[part].rows if not _everywhere(row, part, compared)]
        if own:
            title = f"of {_told(pair)}, on rank {rank} alone"
            yield Section(f"{title}: {len(own)} differ{'s' if len(own) == 1 else ''}", tuple(own), "diff")


def _everywhere(row: Row, part: str, compared: Mapping[int, Mapping[str, _Compared]]) -> bool:
    return all(row in each[part].rows for each in compared.values())


def _told(pair: tuple[str, str]) -> str:
    one, other = (name or "nothing" for name in pair)
    return one if one == other else f"{one} beside {other}"


def _on(ranks: Sequence[int]) -> str:
    return f"on rank {ranks[0]}" if len(ranks) == 1 else f"on all of ranks {', '.join(map(str, ranks))}"
