"""What a called name is bound to in a Python text, and how another name of the same module is written there. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkyard.errors import PatchRefused

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Naming:
    """How names are written where the call stands.

    Attributes:
        written: name → expression (``SamplingRange``, ``mod.SamplingRange``, an alias).
        statement: the import that must bring ``missing`` names, if there are any.
        after: the alias behind which they are put.
    """

    written: Mapping[str, str]
    missing: tuple[str, ...] = ()
    statement: ast.ImportFrom | None = None
    after: ast.alias | None = field(default=None)


def is_called(call: ast.Call, name: str, tree: ast.Module) -> bool:
    """Whether a call is one of ``name``: by itself, as an attribute, or under the alias of an import."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr == name
    if not isinstance(call.func, ast.Name):
        return False
    aliases = {each.asname for _, each in _imports(tree) if each.name == name and each.asname}
    return call.func.id == name or call.func.id in aliases


def naming(tree: ast.Module, call: ast.Call, called: str, names: list[str]) -> Naming:
    """How ``names`` are written at the call. Raises PatchRefused where nothing says where they come from."""
    if isinstance(call.func, ast.Attribute):
        return Naming({name: f"{_dotted(call.func.value, called)}.{name}" for name in names})
    assert isinstance(call.func, ast.Name)
    scopes = _scopes(tree, call)
    written = {name: local for name in names if (local := _bound(scopes, name))}
    missing = tuple(name for name in names if name not in written)
    if not missing:
        return Naming(written)
    statement, alias = _import_of(scopes, call.func.id, called, missing)
    return Naming({name: written.get(name, name) for name in names}, missing, statement, alias)


def _dotted(node: ast.expr, called: str) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, called)}.{node.attr}"
    raise PatchRefused(
        f"line {node.lineno}: {called} is taken from {ast.unparse(node)}, expected a module's name before it"
    )


def _scopes(tree: ast.Module, call: ast.Call) -> tuple[Scope, ...]:
    """The scopes whose names the call sees, the innermost first: the module, functions around it, and the class that it is in."""
    found: list[Scope] = [tree]
    while True:
        inner = [each for each in _within(found[-1]) if isinstance(each, SCOPES) and _holds(each, call)]
        if not inner:
            break
        found.append(inner[0])
    last = found[-1]
    return tuple(each for each in reversed(found) if each is last or not isinstance(each, ast.ClassDef))


def _holds(scope: ast.AST, call: ast.Call) -> bool:
    """Whether a call is in the body of a scope; decorators, defaults and bases belong to the scope around."""
    body: list[ast.stmt] = getattr(scope, "body", [])
    return any(node is call for statement in body for node in ast.walk(statement))


def _within(scope: Scope) -> Iterator[ast.AST]:
    """The nodes that belong to a scope and to no scope inside; what only a type checker reads is left out."""
    todo: list[ast.AST] = list(scope.body)
    while todo:
        node = todo.pop(0)
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif not isinstance(node, (*SCOPES, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _imports(tree: ast.AST) -> Iterator[tuple[ast.ImportFrom, ast.alias]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node, alias) for alias in node.names)


def _froms(scope: Scope) -> list[tuple[ast.ImportFrom, ast.alias]]:
    nodes = [node for node in _within(scope) if isinstance(node, ast.ImportFrom)]
    return [(node, alias) for node in nodes for alias in node.names]


def _bound(scopes: tuple[Scope, ...], name: str) -> str | None:
    """What ``name`` is called where the call stands: itself, or the alias of its import; None when nothing binds it."""
    for scope in scopes:
        if name in _binds(scope):
            return name
        aliases = [alias.asname for _, alias in _froms(scope) if alias.name == name and alias.asname]
        if aliases:
            return aliases[0]
    return None


def _binds(scope: Scope) -> set[str]:
    """The names that a scope binds: imports, definitions, assignments, arguments."""
    found: set[str] = set()
    for node in _within(scope):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, SCOPES):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = scope.args
        found |= {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return found


def _import_of(
    scopes: tuple[Scope, ...], local: str, called: str, missing: tuple[str, ...]
) -> tuple[ast.ImportFrom, ast.alias]:
    """The import that binds the called name. Raises PatchRefused when it is none, or more than one."""
    wanted = f"{' and '.join(missing)} must come from where {called} comes from, and"
    for scope in scopes:
        if local not in _binds(scope):
            continue
        found = [(node, alias) for node, alias in _froms(scope) if (alias.asname or alias.name) == local]
        if len(found) > 1:
            lines = ", ".join(str(node.lineno) for node, _ in found)
            raise PatchRefused(f"{wanted} it is imported {len(found)} times: lines {lines}")
        if found and found[0][1].name == called:
            return found[0]
        raise PatchRefused(f"{wanted} {local} is {_what(scope, local, found)}; {missing[0]} is bound nowhere")
    stars = [node for scope in scopes for node, alias in _froms(scope) if alias.name == "*"]
    if stars:
        where = f"line {stars[0].lineno}: from {'.' * stars[0].level}{stars[0].module or ''} import *"
        raise PatchRefused(
            f"{wanted} only a star import can bring it ({where}), which does not say what it brings"
        )
    raise PatchRefused(f"{wanted} nothing in this text binds {local}")


def _what(scope: Scope, local: str, found: list[tuple[ast.ImportFrom, ast.alias]]) -> str:
    if found:
        return f"another name for {found[0][1].name} (line {found[0][0].lineno})"
    classes = [node for node in _within(scope) if isinstance(node, SCOPES) and node.name == local]
    return f"defined in this text (line {classes[0].lineno})" if classes else "assigned in this text"
