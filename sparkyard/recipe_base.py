"""What every part of a recipe is made of: frozen pydantic models that refuse unknown keys, and the source of a value."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Template = str
Who = Literal["all", "head", "workers"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Seconds = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """Base of every part of a recipe: frozen, unknown keys refused, no conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Source(Part):
    """Where a value comes from: ``published`` and ``derived`` cite a place, ``chosen`` says why."""

    kind: Literal["published", "derived", "chosen"]
    cite: str = ""
    why: str = ""

    @model_validator(mode="after")
    def _says_it(self) -> Source:
        if self.kind == "chosen" and not self.why:
            raise ValueError("a chosen value needs `why`")
        if self.kind != "chosen" and not self.cite:
            raise ValueError(f"a {self.kind} value needs `cite`")
        return self


class GitSpec(Part):
    """A git repository at a commit: 40 hex, or the first 7 or more, which ``invoke lock`` resolves once."""

    url: Annotated[str, Field(pattern=r"^https://[\w./-]+$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]
    source: Source
