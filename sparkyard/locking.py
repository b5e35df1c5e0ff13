"""``invoke lock``, and the lock that ``download``, ``build`` and ``start`` make when there is none: found, shown, and kept after a yes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sparkyard.errors import StepFailed, UsageError
from sparkyard.line import Line
from sparkyard.lock import Lock, Locked, read_lock, write_lock
from sparkyard.manifest import COMMIT, digest
from sparkyard.model import Lane
from sparkyard.pins import git_specs
from sparkyard.reporting.amounts import size
from sparkyard.resolve import fitting, gaps, image_references, known_lock, own_lock_path
from sparkyard.resolving import Resolver
from sparkyard.tables import Row, finding

Agree = Callable[[Lock], bool]
"""Shows what was found and asks whether it is to be kept."""


def lock(line: Line, refresh: bool) -> None:
    """Ask for every pin of the lane, show what was found, and write the person's lock after a yes.

    Raises StepFailed when something is not what the lock says, unless ``refresh`` takes it as it is now.
    """
    lane = line.lane
    line.enter()
    known = known_lock(lane)
    found = resolver(line, lane).lock(every_key(lane))
    show(line, found)
    moved = tuple(differences(known, found))
    forgotten = refresh and bool(known.files)
    if moved and not refresh:
        raise StepFailed(
            f"{len(moved)} pin{'s are' if len(moved) > 1 else ' is'} not what the lock says; nothing was written",
            details=moved,
            next_step=f"find out why; to take what is there now: invoke lock --lane={lane.name} --refresh",
        )
    if not moved and not forgotten and found.over(known) == known:
        line.say(f"the lock of lane {lane.name} holds; nothing was changed")
    elif line.options.check:
        line.say(f"would write {own_lock_path(lane)}", details=list(moved))
        line.statuses.append(6)
    else:
        line.say(f"{own_lock_path(lane)} is to be written", details=list(moved))
        agreed(line, lane)
        keep(lane, found, refresh=refresh)
        line.say(f"wrote {own_lock_path(lane)}")
        if forgotten:
            line.say("the hashes of edited texts were forgotten: the next build fetches and locks them anew")


def every_key(lane: Lane) -> tuple[str, ...]:
    """The dotted keys of all pins of a lane."""
    return (*(f"checkpoints.{n}" for n in lane.checkpoints), *git_specs(lane.recipe), *image_references(lane))


def resolver(line: Line, lane: Lane) -> Resolver:
    return Resolver(lane, line.around, line.say)


def ensured(line: Line, lane: Lane) -> Lock:
    """The lock of a lane. What it lacks is asked for, shown and kept, after a yes where a pin was not given in full."""

    def agree(found: Lock) -> bool:
        unsure = tuple(uncertain(found))
        if unsure:
            show(line, found)
            line.say(f"not locked yet: {', '.join(unsure)}")
            if not line.options.check:
                agreed(line, lane)
        return not line.options.check

    known = known_lock(lane)
    missing = gaps(lane, known)
    return completed(lane, known, resolver(line, lane), agree, line.say) if missing else known


def completed(lane: Lane, known: Lock, resolver: Resolver, agree: Agree, say: Callable[[str], None]) -> Lock:
    """The lock with its gaps filled; written when ``agree`` says so."""
    for line in stale(lane):
        say(line)
    found = resolver.lock(gaps(lane, known))
    if agree(found):
        keep(lane, found)
    return found.over(known)


def keep(lane: Lane, found: Lock, *, refresh: bool = False) -> Path:
    """Write what was found into the person's lock, over what it held for the same pins.

    ``refresh`` forgets the hashes of edited texts, which follow from the recipe's edits and are locked by the next fetch.
    """
    path = own_lock_path(lane)
    held = read_lock(path) or Lock()
    write_lock(path, found.over(replace(held, files={}) if refresh else held))
    return path


def agreed(line: Line, lane: Lane) -> None:
    """Ask the person. Raises UsageError for a no, and where there is nobody to ask."""
    if line.options.yes:
        return
    if line.options.json or not sys.stdin.isatty():
        raise UsageError(
            "what the recipe's pins were resolved to has not been confirmed; nothing was locked",
            next_step=f"compare it with what you expect, then: invoke lock --lane={lane.name} --yes",
        )
    line.view.close()
    if line.typed("Lock this? Type yes: ") != "yes":
        raise UsageError("not confirmed; nothing was locked")


# words, pure


def uncertain(found: Lock) -> Iterator[str]:
    """The keys whose pin was a branch, a tag or the beginning of a commit: a person has to look at what that is."""
    for name, locked in found.checkpoints.items():
        if not COMMIT.fullmatch(locked.revision):
            yield f"checkpoints.{name}"
    yield from (key for key, git in found.git.items() if git.asked != git.commit)
    yield from found.images


def stale(lane: Lane) -> Iterator[str]:
    """A line for each entry of the person's lock that was made for another pin than the recipe has now."""
    own = read_lock(own_lock_path(lane)) or Lock()
    fits = fitting(lane, own)
    for name, spec in lane.checkpoints.items():
        if name in own.checkpoints and name not in fits.checkpoints:
            was = own.checkpoints[name]
            yield f"checkpoint {name}: the lock is for {was.manifest.repo}@{was.revision}, the recipe says {spec.revision}"
    for key, git in git_specs(lane.recipe).items():
        if key in own.git and key not in fits.git:
            yield f"{key}: the lock is for {own.git[key].url}@{own.git[key].asked}, the recipe says {git.url}@{git.commit}"
    for key, reference in image_references(lane).items():
        if key in own.images and key not in fits.images:
            yield f"{key}: the lock is for {own.images[key].reference}, the recipe says {reference}"


def differences(known: Lock, found: Lock) -> Iterator[str]:
    """What is not as it was locked, naming both."""
    for name, now in found.checkpoints.items():
        if name in known.checkpoints:
            yield from _checkpoint_differences(name, known.checkpoints[name], now)
    for key, git in found.git.items():
        if key in known.git and known.git[key].commit != git.commit:
            yield f"{key}: {git.url}@{git.asked} was {known.git[key].commit}, is {git.commit}"
    for key, image in found.images.items():
        if key in known.images and known.images[key].digest != image.digest:
            yield f"{key}: {image.reference} was {known.images[key].digest}, is {image.digest}"


def _checkpoint_differences(name: str, was: Locked, now: Locked) -> Iterator[str]:
    repo = now.manifest.repo
    if was.manifest.commit != now.manifest.commit:
        yield f"checkpoint {name}: {repo}@{now.revision} was {was.manifest.commit}, is {now.manifest.commit}"
        return
    before, after = ({f.path: f for f in m.files} for m in (was.manifest, now.manifest))
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield f"checkpoint {name}: {path} is gone from {repo}"
        elif path not in before:
            yield f"checkpoint {name}: {path} is new in {repo}"
        elif before[path].size != after[path].size:
            yield f"checkpoint {name}: {path} had {before[path].size} bytes, has {after[path].size}"
        elif digest(before[path]) != digest(after[path]):
            yield f"checkpoint {name}: {path} was {digest(before[path])}, is {digest(after[path])}"


# what is shown


def show(line: Line, found: Lock) -> None:
    """Every file, then every pin with what it was resolved to."""
    for name, locked in found.checkpoints.items():
        for file in locked.manifest.files:
            content = digest(file)
            told = {"checkpoint": name, "file": file.path, "bytes": file.size, "content": content}
            line.emit(finding("lock-files", told))
    for row in rows(found):
        line.emit(finding("lock", row))


def rows(found: Lock) -> Iterator[Row]:
    """One row a pin."""
    for name, locked in found.checkpoints.items():
        manifest = locked.manifest
        amount = f"{len(manifest.files)} files, {manifest.size} bytes ({size(manifest.size)})"
        asked = f"{manifest.repo}@{locked.revision}"
        yield {"pin": f"checkpoints.{name}", "asked": asked, "found": manifest.commit, "amount": amount}
    for key, git in found.git.items():
        yield {"pin": key, "asked": f"{git.url}@{git.asked}", "found": git.commit}
    for key, image in found.images.items():
        yield {"pin": key, "asked": image.reference, "found": image.digest}
