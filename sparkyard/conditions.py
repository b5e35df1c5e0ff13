"""Conditions of a recipe over its settings: which checkpoints and jobs belong to a lane. Pure.

The one place that decides; ``Lane.checkpoints`` is how everybody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sparkyard.errors import ConfigError, Fault

if TYPE_CHECKING:
    from sparkyard.model import Lane
    from sparkyard.recipe import CheckpointSpec, JobSpec
    from sparkyard.templating import Sandbox, Templates


class _Conditional(Protocol):
    @property
    def when(self) -> str: ...


Conditional = TypeVar("Conditional", bound=_Conditional)


@cache
def _sandbox() -> Sandbox:
    from sparkyard.templating import environment  # noqa: PLC0415 - Jinja, only where a recipe has a condition

    return environment(())


def holds(expression: str, settings: Mapping[str, Any]) -> bool:
    """Whether a Jinja expression over ``lane`` (the settings) is true. Raises ValueError with what is wrong with it."""
    from sparkyard.templating import Scope  # noqa: PLC0415

    return true(expression, {"lane": Scope("lane", settings)})


def applies(key: str, when: str, settings: Mapping[str, Any], templates: Templates) -> bool:
    """Whether a part of a recipe is there with these settings: always without ``when``. A condition at fault is noted, and is not true."""
    try:
        return not when or holds(when, settings)
    except ValueError as error:
        templates.fault(f"{key}.when", str(error))
        return False


def true(expression: str, names: Mapping[str, Any]) -> bool:
    """Whether a Jinja expression over some names is true. Raises ValueError with what is wrong with it."""
    from jinja2 import TemplateError  # noqa: PLC0415

    from sparkyard.templating import compiled  # noqa: PLC0415
    from sparkyard.unlocked import NotLocked  # noqa: PLC0415

    try:
        return bool(compiled(expression)(**names))
    except NotLocked as mark:
        raise ValueError(f"{mark} is needed: the lock does not say it yet") from mark
    except (TemplateError, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


def said(template: str, names: Mapping[str, Any]) -> str:
    """A text with templates in it. Raises ValueError with what is wrong with it."""
    from jinja2 import TemplateError  # noqa: PLC0415

    from sparkyard.unlocked import NotLocked  # noqa: PLC0415

    try:
        return _sandbox().from_string(template).render(names)
    except NotLocked as mark:
        raise ValueError(f"{mark} is needed: the lock does not say it yet") from mark
    except (TemplateError, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


def belonging(lane: Lane) -> dict[str, CheckpointSpec]:
    """The checkpoints of a lane whose condition holds. Raises ConfigError for conditions that cannot be judged."""
    return _belonging(lane, "checkpoints", lane.recipe.checkpoints)


def jobs_of(lane: Lane) -> dict[str, JobSpec]:
    """The jobs of a lane whose condition holds. Raises ConfigError for conditions that cannot be judged."""
    return _belonging(lane, "jobs", lane.recipe.jobs)


def _belonging(lane: Lane, part: str, specs: Mapping[str, Conditional]) -> dict[str, Conditional]:
    settings = {name: value.value for name, value in lane.settings.items()}
    found: dict[str, Conditional] = {}
    faults: list[Fault] = []
    for name, spec in specs.items():
        try:
            if not spec.when or holds(spec.when, settings):
                found[name] = spec
        except ValueError as error:
            file = str(lane.recipe_folder / "recipe.yml")
            faults.append(Fault(file, 0, f"{part}.{name}.when", str(error)))
    if faults:
        raise ConfigError(faults)
    return found
