"""``invoke lanes``: every lane beside the others: what it needs, how far it is on these nodes, what others measured, and for whom it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sparkyard import choosing, lane_answers, lane_rows, load
from sparkyard.asking import ask_all
from sparkyard.errors import ConfigError, SparkyardError, UsageError
from sparkyard.events import Event
from sparkyard.lane_rows import Candidate, Told
from sparkyard.line import Line
from sparkyard.resolve import known_lock
from sparkyard.selection import chosen_nodes
from sparkyard.stand_in import of_the_lab
from sparkyard.tables import finding

RULE = " (must be: "
"""What follows a rule's message in its fault."""


def lanes(line: Line) -> None:
    """One row a lane, one a lane and node, the figures, and which to run. Under ``--check`` no node is asked."""
    folders = load.find_recipes(line.project, [Path(f) for f in line.options.recipes], os.environ)
    named = line.options.lane
    if named and named not in folders:
        raise UsageError(f"there is no lane {named}", details=[f"lanes: {', '.join(sorted(folders))}"])
    names = [named] if named else sorted(folders, key=str.lower)
    faults: dict[str, ConfigError] = {}
    everything = [each for name in names if (each := candidate(line, name, folders[name], faults))]
    if named and faults:
        raise faults[named]
    found = [c for c in everything if named or line.inventory.lab or not of_the_lab(c.recipe)]
    told = {} if line.options.check else _ask(line, found)
    _heading(line, "lanes")
    rows = [lane_rows.lane_row(each, told) for each in found]
    for row in rows:
        line.emit(finding("lanes", row))
    for name, error in faults.items():
        broken = f"its recipe has {len(error.faults)} fault{'' if len(error.faults) == 1 else 's'}, the first: {_first(error)}"
        line.emit(finding("lanes", {"lane": name, "possible": broken}))
    _heading(line, "on each node")
    for each in (one for one in found if one.rendered is not None):
        for node in each.nodes:
            line.emit(finding("lanes-nodes", lane_rows.node_row(each, node, told)))
    _compare(line, found, {str(row["lane"]): str(row["possible"]) for row in rows})


def candidate(line: Line, name: str, folder: Path, faults: dict[str, ConfigError]) -> Candidate | None:
    """A lane as this inventory could run it; what is against it is its first fault. None for a recipe with ``faults``."""
    try:
        recipe = load.load_recipe(folder)
    except ConfigError as error:
        faults[name] = error
        return None
    try:
        lane = line.lane_named(name, sets=())
    except SparkyardError as error:
        return Candidate(name, recipe, _why_not(line, recipe.nodes.at_least, error))
    lock = known_lock(lane)
    try:
        rendered = line.rendered(lane)
    except ConfigError as error:
        return Candidate(name, recipe, _first(error), lane, manifests=lock.manifests)
    line.view.mask(rendered.secrets)
    return Candidate(name, recipe, "", lane, rendered, lock.manifests)


def _why_not(line: Line, least: int, error: SparkyardError) -> str:
    count = len(line.inventory.nodes)
    return f"needs {least} nodes, this inventory has {count}" if count < least else _first(error)


def _first(error: SparkyardError) -> str:
    if isinstance(error, ConfigError) and error.faults:
        fault = error.faults[0]
        # a rule's own words; its expression is for whoever starts the lane
        words, _, _ = fault.message.partition(RULE)
        return words if words != fault.message or not fault.key else f"{fault.key}: {words}"
    return error.message


def _ask(line: Line, found: list[Candidate]) -> Told:
    """What the nodes say, each in one round trip; why none was asked, where this is not the head."""
    wanted = lane_rows.questions(found)
    chosen = chosen_nodes(line.inventory, line.options.limit)
    try:
        told = ask_all(line.around, {node: asked for node, asked in wanted.items() if node in chosen})
    except UsageError as error:
        line.say(f"no node was asked: {error.message}", next=error.next_step)
        return {}
    for node, answer in told.items():
        if isinstance(answer, SparkyardError):
            line.statuses.append(answer.status)
            data = {"details": list(answer.details), "next": answer.next_step}
            line.emit(Event("node-unreachable", answer.message, node, data=data))
    return told


def _compare(line: Line, found: list[Candidate], possible: Mapping[str, str]) -> None:
    """The published figures side by side, and which lane for whom."""
    known = choosing.read(_file(line))
    if known is None:
        return
    _heading(line, "published figures (not measured here)")
    for row in lane_answers.figure_rows(found, known):
        line.emit(finding("lanes-figures", row))
    _heading(line, "which should you run?")
    for row in lane_answers.answer_rows(possible, known):
        line.emit(finding("lanes-answers", row))
    for caveat in known.caveats:
        line.say(f"{caveat.text} ({known.cited(caveat.source)})", caveat=caveat.text)


def _file(line: Line) -> Path:
    """Beside the recipes that come with sparkyard."""
    return line.project / "recipes" / choosing.FILE


def _heading(line: Line, text: str) -> None:
    line.emit(Event("finding", text, data={"heading": text}))
