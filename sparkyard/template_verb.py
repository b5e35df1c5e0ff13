"""``invoke template``: the edited texts of a lane on every node; of a chat template, whether it writes what the encoder writes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from sparkyard import parity
from sparkyard.asking import ask
from sparkyard.command import Command, fill
from sparkyard.errors import CouldNotCheck, UsageError
from sparkyard.facts import file, file_question
from sparkyard.fetched import texts
from sparkyard.line import Line
from sparkyard.manifest import place
from sparkyard.model import Lane
from sparkyard.parity_record import record_path, standing
from sparkyard.patching import Patched, difference
from sparkyard.plan import Plan
from sparkyard.recipe import EditSpec
from sparkyard.rendered import RenderedLane
from sparkyard.reporting.jsonline import timestamp
from sparkyard.state import make_folder, write_json
from sparkyard.steps.patch import patch_steps
from sparkyard.tables import finding
from sparkyard.world import must

NAME = "template"
"""The patch whose text is a chat template."""


def template(line: Line, check_parity: bool, encoding: str) -> None:
    """Show what the edits change, place the texts on every node, and compare with the encoder when asked.

    Raises UsageError for a lane without edited texts and for parity of one without a chat template, PatchRefused and StepFailed as ``fetched.texts`` does.
    """
    lane = line.lane
    if not lane.recipe.patches:
        raise UsageError(f"lane {lane.name} has no text that is edited", next_step="invoke show")
    if (check_parity or encoding) and NAME not in lane.recipe.patches:
        raise UsageError(
            f"lane {lane.name} edits no chat template (no entry {NAME} in its patches), so there is no parity to check"
        )
    found = texts(line, lane)
    rendered = line.rendered(lane)
    for text in found.values():
        line.emit(finding("template", _row(text)))
        _show_edits(line, lane, text)
    line.run(Plan("template", lane.name, patch_steps(rendered, found)), rendered.secrets)
    if check_parity or encoding:
        _parity(line, lane, rendered, found, encoding)


def _row(text: Patched) -> dict[str, str]:
    return {"text": text.name, "pristine": text.known.pristine, "patched": text.known.patched}


def _show_edits(line: Line, lane: Lane, text: Patched) -> None:
    """Why each edit is made; under ``--diff`` all that they change, with the file's own name."""
    edits = lane.recipe.patches[text.name].edits
    details = [f"{n}. {edit.why}" for n, edit in enumerate(edits, 1)]
    if line.options.diff:
        details += difference(text.pristine, text.patched, lane.recipe.patches[text.name].file, lines=None)
    line.say(f"{text.name}: {_count(edits)}", details=details)


def _count(edits: list[EditSpec]) -> str:
    return f"{len(edits)} edit{'' if len(edits) == 1 else 's'}" if edits else "placed as it is, without edits"


# --- parity ---------------------------------------------------------------------------------------------------------------


def _parity(line: Line, lane: Lane, rendered: RenderedLane, found: dict[str, Patched], encoding: str) -> None:
    """Run the encoder over the suite, compare, show, keep the result; exit status 3 when anything differs."""
    if line.options.check:
        line.say("parity: would run the checkpoint's encoder in a container")
        return
    folder = _encoder_folder(line, lane, encoding)
    cases = parity.suite()
    shell = line.around.shell(lane.head.name)
    source = must(shell, _sha256(folder), f"reading {folder}/encoding.py").text.split()[0]
    command = parity.encoder_command(rendered.image.reference, folder, cases)
    done = must(shell, command, "running the checkpoint's encoder")
    prompts = parity.encoder_prompts(done.out, len(cases))
    outcomes = tuple(parity.compare(found[NAME].patched.decode(), cases, prompts))
    _tell(line, lane, outcomes, found[NAME], source)


def _sha256(folder: str) -> Command:
    return Command.of("sha256sum", f"{folder}/encoding.py", timeout=30)


def _encoder_folder(line: Line, lane: Lane, encoding: str) -> str:
    """The folder with ``encoding.py``: as named, else in a checkpoint of the lane on the head. Raises CouldNotCheck."""
    if encoding and not encoding.startswith("/"):
        raise UsageError(f"--encoding takes an absolute folder on {lane.head.name}, not {encoding!r}")
    head = lane.head
    places = [place(head, manifest).folder for manifest in line.manifests(lane).values()]
    folders = [encoding] if encoding else [f"{path}/encoding" for path in places]
    questions = {folder: file_question(f"{folder}/encoding.py") for folder in folders}
    answers = ask(line.around, head.name, tuple(questions.values()))
    for folder, question in questions.items():
        if file(answers, question).kind == "regular":
            return fill(folder, answers.discovered)
    raise CouldNotCheck(
        f"parity: there is no encoding.py in {' or '.join(fill(f, answers.discovered) for f in folders)}",
        node=head.name,
        next_step="download the folder encoding/ of the checkpoint's repository, then: "
        f"invoke template --lane={lane.name} --encoding=/that/folder",
    )


def _tell(line: Line, lane: Lane, outcomes: tuple[parity.Outcome, ...], text: Patched, encoder: str) -> None:
    for outcome in outcomes:
        line.emit(
            finding(
                "parity", {"conversation": outcome.case.name, "result": outcome.result, "why": outcome.words}
            )
        )
    differ = [o.case.name for o in outcomes if o.result == "differs"]
    equal = sum(o.result == "equal" for o in outcomes)
    record = {
        "lane": lane.name,
        "template": text.known.patched,
        "encoder": encoder,
        "suite": suite_hash(),
        "when": timestamp(datetime.now(UTC)),
        "equal": equal,
        "gaps": [o.case.name for o in outcomes if o.result == "gap"],
        "differ": differ,
        "proven": not differ,
    }
    path = record_path(line.folders.state, lane.name)
    make_folder(path.parent)
    write_json(path, record)
    words = standing(line.folders.state, lane.name, text.known.patched)
    line.say(words, parity=record)
    if differ:
        line.statuses.append(3)


def suite_hash() -> str:
    """One hash of all files of the suite."""
    found = hashlib.sha256()
    for path in sorted(parity.suite_folder().glob("*.json")):
        found.update(path.read_bytes())
    return found.hexdigest()
