"""Which lane for whom, as data: ``recipes/choosing.yml``, with a source for every answer. Reads one file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError, field_validator

from sparkyard.errors import ConfigError, Fault
from sparkyard.recipe_base import Name, Part, Source

FILE = "choosing.yml"


class Answer(Part):
    """What somebody mostly does, and the lanes for it, the best first."""

    when: str
    run: Annotated[list[str], Field(min_length=1)]
    why: str
    source: Name


class Caveat(Part):
    """Something that must be known when the figures are compared."""

    text: str
    source: Name


class Measure(Part):
    """Published figures that stand side by side: those of each recipe whose ``what`` fits the pattern."""

    name: str
    what: str

    @field_validator("what")
    @classmethod
    def _is_pattern(cls, text: str) -> str:
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from error
        return text


class Choosing(Part):
    """The whole file; every ``source`` names one of ``sources``."""

    sources: dict[Name, Source]
    answers: list[Answer]
    caveats: list[Caveat]
    measures: list[Measure]

    def cited(self, name: str) -> str:
        """A source in words: where it was published, or why it was chosen here."""
        source = self.sources[name]
        return source.cite if source.kind == "published" else f"{source.kind}: {source.why or source.cite}"


def read(path: Path) -> Choosing | None:
    """The file; None where there is none. Raises ConfigError with every fault in it."""
    if not path.is_file():
        return None
    try:
        found = Choosing.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ConfigError([Fault(str(path), 0, "", f"is no YAML: {error}")]) from error
    except ValidationError as error:
        places = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
        raise ConfigError([Fault(str(path), 0, key, words) for key, words in places]) from error
    used = {each.source for each in found.answers} | {each.source for each in found.caveats}
    unknown = sorted(used - found.sources.keys())
    if unknown:
        raise ConfigError([Fault(str(path), 0, "sources", f"{name} is not there") for name in unknown])
    return found
