"""Profiles of a recipe: which one is chosen, what it sets, and what must hold of profiles and published lines in the recipe itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparkyard.loading.marked import Faults
from sparkyard.loading.overrides import ENVIRONMENT, SET, Overrides
from sparkyard.loading.phrases import describe, quoted, unknown
from sparkyard.loading.settings import check_value
from sparkyard.model import Origin, Value
from sparkyard.recipe import PublishedSpec, Recipe

if TYPE_CHECKING:
    from sparkyard.loading.recipe_file import SoundRecipe

PROFILE = "profile"
"""What an inventory (``lanes.X.profile``), the environment and ``--set`` call it."""
Say = Callable[[str, str], None]


def name_fault(value: Any, known: Sequence[str]) -> str:
    """What is wrong with the name of a profile; an empty one chooses none."""
    if value in (None, ""):
        return ""
    if not isinstance(value, str):
        return f"the name of a profile is expected, found {describe(value)}"
    return "" if value in known else f"{quoted(value)} is {unknown('profile', value, known)}"


def chosen(given: Value | None, file: SoundRecipe, overrides: Overrides, faults: Faults) -> Value | None:
    """The profile of a lane: from ``--set`` or the environment, else as ``given`` by the inventory. None for none, or a wrong one."""
    names = tuple(file.recipe.profiles)
    above = overrides.of(PROFILE) if names else None
    if above is not None:
        text, origin = above
        if fault := name_fault(text, names):
            place, key = (SET, PROFILE) if origin.place == SET else (ENVIRONMENT, origin.place)
            faults.add(place, 0, key, fault)
        given = Value(text, origin)
    return given if given is not None and given.value in names else None


def values(profile: Value | None, file: SoundRecipe) -> dict[str, Value]:
    """What a chosen profile sets, with ``profile NAME (recipe file:line)`` as the origin."""
    if profile is None:
        return {}
    name, found = str(profile.value), {}
    for setting, value in file.recipe.profiles[name].settings.items():
        mark = file.root.nearest(["profiles", name, "settings", setting])
        found[setting] = Value(value, Origin(f"profile {name} ({mark.file}:{mark.line})"))
    return found


# in the recipe


def check_profiles(recipe: Recipe, say: Say) -> None:
    """Every setting of a profile is one of the recipe's, with a value that it may have."""
    for name, profile in recipe.profiles.items():
        for setting, value in profile.settings.items():
            key = f"profiles.{name}.settings.{setting}"
            spec = recipe.settings.get(setting)
            if spec is None:
                say(key, unknown("setting", setting, list(recipe.settings)))
            elif spec.secret:
                say(key, "a secret is set by a person, never by a profile")
            elif fault := check_value(spec, value):
                say(key, fault)


def check_published(recipe: Recipe, say: Say) -> None:
    """Every published line is of a container of the recipe, and compared with a profile that there is."""
    names = [f"services.{name}" for name in recipe.services] + [f"jobs.{name}" for name in recipe.jobs]
    first: dict[str, int] = {}
    for number, line in enumerate(recipe.published):
        key = f"published.{number}"
        if line.name in first:
            say(f"{key}.name", f"{quoted(line.name)} is the name of published.{first[line.name]} too")
        first.setdefault(line.name, number)
        if line.profile and line.profile not in recipe.profiles:
            say(f"{key}.profile", name_fault(line.profile, list(recipe.profiles)))
        if line.of not in names:
            say(f"{key}.of", unknown("container", line.of, names))
        elif fault := _rank_fault(recipe, line):
            say(f"{key}.rank", fault)


def _rank_fault(recipe: Recipe, line: PublishedSpec) -> str:
    part, _, name = line.of.partition(".")
    specs: Mapping[str, Any] = recipe.services if part == "services" else recipe.jobs
    most, who = recipe.nodes.at_most, specs[name].nodes
    ranks = {"all": range(most), "head": range(1), "workers": range(1, most)}[who]
    return "" if line.rank in ranks else f"{line.of} has no rank {line.rank}: it runs on {who}"
