"""The shape of a patch in a recipe: a text of somebody else at a pin, and the edits that it gets."""

from __future__ import annotations

import ast
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from sparkyard.recipe_base import GitSpec, Part, Source, Template, Who


class PythonEdit(Part):
    """Keywords added to one call of a Python text, by its syntax: comments and everything else stay byte for byte.

    Attributes:
        call: the name of what is called (``SamplingDefaults``); ``argument`` the keyword whose value the call must be, if given.
        add: keyword → expression, as it is written.
        names: names in the expressions that must come from where the called name comes from; imported beside it if they are not.
        expects: keyword → value that the call must have before (others are refused).
    """

    call: str
    add: dict[str, str]
    argument: str = ""
    names: list[str] = []
    expects: dict[str, str | int | float | bool | None] = {}

    @field_validator("add")
    @classmethod
    def _are_expressions(cls, add: dict[str, str]) -> dict[str, str]:
        for keyword, text in add.items():
            try:
                ast.parse(text, mode="eval")
            except (SyntaxError, ValueError) as error:
                raise ValueError(f"{keyword} is no Python expression: {text}") from error
        return add


class EditSpec(Part):
    """One edit of a fetched text: ``find`` must stand there exactly ``count`` times and becomes ``replace``, or a ``python`` edit."""

    why: str
    find: str = ""
    replace: str = ""
    count: Annotated[int, Field(ge=1)] = 1
    python: PythonEdit | None = None

    @model_validator(mode="after")
    def _one_way(self) -> EditSpec:
        if bool(self.find) == (self.python is not None):
            raise ValueError("exactly one of `find` and `python` is needed")
        return self


class PatchSpec(Part):
    """A text file that is fetched at a pin, edited, and placed on nodes: pristine, patched, or neither (then refused).

    ``pristine`` and ``patched`` are the sha256 of the two states, empty until the first fetch locks them. Without ``edits`` the text
    is placed as it is. ``md5`` is what somebody published of the pristine text: the whole md5, or its first 8 digits or more.
    """

    git: GitSpec
    file: str
    edits: list[EditSpec] = []
    path: Template
    source: Source
    nodes: Who = "all"
    pristine: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    patched: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    md5: Annotated[str, Field(pattern=r"^([0-9a-f]{8,32})?$")] = ""
