"""What must hold of the jobs and stages of a recipe: names that are there, no circles, places that fit, patterns that compile."""

from __future__ import annotations

from collections.abc import Callable

from sparkyard.loading.patterns import check_pattern
from sparkyard.loading.phrases import unknown
from sparkyard.recipe import JobSpec, Recipe

Say = Callable[[str, str], None]
MEBIBYTE = 1 << 20


def check_jobs(recipe: Recipe, say: Say) -> None:
    """Collect every fault of ``jobs`` and ``stages``; what jobs share with services is checked with these."""
    for name, job in recipe.jobs.items():
        _names(recipe, name, say)
        _needs(recipe, name, job, say)
        _makes(job, f"jobs.{name}", say)
        _brings(recipe, name, job, say)
        if 0 < job.memory < MEBIBYTE:
            said = f"{job.memory} is less than 1 MiB; sizes are bytes: {job.memory} GiB is {job.memory << 30}"
            say(f"jobs.{name}.memory", said)
        for index, one in enumerate(job.says):
            check_pattern(f"jobs.{name}.says.{index}.pattern", one.pattern, say)
    _circles(recipe, say)
    _stages(recipe, say)


def _names(recipe: Recipe, name: str, say: Say) -> None:
    """Containers are called by lane, service or ``job-`` and job, and rank."""
    if name in recipe.services:
        say(f"jobs.{name}", f"{name} is the name of a service too; give the job another one")
    if f"job-{name}" in recipe.services:
        say(f"services.job-{name}", f"its containers would have the names of those of jobs.{name}")
    if recipe.jobs[name].at == "start" and recipe.scripts is not None:
        say(f"jobs.{name}.at", "a lane that its own scripts start has no place for it: `build` is expected")


def _brings(recipe: Recipe, name: str, job: JobSpec, say: Say) -> None:
    for index, one in enumerate(job.brings):
        key = f"jobs.{name}.brings.{index}"
        if one.setting not in recipe.settings:
            say(f"{key}.setting", unknown("setting", one.setting, list(recipe.settings)))
        elif recipe.settings[one.setting].default:
            say(f"{key}.setting", f"{one.setting} has a default; what a job brings forth has none")
        check_pattern(f"{key}.log", one.log, say)
        if job.at != "build" or job.nodes == "workers":
            say(key, "only a job of build with a rank on the head can bring forth a setting")


def _needs(recipe: Recipe, name: str, job: JobSpec, say: Say) -> None:
    for index, need in enumerate(job.needs):
        key = f"jobs.{name}.needs.{index}"
        if need not in recipe.jobs:
            say(key, unknown("job", need, list(recipe.jobs)))
        elif job.at == "build" and recipe.jobs[need].at == "start":
            say(key, f"{need} runs in start, after everything of build")


def _circles(recipe: Recipe, say: Say) -> None:
    """One fault for each circle of needs, at its first job in the order of the file."""
    told: set[str] = set()
    for name in recipe.jobs:
        circle = _circle(recipe, name)
        if circle and not told & set(circle):
            told |= set(circle)
            say(f"jobs.{name}.needs", f"jobs that need each other in a circle: {' → '.join((*circle, name))}")


def _circle(recipe: Recipe, name: str) -> tuple[str, ...]:
    """The way from a job by its needs back to itself; empty without one."""
    todo: list[tuple[str, tuple[str, ...]]] = [(name, (name,))]
    seen: set[str] = set()
    while todo:
        here, way = todo.pop()
        for need in recipe.jobs[here].needs:
            if need == name:
                return way
            if need in recipe.jobs and need not in seen:
                seen.add(need)
                todo.append((need, (*way, need)))
    return ()


def _makes(job: JobSpec, key: str, say: Say) -> None:
    for index, output in enumerate(job.makes):
        place = f"{key}.makes.{index}"
        if output.bytes is None and output.at_least is None:
            say(place, "how large is it: `bytes`, or `at_least` where that is not known")
        elif output.bytes is not None and output.at_least is not None:
            say(place, "`bytes` says it exactly; `at_least` is for what is not known")
    parts = [("makes", n, part.nodes) for n, part in enumerate(job.makes)]
    parts += [("room", n, part.nodes) for n, part in enumerate(job.room)]
    parts += [("says", n, part.nodes) for n, part in enumerate(job.says)]
    for what, number, nodes in parts:
        if nodes is not None and job.nodes != "all" and nodes not in ("all", job.nodes):
            say(f"{key}.{what}.{number}.nodes", f"the job has no rank there: it runs on {job.nodes}")


def _stages(recipe: Recipe, say: Say) -> None:
    if not recipe.stages:
        return
    starting = [name for name, job in recipe.jobs.items() if job.at == "start"]
    known = [*recipe.services, *starting]
    for index, name in enumerate(recipe.stages):
        key = f"stages.{index}"
        if name in recipe.jobs and name not in starting:
            say(key, f"{name} runs in build, before every stage; `at: start` gives it a place here")
        elif name not in known:
            say(key, unknown("service or job of start", name, known))
        elif name in recipe.stages[:index]:
            say(key, f"{name} stands at stages.{recipe.stages.index(name)} too")
    for name in known:
        if name not in recipe.stages:
            say("stages", f"{name} is missing, and would never be started")
    _order(recipe, starting, say)


def _order(recipe: Recipe, starting: list[str], say: Say) -> None:
    place = {name: index for index, name in enumerate(recipe.stages)}
    for name in starting:
        for need in recipe.jobs[name].needs:
            if need in place and name in place and place[need] > place[name]:
                say(f"stages.{place[name]}", f"{name} needs {need}, which comes after it")
