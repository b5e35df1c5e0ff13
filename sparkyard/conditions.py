"""Conditions of a recipe over its settings: which checkpoints belong to a lane. Pure.

The one place that decides; ``Lane.checkpoints`` is how everybody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sparkyard.errors import ConfigError, Fault

if TYPE_CHECKING:
    from sparkyard.model import Lane
    from sparkyard.recipe import CheckpointSpec
    from sparkyard.templating import Sandbox


@cache
def _sandbox() -> Sandbox:
    from sparkyard.templating import environment  # noqa: PLC0415 - Jinja, only where a recipe has a condition

    return environment(())


def holds(expression: str, settings: Mapping[str, Any]) -> bool:
    """Whether a Jinja expression over ``lane`` (the settings) is true. Raises ValueError with what is wrong with it."""
    from jinja2 import TemplateError  # noqa: PLC0415

    from sparkyard.templating import Scope  # noqa: PLC0415

    try:
        found = _sandbox().compile_expression(expression, undefined_to_none=False)(
            lane=Scope("lane", settings)
        )
        return bool(found)
    except (TemplateError, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


def belonging(lane: Lane) -> dict[str, CheckpointSpec]:
    """The checkpoints of a lane whose condition holds. Raises ConfigError for conditions that cannot be judged."""
    settings = {name: value.value for name, value in lane.settings.items()}
    found: dict[str, CheckpointSpec] = {}
    faults: list[Fault] = []
    for name, spec in lane.recipe.checkpoints.items():
        try:
            if not spec.when or holds(spec.when, settings):
                found[name] = spec
        except ValueError as error:
            file = str(lane.recipe_folder / "recipe.yml")
            faults.append(Fault(file, 0, f"checkpoints.{name}.when", str(error)))
    if faults:
        raise ConfigError(faults)
    return found
