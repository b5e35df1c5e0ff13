"""Verbs that read files and connect to nothing: ``show``, ``diff`` and ``render``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparkyard.errors import ConfigError, Fault, UsageError
from sparkyard.events import Event
from sparkyard.line import Line
from sparkyard.model import Lane
from sparkyard.rendered import RenderedLane
from sparkyard.tables import finding

if TYPE_CHECKING:
    from sparkyard import comparing


def show(line: Line, *, sources: bool = False) -> None:
    """The lane as a person reads it; with ``sources`` every value once, below what it comes from."""
    from sparkyard import showing  # noqa: PLC0415
    from sparkyard.resolve import known_lock  # noqa: PLC0415

    lane, rendered, faults = _told_of(line)
    _heading(line, f"lane {lane.name}: {lane.recipe.title}")
    if faults:
        line.say(
            "this inventory does not fit the lane; why stands at the end, and here is what the lane would be"
        )
    told = _parity(line, rendered)
    found = showing.sources(lane) if sources else showing.sections(lane, rendered, known_lock(lane), told)
    for section in found:
        _heading(line, section.title)
        for row in section.rows:
            line.emit(finding(section.table, {"section": section.title, **row}))
    if not sources:
        _say_unlocked(line, rendered)
    _say_refused(line, faults)


def _told_of(line: Line) -> tuple[Lane, RenderedLane, tuple[Fault, ...]]:
    """The lane, as it would be where it is refused, and everything that it is refused for."""
    from sparkyard.lanes import drafted  # noqa: PLC0415
    from sparkyard.refusals import told_of  # noqa: PLC0415

    lane, faults = drafted(line, line.options.lane, line.options.set)
    if lane is None:
        raise ConfigError(faults)
    return told_of(lane, faults)


def _say_refused(line: Line, faults: tuple[Fault, ...]) -> None:
    """Why the lane cannot run on this inventory, one finding each, as an error of the configuration is told to machines."""
    if faults:
        line.statuses.append(UsageError.status)
        _heading(line, "why this inventory does not fit the lane")
    for fault in faults:
        data = {"file": fault.file, "lineno": fault.line, "key": fault.key, "message": fault.message}
        line.emit(Event("finding", str(fault), data=data))


def diff(line: Line, other: str) -> None:
    """Two lanes side by side; ``other`` is a lane, or ``LANE@PROFILE``. ``--set`` is for the first."""
    from sparkyard import comparing  # noqa: PLC0415

    name, profile = comparing.named(other)
    one = _side(line, line.lane)
    beside = _side(line, _with(line, name, profile))
    _heading(line, f"{one.name} beside {beside.name}")
    headings = {"lane": one.name, "with": beside.name}
    for section in comparing.sections(one, beside):
        _heading(line, section.title)
        for row in section.rows:
            line.emit(finding(section.table, {"section": section.title, "headings": headings, **row}))


def _with(line: Line, name: str, profile: str) -> Lane:
    """The lane of ``--with``; a fault of what was typed there names that flag, not those that it stands for."""
    try:
        return line.lane_named(name, [f"profile={profile}"] if profile else [])
    except ConfigError as error:
        typed = ("--set", "--lane")
        faults = [replace(fault, file="--with") if fault.file in typed else fault for fault in error.faults]
        raise ConfigError(faults, next_step=error.next_step) from None


def _side(line: Line, lane: Lane) -> comparing.Side:
    """A lane as it is compared: what its rules forbid does not matter here."""
    from sparkyard.comparing import Side  # noqa: PLC0415
    from sparkyard.render import Rendering  # noqa: PLC0415
    from sparkyard.resolve import known_lock  # noqa: PLC0415

    lock = known_lock(lane)
    rendering = Rendering(lane, lock.manifests, lock)
    rendered, _ = rendering.unjudged()
    if faults := rendering.templates.faults():
        raise ConfigError(faults)
    name = f"{lane.name}@{lane.profile.value}" if lane.profile is not None else lane.name
    return Side(name, lane, rendered)


def _parity(line: Line, rendered: RenderedLane) -> str:
    """What is known of the prompts of the lane's chat template."""
    from sparkyard.parity_record import standing  # noqa: PLC0415

    patched = {patch.patched for patch in rendered.patches if patch.name == "template"}
    return standing(line.folders.state, rendered.lane, next(iter(patched), "")) if patched else ""


def render(line: Line, out: str | None) -> None:
    """Print every file that the lane puts on a node, its build and its docker commands; or write them below ``out``."""
    from sparkyard.rendered_tree import texts, write_tree  # noqa: PLC0415

    if out is not None and not out.strip():
        raise UsageError("--out was given without a folder", next_step="invoke render --out=build")
    rendered = line.rendered(line.lane)
    if out is None:
        for name, text in sorted(texts(rendered).items()):
            _heading(line, name, path=name)
            line.emit(Event("finding", name, data={"path": name, "line": text.rstrip("\n") or "(empty)"}))
    else:
        for path in write_tree(rendered, Path(out)):
            status = path.stat()
            row = {"path": str(path), "bytes": status.st_size, "mode": f"{status.st_mode & 0o7777:04o}"}
            line.emit(finding("render", row))
    _say_unlocked(line, rendered)


def _heading(line: Line, text: str, **data: str) -> None:
    line.emit(Event("finding", text, data={"heading": text, **data}))


def _say_unlocked(line: Line, rendered: RenderedLane) -> None:
    if rendered.unlocked:
        wanted = f"invoke lock --lane={rendered.lane}"
        line.say(f"not locked yet: {', '.join(rendered.unlocked)}", details=[], next=wanted)
