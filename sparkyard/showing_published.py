"""What a recipe offers and answers for beside its settings: profiles, demands on hosts, and published lines with each difference. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkyard import provenance
from sparkyard.errors import ConfigError
from sparkyard.fidelity import Comparison, comparisons
from sparkyard.lock import Lock
from sparkyard.model import Lane
from sparkyard.recipe import PublishedSpec

Row = dict[str, Any]
NONE = "–"  # noqa: RUF001 - a dash, as typeset


def profiles(lane: Lane) -> Iterator[Row]:
    """One row a profile: what it sets, and whether it is chosen."""
    chosen = lane.profile.value if lane.profile is not None else ""
    for name, profile in lane.recipe.profiles.items():
        now = f"chosen by {lane.profile.origin}: " if lane.profile is not None and name == chosen else ""
        yield {
            "name": name,
            "value": ", ".join(f"{key} {provenance.shown(value)}" for key, value in profile.settings.items()),
            "source": profile.source.kind,
            "about": f"{now}{profile.about}",
        }


def hosts(lane: Lane) -> Iterator[Row]:
    """One row a requirement: where it is looked up, what must hold there, and why."""
    for spec in lane.recipe.host:
        hashed = f"sha256 of {spec.sha256}" if spec.sha256 else ""
        named = f"getconf {spec.getconf}" if spec.getconf else f"systemd unit {spec.unit}"
        place = spec.read or hashed or named
        when = f" (when {spec.when})" if spec.when else ""
        yield {
            "name": spec.what,
            "value": f"{place}: {spec.must}{when}",
            "source": "stops a start" if spec.blocks else "is only said",
            "about": f"{spec.why} ({spec.source})",
        }


def logs(lane: Lane) -> Iterator[Row]:
    """One row for each thing that the log of a rank must say once it serves."""
    for name, service in lane.recipe.services.items():
        for check in service.log:
            value = check.pattern + (f", with {check.must}" if check.must else "")
            yield {"name": f"{name}: {check.what}", "value": value, "about": check.source}


def lines(lane: Lane, lock: Lock) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """(title, rows) of each published line: its differences from ours with their reasons, or why it cannot be compared here."""
    if not lane.recipe.published:
        return
    try:
        found = comparisons(lane, lock=lock)
    except ConfigError as error:
        rows = tuple({"what": fault.key, "why": fault.message} for fault in error.faults)
        yield "published command lines, which cannot be compared on these nodes", rows
        return
    for spec, one in zip(lane.recipe.published, found, strict=True):
        yield _title(spec, one), tuple(_differences(one))


def _title(spec: PublishedSpec, one: Comparison) -> str:
    counted = f"{one.equal} the same, {len(one.seen)} not" if one.seen else f"all {one.equal} the same"
    return (
        f"published: {one.name} ({spec.of} on rank {spec.rank}, profile {spec.profile or 'none'}): {counted}"
    )


def _differences(one: Comparison) -> Iterator[Row]:
    for seen in one.seen:
        why = seen.why or "not declared by the recipe: these nodes differ from those it was compared on"
        yield {"what": seen.what, "theirs": side(seen.theirs), "ours": side(seen.ours), "why": why}
    if not one.seen:
        yield {"what": "no difference"}


def side(text: str | None) -> str:
    """A value of one side: a dash where there is none, a word for a flag without a value."""
    return NONE if text is None else text or "(no value)"
