"""What must be the same on all ranks, or in several places, and is not; found in the lane as rendered. Pure.

A recipe that gives ``differ`` for a service names there what may differ; everything else must be equal: words by their flag, variables and options
by name, mounts by target. Where ``root`` and ``models`` of a node lie is the person's own affair, and no difference. What several services, or a
variable and a word, must agree on is named by ``agree``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkyard.command import mask
from sparkyard.model import Container, Lane, Node, RenderedFile
from sparkyard.normal_form import Form, of_run
from sparkyard.rendered import RenderedLane

NOTHING = "not there"


def form_of(container: Container, files: tuple[RenderedFile, ...]) -> Form:
    """The normal form of a container; ``files`` are the rendered files of its node."""
    return of_run(container.words, {file.path: file.content for file in files})


def faults(lane: Lane, rendered: RenderedLane) -> Iterator[tuple[str, str]]:
    """(key, message) of everything that differs between ranks or places and must not."""
    yield from differences(lane, rendered)
    yield from disagreements(lane, rendered)


def differences(lane: Lane, rendered: RenderedLane) -> Iterator[tuple[str, str]]:
    """(key, message) of what ranks of one service have otherwise and is not among its ``differ``."""
    for name, spec in lane.recipe.services.items():
        if spec.differ is None:
            continue
        forms = {
            container.rank: placed(form_of(container, rendered.files_of(container.node)), node)
            for node in lane.nodes
            for container in rendered.containers_of(node.name)
            if container.service == name and container.words
        }
        for key, values in unequal(forms).items():
            if key.partition(".")[2] not in spec.differ:
                message = f"must be the same on all ranks: {told(lane, values, rendered.secrets)}"
                advice = "make it so, or name it in `differ` if the ranks may have it otherwise"
                yield f"services.{name}.{key}", f"{message}; {advice}"


def disagreements(lane: Lane, rendered: RenderedLane) -> Iterator[tuple[str, str]]:
    """(key, message) of what ``agree`` names and has several values, or stands nowhere."""
    forms = [(c, form_of(c, rendered.files_of(c.node))) for c in rendered.containers if c.words]
    for number, spec in enumerate(lane.recipe.agree):
        values: dict[str, list[str]] = {}
        for name in spec.names:
            found = list(_places(name, forms))
            if not found:
                yield f"agree.{number}", f"{name} is no variable and no flag of any service"
            for text, place in found:
                values.setdefault(text, []).append(place)
        if len(values) > 1:
            told = "; ".join(
                f"{mask(text, rendered.secrets) or 'no value'} at {', '.join(where)}"
                for text, where in values.items()
            )
            yield (
                f"agree.{number}",
                f"{spec.what} must be the same wherever it stands ({spec.source}): {told}",
            )


def _places(name: str, forms: list[tuple[Container, Form]]) -> Iterator[tuple[str, str]]:
    """(text, place) of each variable and each word of this name."""
    for container, form in forms:
        for part, texts in (("env", form.env), ("words", form.words)):
            if name in texts:
                yield texts[name], f"services.{container.service}.{part}.{name} (rank {container.rank})"


def placed(form: Form, node: Node) -> Form:
    """The form with the node's own folders of checkpoints and files by their names."""

    def named(source: str) -> str:
        for path, name in ((node.models, "<models>"), (node.root, "<root>")):
            if source == path or source.startswith(f"{path}/"):
                return name + source[len(path) :]
        return source

    mounts = {target: named(source) for target, source in form.mounts.items()}
    return Form(form.options, form.env, mounts, form.words, form.image)


def unequal(forms: Mapping[int, Form]) -> dict[str, dict[int, str | None]]:
    """``words.--context`` → rank → text, of every entry that is not the same on all ranks."""
    entries = {
        rank: {f"{part}.{key}": text for part, texts in form.parts().items() for key, text in texts.items()}
        for rank, form in forms.items()
    }
    keys = dict.fromkeys(key for each in entries.values() for key in each)
    found = {key: {rank: each.get(key) for rank, each in entries.items()} for key in keys}
    return {key: values for key, values in found.items() if len(set(values.values())) > 1}


def told(lane: Lane, values: Mapping[int, str | None], secrets: tuple[str, ...]) -> str:
    """``a on rank 0 (spark-1), b on ranks 1, 2 (spark-2, spark-3)``."""
    ranks: dict[str | None, list[int]] = {}
    for rank, value in values.items():
        ranks.setdefault(value, []).append(rank)
    return ", ".join(
        f"{NOTHING if value is None else mask(value, secrets) or 'no value'} on rank{'s' if len(those) > 1 else ''} "
        f"{', '.join(map(str, those))} ({', '.join(lane.nodes[rank].name for rank in those)})"
        for value, those in ranks.items()
    )
