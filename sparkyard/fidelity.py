"""Command lines that others published beside ours, word by word, and whether every difference is one that the recipe declares. Pure but for
the recipe's template files.

Both sides are brought to one normal form (``normal_form.py``); what sparkyard sets for every container is left out by its one list there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sparkyard.alike import form_of
from sparkyard.command import mask
from sparkyard.errors import ConfigError, Fault
from sparkyard.lock import Lock
from sparkyard.model import Container, Lane, Origin, Value
from sparkyard.normal_form import Form, compact, differences, of_env, of_run, of_words, split
from sparkyard.recipe import PublishedSpec
from sparkyard.render import RECIPE, Rendering
from sparkyard.rendered import RenderedLane
from sparkyard.scopes import Commits

NOTHING = "nothing"
Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Seen:
    """One difference: the flag, variable or target, both values (None where a side has none), and the recipe's reason, empty without one."""

    what: str
    theirs: str | None
    ours: str | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published line beside ours. ``faults``: what is not as the recipe declares it; ``equal``: how many entries are the same."""

    name: str
    equal: int
    seen: tuple[Seen, ...]
    faults: tuple[str, ...]


def with_profile(lane: Lane, name: str) -> Lane:
    """The lane as its recipe makes it with a profile (empty: the defaults), without anything that a person set."""
    recipe = lane.recipe
    chosen = recipe.profiles[name].settings if name else {}
    place = Origin(f"profile {name}" if name else "default")
    settings = {
        setting: Value(f"<generated: {setting}>" if spec.generated and spec.default is None else value, place, spec.secret)
        for setting, spec in recipe.settings.items()
        for value in (chosen.get(setting, spec.default),)
    }  # fmt: skip
    env = {variable: Value(text, place) for variable, text in recipe.env.items()}
    return replace(
        lane, settings=settings, env=env, profile=Value(name, Origin("published")) if name else None
    )


def comparisons(
    lane: Lane, commits: Commits | None = None, lock: Lock | None = None
) -> tuple[Comparison, ...]:
    """Every published line of the lane's recipe beside ours.

    Raises ConfigError where a profile cannot be rendered on these nodes, or a published text is no shell line.
    """
    lock = lock or Lock()
    known = {**lock.manifests, **(commits or {})}
    made: dict[str, tuple[Rendering, RenderedLane]] = {}
    found: list[Comparison] = []
    for number, spec in enumerate(lane.recipe.published):
        if spec.profile not in made:
            rendering = Rendering(with_profile(lane, spec.profile), known, lock)
            rendered, _ = rendering.unjudged()  # published values may well break our rules
            made[spec.profile] = (rendering, rendered)
        found.append(_compared(number, spec, *made[spec.profile]))
    faults = {fault: None for rendering, _ in made.values() for fault in rendering.templates.faults()}
    if faults:
        raise ConfigError(list(faults))
    return tuple(found)


def _compared(number: int, spec: PublishedSpec, rendering: Rendering, rendered: RenderedLane) -> Comparison:
    key, templates = f"published.{number}", rendering.templates
    container = _container(spec, rendered)
    if container is None or not container.words:
        templates.fault(
            key, f"{spec.of} does not run on rank {spec.rank} with profile {spec.profile or 'none'}"
        )
        return Comparison(spec.name, 0, (), ())
    scope = rendering.scopes[spec.rank]
    text = templates.text(f"{key}.text", spec.text, scope)
    declared = {
        one.what: (
            _value(one.theirs and templates.text(f"{key}.differences.{n}.theirs", one.theirs, scope), one.theirs),
            _value(one.ours and templates.text(f"{key}.differences.{n}.ours", one.ours, scope), one.ours),
        )
        for n, one in enumerate(spec.differences)
    }  # fmt: skip
    try:
        theirs = published(spec.part, text)
    except ValueError as error:
        templates.fault(f"{key}.text", f"is no line of a shell: {error}")
        return Comparison(spec.name, 0, (), ())
    ours = _part(spec.part, form_of(container, rendered.files_of(container.node)))
    whys = {one.what: one.why for one in spec.differences}
    return compare(spec.name, theirs, ours, declared, whys, rendered.secrets)


def _value(rendered: str | None, given: str | None) -> str | None:
    return None if given is None else compact(rendered or "")


def _container(spec: PublishedSpec, rendered: RenderedLane) -> Container | None:
    """The container that a published line is of; None when it does not run on that rank."""
    part, _, name = spec.of.partition(".")
    jobs = [container for job in rendered.jobs if job.name == name for container in job.containers]
    services = [container for container in rendered.containers if container.service == name]
    found = services if part == "services" else jobs
    return next((container for container in found if container.rank == spec.rank), None)


def published(part: str, text: str) -> Form:
    """The normal form of a published text. Raises ValueError for what a shell could not split."""
    words = split(text)
    if part == "env":
        return Form(env=of_env(words))
    if part == "words":
        return Form(words=of_words(words))
    return _part(part, of_run(words))


def _part(part: str, form: Form) -> Form:
    """What is compared of a form."""
    if part == "env":
        return Form(env=form.env)
    if part == "words":
        return Form(words=form.words)
    return replace(form, words={} if part == "options" else form.words, image="")


def compare(
    name: str,
    theirs: Form,
    ours: Form,
    declared: Mapping[str, Pair],
    whys: Mapping[str, str] | None = None,
    secrets: tuple[str, ...] = (),
) -> Comparison:
    """Both sides' differences against the declared ones: an undeclared one, one that is not there and other values are faults."""

    def shown(text: str | None) -> str | None:
        return None if text is None else mask(text, secrets)

    found = list(differences(theirs, ours))
    seen = tuple(Seen(d.key, shown(d.one), shown(d.other), (whys or {}).get(d.key, "")) for d in found)
    entries = sum(len(set(texts) | set(ours.parts()[part])) for part, texts in theirs.parts().items())
    pairs = {each.key: (each.one, each.other) for each in found}
    faults = tuple(mask(fault, secrets) for fault in _faults(pairs, declared))
    return Comparison(name, entries - len(found), seen, faults)


def _faults(seen: Mapping[str, Pair], declared: Mapping[str, Pair]) -> Iterator[str]:
    for what, pair in seen.items():
        if what not in declared:
            yield f"{what}: {_told(pair)}: not declared in `differences`"
        elif declared[what] != pair:
            yield f"{what}: {_told(pair)}: declared as {_told(declared[what])}"
    for what, pair in declared.items():
        if what not in seen:
            yield f"{what}: declared as {_told(pair)}: there is no such difference"


def _told(pair: Pair) -> str:
    theirs, ours = (NOTHING if text is None else repr(text) for text in pair)
    return f"published {theirs}, ours {ours}"


def unrendered(lane: Lane, error: ConfigError) -> tuple[Fault, ...]:
    """Why the published lines cannot be compared on these nodes; told by ``show``, and no reason to refuse anything."""
    return tuple(error.faults) or (Fault(str(lane.recipe_folder / RECIPE), 0, "published", str(error)),)
