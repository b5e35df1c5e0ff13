"""Jinja for recipes: sandboxed, strict, with a short list of filters; every fault collected with its place. Pure.

Filters: default first float int items join json last length list lower map max min quote reject rejectattr replace round
select selectattr sort string sum trim unique upper. ``json`` prints compact JSON, ``quote`` quotes for a POSIX shell, ``engram_rows``
computes the rows of Engram tables (``engram.py``). What is not locked yet (``unlocked.py``) passes every filter as it is.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import traceback
from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache, wraps
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import BaseLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError, meta
from jinja2 import Environment as JinjaEnvironment
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sparkyard.engram import engram_rows
from sparkyard.errors import Fault
from sparkyard.unlocked import NotLocked, Unlocked

_SETTING = re.compile(r"\blane\.(\w+)")
FILTERS = [
    "default",
    "first",
    "float",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "round",
    "select",
    "selectattr",
    "sort",
    "string",
    "sum",
    "trim",
    "unique",
    "upper",
]


class Scope(dict[str, Any]):
    """Names of a template with the name by which errors call it. Its keys win over the methods of a mapping."""

    def __init__(self, path: str, names: Mapping[str, Any]) -> None:
        super().__init__(names)
        self.path = path


def _empty(source: str, scope: Scope) -> str:
    """Why a value is empty, for the person who set it so; else what the recipe must say."""
    settings = scope.get("lane", {})
    unset = [name for name in dict.fromkeys(_SETTING.findall(source)) if settings.get(name, 0) in ("", None)]
    if unset:
        return f"needs the setting {' and '.join(unset)}, which is empty: give it a value"
    return "is empty here, which is not the same as unset: leave it out with {% if … %}"


class Discovered:
    """``discovered.gid`` or ``discovered["gid.rocep1s0f1"]``: the mark of a value that is known only on the node.

    ``other`` is ``@name`` for what another node than the rendered one must tell.
    """

    def __init__(self, other: str = "") -> None:
        self._other = other

    def __getitem__(self, name: str) -> str:
        return f"<discovered: {name}{self._other}>"


class Strict(StrictUndefined):
    """Refuses to be used, and says which name of which scope is not there."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = str(self._undefined_name), self._undefined_obj
        if not isinstance(owner, Scope):
            return str(super()._undefined_message)
        near = difflib.get_close_matches(name, owner, 1)
        return f"{owner.path}.{name} is not known" + (f" (did you mean {near[0]}?)" if near else "")


class Sandbox(ImmutableSandboxedEnvironment):
    """No mutation, no private attributes, no powers and no repeated texts; keys of a scope before its methods."""

    intercepted_binops = frozenset({"*", "**"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Scope):
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if isinstance(obj, Unlocked):
            return obj
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        unlocked = next((side for side in (left, right) if isinstance(side, Unlocked)), None)
        if unlocked is not None:
            return unlocked
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"{operator} is only for the product of two numbers")
        return super().call_binop(context, operator, left, right)


class Folders(BaseLoader):
    """Templates below some folders, the first that has it; nothing outside them, also not by a link."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = tuple(folder.resolve() for folder in folders)

    def get_source(self, environment: JinjaEnvironment, template: str) -> tuple[str, str, Callable[[], bool]]:
        for folder in self.folders:
            path = (folder / template).resolve()
            if path.is_relative_to(folder) and path.is_file():
                return path.read_text(), str(path), lambda: True
        raise TemplateNotFound(template)


def _no_none(value: Any) -> Any:
    if value is None:
        raise TemplateError("the value is null: set it, or give it a default")
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _passing(each: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, but what is not locked yet passes it. Some filters of Jinja get their context before the value."""
    place = 1 if hasattr(each, "jinja_pass_arg") else 0

    @wraps(each)
    def filtered(*words: Any, **named: Any) -> Any:
        value = words[place] if len(words) > place else None
        return value if isinstance(value, Unlocked) else each(*words, **named)

    return filtered


def environment(folders: tuple[Path, ...]) -> Sandbox:
    """The Jinja environment of recipes; ``folders`` are where ``{% include %}`` and template files are looked up."""
    made = Sandbox(
        undefined=Strict,
        keep_trailing_newline=True,
        loader=Folders(folders),
        finalize=_no_none,
        autoescape=False,
    )
    found = {name: made.filters[name] for name in FILTERS} | {
        "json": _json,
        "quote": lambda value: shlex.quote(str(value)),
        "engram_rows": engram_rows,
    }
    made.filters = {name: _passing(each) for name, each in found.items()}
    made.globals = {"range": made.globals["range"]}
    return made


@cache
def _plain() -> Sandbox:
    """Compiles what every environment of recipes would compile alike."""
    return environment(())


@lru_cache(maxsize=8192)
def _code(source: str) -> CodeType:
    """A template compiled once: a recipe has the same ones on every rank. Raises TemplateSyntaxError."""
    return _plain().compile(source)


@lru_cache(maxsize=8192)
def compiled(expression: str) -> Callable[..., Any]:
    """An expression compiled once. Raises TemplateSyntaxError."""
    return _plain().compile_expression(expression, undefined_to_none=False)


class Templates:
    """Renders the templates of one recipe and collects the faults instead of stopping at the first.

    Args:
        recipe: the recipe's file, named in faults.
        folders: where template files are looked up.
        line_of: the line of a dotted key in the recipe's file, 0 when it is not known; asked only for faults.
    """

    def __init__(self, recipe: str, folders: tuple[Path, ...], line_of: Callable[[str], int]) -> None:
        self.recipe = recipe
        self.environment = environment(folders)
        self.line_of = line_of
        self.found: dict[tuple[str, int, str, str], list[str]] = {}

    def fault(self, key: str, message: str, node: str = "", *, file: str = "", line: int = 0) -> None:
        """Note a fault; the same one on several nodes is one fault that names them."""
        place = (file or self.recipe, line or self.line_of(key), key, message)
        nodes = self.found.setdefault(place, [])
        if node and node not in nodes:
            nodes.append(node)

    def faults(self) -> tuple[Fault, ...]:
        return tuple(
            Fault(file, line, key, message + (f" (on {', '.join(nodes)})" if nodes else ""))
            for (file, line, key, message), nodes in self.found.items()
        )

    def text(self, key: str, source: str, scope: Scope) -> str:
        """The rendered text of one value of the recipe; empty after a fault."""
        return self._text(key, source, scope) or ""

    def _text(self, key: str, source: str, scope: Scope) -> str | None:
        """The same; None after a fault."""
        if "{" not in source:
            return source

        def render() -> str:
            made = self.environment.template_class.from_code(
                self.environment, _code(source), self.environment.make_globals(None)
            )
            return made.render(scope)

        found = self._guarded(key, scope, render)
        return None if found is None else str(found)

    def optional(self, key: str, source: str, scope: Scope) -> str | None:
        """The rendered text; None when it is empty because of a ``{% if %}`` in it. Empty by accident is a fault."""
        text = self._text(key, source, scope)
        if text is None or text or not source:
            return text or ""
        if "{%" in source:
            return None
        self.fault(key, _empty(source, scope), scope.path)
        return ""

    def demanded(self, key: str, source: str, scope: Scope) -> str:
        """The rendered text; that it is empty is a fault, whatever the reason. Empty after a fault."""
        text = self._text(key, source, scope)
        if text is not None and not text.strip():
            self.fault(key, "is empty; leave the entry out where there is none", scope.path)
        return text or ""

    def file(self, key: str, name: str, scope: Scope) -> str:
        """The rendered text of a template file; empty after a fault."""
        return str(self._guarded(key, scope, lambda: self.environment.get_template(name).render(scope)) or "")

    def holds(self, key: str, expression: str, scope: Scope) -> bool:
        """Whether an expression is true; True after a fault, so that it is told once."""

        def judge() -> bool:
            return bool(compiled(expression)(**scope))

        result = self._guarded(
            key, scope, judge
        )  # true also for what is not locked yet: it is judged once it is
        return True if result is None else bool(result)

    def later(self, key: str, source: str, names: Collection[str]) -> None:
        """Note the faults of a template that is rendered later: its syntax, and names that there will not be."""
        try:
            free = meta.find_undeclared_variables(self.environment.parse(source))
        except TemplateSyntaxError as error:
            self.fault(key, f"template error: {error.message}")
            return
        for name in sorted(free - set(names)):
            near = difflib.get_close_matches(name, names, 1)
            self.fault(key, f"{name} is not known" + (f" (did you mean {near[0]}?)" if near else ""))

    def value(self, key: str, value: Any, scope: Scope) -> Any:
        """A JSON value with its texts rendered; a text that is one ``{{ expression }}`` keeps the expression's type."""
        if isinstance(value, Mapping):
            return {name: self.value(f"{key}.{name}", item, scope) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(f"{key}.{n}", item, scope) for n, item in enumerate(value)]
        if not isinstance(value, str) or "{" not in value:
            return value
        inner = value.strip()
        if inner.startswith("{{") and inner.endswith("}}") and inner.count("{{") == 1:
            return self._guarded(key, scope, lambda: self._native(inner[2:-2], scope))
        return self.text(key, value, scope)

    def _native(self, expression: str, scope: Scope) -> Any:
        found = compiled(expression)(**scope)
        if isinstance(found, StrictUndefined):
            str(found)
        return _no_none(found)

    def _guarded(self, key: str, scope: Scope, render: Callable[[], Any]) -> Any:
        try:
            return render()
        except NotLocked as mark:
            return str(mark)
        except TemplateNotFound as error:
            self.fault(key, f"there is no template {error.name!r} in {self._places()}")
        except TemplateSyntaxError as error:
            file, line = (error.filename or "", error.lineno) if error.name else ("", 0)
            self.fault(key, f"template error: {error.message}", file=file, line=line)
        except (TemplateError, SecurityError, TypeError, ValueError, ArithmeticError) as error:
            file, line = self._place(error)
            self.fault(key, f"{error}", scope.path, file=file, line=line)
        return None

    def _places(self) -> str:
        loader = self.environment.loader
        return (
            " or ".join(str(folder) for folder in loader.folders)
            if isinstance(loader, Folders)
            else "no folder"
        )

    def _place(self, error: Exception) -> tuple[str, int]:
        """The template file and line where it happened; nothing for a value that stands in the recipe itself."""
        loader = self.environment.loader
        folders = loader.folders if isinstance(loader, Folders) else ()
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            inside = any(Path(frame.filename).is_relative_to(folder) for folder in folders)
            if inside and not frame.filename.endswith(".py"):
                return frame.filename, frame.lineno or 0
        return "", 0
