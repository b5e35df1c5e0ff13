"""The Jinja of a recipe: every expression parses, and no secret reaches a command line or a readable file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError, nodes

from sparkyard.loading.marked import Faults, Marked, dotted
from sparkyard.recipe import Recipe

PROSE = ("about", "cite", "why", "title", "not_supported", "matches", "log", "source")
"""Keys whose text is never rendered (``source`` of a mount is: see ``_templates``)."""


def _way_out(key: str) -> str:
    return "the file needs secret: true" if key.startswith("files.") else "use env_files and secret: true"


def check_templates(recipe: Recipe, root: Marked, folder: Path, faults: Faults) -> None:
    """Collect every template of the recipe that does not parse, and every secret in the wrong place."""
    environment = Environment()  # noqa: S701 (only parsed, never rendered)
    secrets = {name for name, setting in recipe.settings.items() if setting.secret}
    for key, marked in _templates(root):
        tree = _parsed(environment, key, marked, faults)
        if tree is not None and secrets and _is_open(key, recipe):
            for name in sorted(secrets & set(_names(tree))):
                faults.at(marked, key, f"the secret {name} is readable here; {_way_out(key)}")
    _files(environment, recipe, root, folder, faults)


def _templates(root: Marked) -> Iterator[tuple[str, Marked]]:
    for key, leaf in root.leaves():
        last = key.rsplit(".", 1)[-1]
        prose = (last in PROSE and not (last == "source" and ".mounts." in key)) or _is_edit(key)
        if isinstance(leaf.value, str) and not prose and ("{" in leaf.value or _is_rule(key)):
            yield key, leaf


def _is_edit(key: str) -> bool:
    """Whether it is text of a fetched file, which may well be a template of somebody else's."""
    return key.startswith("patches.") and ".edits." in key


def _is_rule(key: str) -> bool:
    return key.startswith("rules.") and key.endswith(".must")


def _parsed(environment: Environment, key: str, marked: Marked, faults: Faults) -> nodes.Template | None:
    text = f"{{{{ {marked.value} }}}}" if _is_rule(key) else str(marked.value)
    try:
        return environment.parse(text)
    except TemplateSyntaxError as error:
        faults.at(marked, key, f"not a Jinja template: {error.message}")
        return None


def _is_open(key: str, recipe: Recipe) -> bool:
    """Whether what stands at a key can be read by others: in ``ps``, in ``docker inspect``, or in a 0644 file."""
    steps = key.split(".")
    if steps[0] in {"services", "jobs"} and len(steps) > 2:
        return steps[2] in {"options", "words", "env"}
    if steps[0] == "files" and len(steps) > 2 and steps[2] == "values":
        return not recipe.files[steps[1]].secret
    return steps[0] in {"env", "image"}


def _names(tree: nodes.Node) -> Iterator[str]:
    """The last parts of every dotted or indexed name: ``lane.api_key`` gives ``api_key``; not where it is asked only whether it is set."""
    conditions: list[nodes.If | nodes.CondExpr] = [*tree.find_all(nodes.If), *tree.find_all(nodes.CondExpr)]
    asked = {id(each.test) for each in conditions}
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        if id(node) in asked:
            continue
        if isinstance(node, nodes.Getattr):
            yield node.attr
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            yield str(node.arg.value)


def _files(environment: Environment, recipe: Recipe, root: Marked, folder: Path, faults: Faults) -> None:
    secrets = {name for name, setting in recipe.settings.items() if setting.secret}
    for name, file in recipe.files.items():
        path = _template_path(folder, file.template)
        if path is None:
            continue
        key = dotted("files", name, "template")
        marked = root.nearest(["files", name, "template"])
        try:
            tree = environment.parse(path.read_text(encoding="utf-8"))
        except TemplateSyntaxError as error:
            faults.at(marked, key, f"{path.name}:{error.lineno}: not a Jinja template: {error.message}")
        except (OSError, UnicodeDecodeError):
            faults.at(marked, key, f"{path.name} cannot be read as UTF-8 text")
        else:
            used = sorted(secrets & set(_names(tree)))
            if used and not file.secret:
                faults.at(marked, key, f"it holds the secret setting {used[0]}: the file needs secret: true")


def _template_path(folder: Path, template: str | None) -> Path | None:
    if template is None or template.startswith("/") or ".." in template.split("/"):
        return None
    places = (folder, folder.parent.parent / "templates")
    return next((place / template for place in places if (place / template).is_file()), None)
