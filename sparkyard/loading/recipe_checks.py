"""What must hold inside a recipe beyond its shape: files that exist, names that match, patterns and templates that parse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from sparkyard import conditions, provenance
from sparkyard.loading.job_checks import check_jobs
from sparkyard.loading.marked import Faults, Marked, dotted
from sparkyard.loading.overrides import RESERVED, variable_of
from sparkyard.loading.patterns import check_pattern
from sparkyard.loading.phrases import placeholder, quoted, unknown
from sparkyard.loading.profiles import PROFILE, check_profiles, check_published
from sparkyard.loading.recipe_templates import check_templates
from sparkyard.loading.settings import check_value
from sparkyard.loading.variables import KNOWN
from sparkyard.recipe import ContainerSpec, Recipe

MEBIBYTE = 1 << 20
TEBIBYTE = 1 << 40
_TAKEN = ("nodes", "env", PROFILE, *KNOWN)
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")

Say = Callable[[str, str], None]


def check_recipe(recipe: Recipe, root: Marked, folder: Path, faults: Faults) -> None:
    """Collect every fault of a recipe that has the right shape."""

    def say(key: str, message: str) -> None:
        faults.at(root.nearest(_steps(key)), key, message)

    _settings(recipe, say)
    check_profiles(recipe, say)
    check_published(recipe, say)
    _nodes(recipe, say)
    _checkpoints(recipe, say)
    _files(recipe, folder, say)
    _services(recipe, say)
    check_jobs(recipe, say)
    _argv_secrets(recipe, say)
    _limits(recipe, say)
    _verify(recipe, say)
    _sources(recipe, root, faults)
    check_templates(recipe, root, folder, faults)


def _sources(recipe: Recipe, root: Marked, faults: Faults) -> None:
    for lack in provenance.lacks(recipe):
        faults.at(root.nearest(lack.path), lack.key, lack.message)


def _steps(key: str) -> list[str | int]:
    return [int(step) if step.isdecimal() else step for step in key.split(".")]


def _settings(recipe: Recipe, say: Say) -> None:
    for name, setting in recipe.settings.items():
        key = f"settings.{name}"
        if name in _TAKEN:
            say(key, f"{name} is a variable of the inventory; give the setting another name")
        elif variable_of(name) in RESERVED:
            say(key, f"{variable_of(name)} has another meaning; give the setting another name")
        if bool(setting.pattern) is not bool(setting.looks_like):
            say(key, "`pattern` and `looks_like`, its meaning in words, come together")
        check_pattern(f"{key}.pattern", setting.pattern, say)
        if setting.default is not None and (fault := check_value(setting, setting.default)):
            say(f"{key}.default", fault)


def _nodes(recipe: Recipe, say: Say) -> None:
    least, most = recipe.nodes.at_least, recipe.nodes.at_most
    if least > most:
        say("nodes.at_least", f"{least} is more than at_most, {most}")
    if isinstance(recipe.order, str):
        return
    ranks = [rank for group in recipe.order for rank in group]
    if sorted(ranks) != list(range(most)):
        say(
            "order",
            f"each rank from 0 to {most - 1} once is expected, found {', '.join(map(str, ranks)) or 'none'}",
        )


def _checkpoints(recipe: Recipe, say: Say) -> None:
    for name, checkpoint in recipe.checkpoints.items():
        revision = checkpoint.revision
        if placeholder(revision):
            say(f"checkpoints.{name}.revision", f"{quoted(revision)} is a placeholder; put the commit there")
        elif not _REVISION.fullmatch(revision):
            say(
                f"checkpoints.{name}.revision",
                f"a commit, branch or tag is expected, found {quoted(revision)}",
            )
        if checkpoint.when:
            _condition(recipe, f"checkpoints.{name}.when", checkpoint.when, say)
        for index, pattern in enumerate(checkpoint.files):
            if not _is_inside(pattern):
                say(
                    f"checkpoints.{name}.files.{index}",
                    f"a relative pattern without .. is expected, found {quoted(pattern)}",
                )


def _condition(recipe: Recipe, key: str, expression: str, say: Say) -> None:
    """Judge a condition over the defaults, so that a wrong name is told when the recipe is read."""
    try:
        conditions.holds(expression, {name: setting.default for name, setting in recipe.settings.items()})
    except ValueError as error:
        say(key, str(error))


def _is_inside(path: str) -> bool:
    """Whether a path stays inside the folder that it is relative to."""
    return bool(path) and not path.startswith(("/", "~")) and ".." not in PurePosixPath(path).parts


def _files(recipe: Recipe, folder: Path, say: Say) -> None:
    places = template_folders(folder)
    for name, file in recipe.files.items():
        _node_path(f"files.{name}.path", file.path, say)
        if file.template is not None:
            _template(f"files.{name}.template", file.template, places, say)
    if recipe.image.build is not None:
        build = recipe.image.build
        for key, path in (("dockerfile", build.dockerfile), ("context", build.context)):
            _own_path(f"image.build.{key}", path, folder, say)


def template_folders(folder: Path) -> tuple[Path, Path]:
    """Where a recipe's template files are looked up: its own folder, then the ``templates`` beside ``recipes``."""
    return folder, folder.parent.parent / "templates"


def _template(key: str, path: str, places: tuple[Path, ...], say: Say) -> None:
    if not _is_inside(path):
        say(key, f"a relative path without .. is expected, found {quoted(path)}")
        return
    found = [place for place in places if (place / path).is_file()]
    if not found:
        say(key, f"no file {path} in the recipe's folder or in templates/")
    elif not _stays(found[0] / path, found[0]):
        say(key, f"{path} is a link that leads out of {found[0].name}/; put the file itself there")


def _own_path(key: str, path: str, folder: Path, say: Say) -> None:
    if not _is_inside(path):
        say(key, f"a relative path without .. is expected, found {quoted(path)}")
    elif not (folder / path).exists():
        say(key, f"no {path} in the recipe's folder")
    elif not _stays(folder / path, folder):
        say(key, f"{path} is a link that leads out of {folder.name}/; put the file itself there")


def _stays(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _node_path(key: str, path: str, say: Say) -> None:
    """A path on a node: absolute or by a template, and not in a folder that a reboot empties."""
    if not path.startswith(("/", "{{", "{%", "~/")):
        say(key, f"an absolute path or one that starts with {{{{ is expected, found {quoted(path)}")
    elif ".." in path.split("/"):
        say(key, f"a path without .. is expected, found {quoted(path)}")
    elif re.match(r"/(tmp|var/tmp)(/|$)", path):
        say(key, f"{quoted(path)} is lost at a reboot; choose another folder")


def _services(recipe: Recipe, say: Say) -> None:
    if bool(recipe.services) == (recipe.scripts is not None):
        say("services", "at least one service is expected, or scripts instead")
    for name, service in recipe.services.items():
        _container(recipe, f"services.{name}", service, say)
    for name, job in recipe.jobs.items():
        _container(recipe, f"jobs.{name}", job, say)
        if job.when:
            _condition(recipe, f"jobs.{name}.when", job.when, say)


def _container(recipe: Recipe, key: str, spec: ContainerSpec, say: Say) -> None:
    _mounts(recipe, spec, key, say)
    for index, file in enumerate(spec.env_files):
        _env_file(recipe, f"{key}.env_files.{index}", file, say)
    if spec.gate is not None and spec.gate.log is not None:
        check_pattern(f"{key}.gate.log", spec.gate.log, say)


def _argv_secrets(recipe: Recipe, say: Say) -> None:
    """What a program shows in its own words must be a setting that is known to be secret."""
    secrets = [name for name, setting in recipe.settings.items() if setting.secret]
    for part, specs in (("services", recipe.services), ("jobs", recipe.jobs)):
        for name, spec in specs.items():
            for index, secret in enumerate(spec.argv_secrets):
                if secret not in secrets:
                    say(f"{part}.{name}.argv_secrets.{index}", unknown("secret setting", secret, secrets))


def _mounts(recipe: Recipe, service: ContainerSpec, key: str, say: Say) -> None:
    targets: dict[str, int] = {}
    for index, mount in enumerate(service.mounts):
        place = f"{key}.mounts.{index}"
        if mount.when:
            _condition(recipe, f"{place}.when", mount.when, say)
        _node_path(f"{place}.source", mount.source, say)
        if not mount.target.startswith(("/", "{{", "{%")) or ".." in mount.target.split("/"):
            say(f"{place}.target", f"an absolute path without .. is expected, found {quoted(mount.target)}")
        if mount.target in targets and not mount.when:
            say(f"{place}.target", f"{mount.target} is the target of mounts.{targets[mount.target]} too")
        targets.setdefault(mount.target, index)


def _env_file(recipe: Recipe, key: str, name: str, say: Say) -> None:
    if name not in recipe.files:
        say(key, unknown("entry of files", name, list(recipe.files)))
    elif recipe.files[name].dialect != "docker-env":
        say(key, f"files.{name} has the dialect {recipe.files[name].dialect}; docker reads docker-env")


def _limits(recipe: Recipe, say: Say) -> None:
    sizes: Mapping[str, tuple[int | None, int]] = {
        "limits.memory": (recipe.limits.memory, TEBIBYTE),
        "limits.disk": (recipe.limits.disk, 64 * TEBIBYTE),
        "limits.guard": (recipe.limits.guard, TEBIBYTE),
        "image.bytes": (recipe.image.bytes, TEBIBYTE),
        "image.build.memory": (recipe.image.build.memory if recipe.image.build else None, TEBIBYTE),
    }
    for key, (size, most) in sizes.items():
        if size and size < MEBIBYTE:
            say(key, f"{size} is less than 1 MiB; sizes are bytes: {size} GiB is {size << 30}")
        elif size and size > most:
            say(key, f"{size} is more than {most >> 40} TiB; sizes are bytes")
    _guard(recipe, say)


def _guard(recipe: Recipe, say: Say) -> None:
    """A guard at or above what a start asks for would kill each start at once; what has no label is never killed."""
    guard, memory = recipe.limits.guard, recipe.limits.memory
    if guard and not memory:
        say("limits.guard", f"limits.memory is not given: a start must ask for more than {guard} bytes")
    elif guard and guard >= memory:
        say("limits.guard", f"{guard} is not less than limits.memory ({memory})")
    if guard and recipe.scripts is not None:
        say(
            "limits.guard",
            "what a kit's own scripts start has no label of sparkyard, and is not killed: take the guard out",
        )


def _verify(recipe: Recipe, say: Say) -> None:
    first: dict[str, int] = {}
    for index, check in enumerate(recipe.verify):
        key = f"verify.{index}"
        if check.name in first:
            say(f"{key}.name", f"{quoted(check.name)} is the name of verify.{first[check.name]} too")
        first.setdefault(check.name, index)
        if check.when:
            _condition(recipe, f"{key}.when", check.when, say)
        if not check.path.startswith("/"):
            say(f"{key}.path", f"a path that starts with / is expected, found {quoted(check.path)}")
        for number, expected in enumerate(check.expect):
            if expected.matches is not None:
                check_pattern(dotted(key, "expect", number, "matches"), expected.matches, say)
