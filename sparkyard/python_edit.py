"""Keywords added to one call of a Python text by its syntax; comments and everything else stay byte for byte. Pure.

The call is found in the syntax tree, the edit is made in the bytes, and the result is read again: apart from the new keywords, and
names that the call's import brings too, both trees must be equal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from sparkyard.errors import PatchRefused
from sparkyard.python_names import Naming, is_called, naming
from sparkyard.python_text import BOM, Insertion, PythonText
from sparkyard.recipe import PythonEdit

Unreadable = object()
"""Stands for a value that is no literal."""


def added(text: str, edit: PythonEdit) -> str:
    """The text with the keywords of ``edit``; one that has them already stays as it is.

    Raises PatchRefused when the call is missing or there are several, when it has other values than expected, and when nothing
    says where the new names come from.
    """
    found = PythonText.of(text)
    call = _anchor(found, edit)
    missing = _missing(found, call, edit)
    _expected(found, call, edit)
    if not missing:
        return text
    names = naming(found.tree, call, edit.call, edit.names)
    written = {keyword: _written(edit.add[keyword], names.written) for keyword in missing}
    made = found.with_insertions((*_keywords(found, call, written), *_imported(found, names)))
    mark = BOM if text.encode().startswith(BOM) else b""
    result = (mark + made).decode()
    _only(found, PythonText.of(result), edit, tuple(missing), names)
    return result


# --- the call -------------------------------------------------------------------------------------------------------------


def _anchor(text: PythonText, edit: PythonEdit) -> ast.Call:
    """The one call that is meant. Raises PatchRefused with the lines of all others."""
    calls = list(_calls(text.tree, edit, edit.argument))
    if len(calls) == 1:
        return calls[0]
    what = f"{edit.argument}={edit.call}(…)" if edit.argument else f"{edit.call}(…)"
    lines = _lines(calls)
    seen = f"{what} is called {len(calls)} times (lines {lines})" if calls else f"{what} is called nowhere"
    others = list(_calls(text.tree, edit, "")) if edit.argument and not calls else []
    raise PatchRefused(
        f"{seen}, expected exactly one call",
        details=[f"{edit.call} is called elsewhere: lines {_lines(others)}"] if others else [],
    )


def _lines(calls: list[ast.Call]) -> str:
    return ", ".join(str(call.lineno) for call in calls)


def _calls(tree: ast.Module, edit: PythonEdit, argument: str) -> Iterator[ast.Call]:
    places = ast.walk(tree)
    if argument:
        places = (node.value for node in places if isinstance(node, ast.keyword) and node.arg == argument)
    return (node for node in places if isinstance(node, ast.Call) and is_called(node, edit.call, tree))


def _missing(text: PythonText, call: ast.Call, edit: PythonEdit) -> list[str]:
    """The keywords that the call does not have yet. Raises PatchRefused for other values, and where that cannot be known."""
    spread = [each for each in call.keywords if each.arg is None]
    spread_words = [each for each in call.args if isinstance(each, ast.Starred)]
    if spread or spread_words:
        raise PatchRefused(
            f"line {call.lineno}: {edit.call} gets arguments by * or **, so which ones it has cannot be known"
        )
    there = {each.arg: each for each in call.keywords}
    aliases = _aliases(text.tree, edit.names)
    for keyword, wanted in edit.add.items():
        if keyword in there and _shape(there[keyword].value, aliases, edit) != _shape(
            _read(wanted), {}, edit
        ):
            found = text.source(there[keyword].value)
            raise PatchRefused(
                f"line {there[keyword].lineno}: {keyword} is already {found}, expected none, or {wanted}"
            )
    return [keyword for keyword in edit.add if keyword not in there]


def _expected(text: PythonText, call: ast.Call, edit: PythonEdit) -> None:
    """Raises PatchRefused, naming every value that the call had to have and has not."""
    there = {each.arg: each.value for each in call.keywords}
    faults = []
    for keyword, wanted in edit.expects.items():
        if keyword not in there:
            faults.append(f"line {call.lineno}: {keyword} is not given, expected {wanted!r}")
        elif not _same(_literal(there[keyword]), wanted):
            place = there[keyword]
            faults.append(f"line {place.lineno}: {keyword} is {text.source(place)}, expected {wanted!r}")
    if faults:
        raise PatchRefused(f"{edit.call} has other values than expected: {'; '.join(faults)}")


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Unreadable


def _same(one: Any, other: Any) -> bool:
    """Equal by value; a number is not a truth value."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


# --- values ---------------------------------------------------------------------------------------------------------------


def _read(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise PatchRefused(f"the edit's own expression is no Python: {expression}") from error


def _aliases(tree: ast.Module, names: list[str]) -> dict[str, str]:
    """Alias → name, for those of ``names`` that are imported under another name."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found = [alias for node in imports for alias in node.names]
    return {alias.asname: alias.name for alias in found if alias.asname and alias.name in names}


def _shape(node: ast.AST, aliases: Mapping[str, str], edit: PythonEdit) -> Any:
    """An expression so that two that mean the same are equal: numbers by value, a module before a name and its alias left out."""
    if isinstance(node, ast.expr) and (value := _literal(node)) is not Unreadable:
        return _value(value)
    if isinstance(node, ast.Attribute) and node.attr in edit.names:
        return ("name", node.attr)
    if isinstance(node, ast.Name):
        return ("name", aliases.get(node.id, node.id))
    if isinstance(node, ast.Dict) and None not in node.keys:
        pairs = zip(node.keys, node.values, strict=True)
        shaped = [(_shape(key, aliases, edit), _shape(value, aliases, edit)) for key, value in pairs if key]
        return ("dict", sorted(shaped, key=repr))
    if isinstance(node, ast.AST):
        parts = [(name, value) for name, value in ast.iter_fields(node) if name != "ctx"]
        return (type(node).__name__, [(name, _part(value, aliases, edit)) for name, value in parts])
    return node


def _part(value: Any, aliases: Mapping[str, str], edit: PythonEdit) -> Any:
    if isinstance(value, list):
        return [_part(each, aliases, edit) for each in value]
    return _shape(value, aliases, edit) if isinstance(value, ast.AST) else value


def _value(value: Any) -> Any:
    """A literal, marked so that ``1`` equals ``1.0`` and neither equals ``True``."""
    if isinstance(value, dict):
        return ("dict", sorted(((_value(k), _value(v)) for k, v in value.items()), key=repr))
    if isinstance(value, list | tuple | set):
        parts = [_value(each) for each in value]
        return (type(value).__name__, sorted(parts, key=repr) if isinstance(value, set) else parts)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return ("number", float(value)) if number and abs(value) < 2**53 else (type(value).__name__, value)


def _written(expression: str, written: Mapping[str, str]) -> bytes:
    """The expression with its names as they are written where the call stands."""
    text = PythonText.of(expression)
    body = _read(expression)
    made = text.content
    names = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id in written]
    for node in sorted(names, key=text.start, reverse=True):
        made = made[: text.start(node)] + written[node.id].encode() + made[text.end(node) :]
    return made


# --- where it is put ------------------------------------------------------------------------------------------------------


def _keywords(text: PythonText, call: ast.Call, written: Mapping[str, bytes]) -> list[Insertion]:
    """Behind the last argument, or on a line of its own where the closing parenthesis has one."""
    close = text.end(call) - 1
    if text.content[close : close + 1] != b")":
        raise PatchRefused(
            f"line {call.lineno}: the end of the call is not found (is it inside an f-string?)"
        )
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    behind = max((text.end(each) for each in arguments), default=text.end(call.func))
    last = text.last_sign(behind, close)
    comma = bool(arguments) and text.content[last - 1 : last] == b","
    words = [name.encode() + b"=" + value for name, value in written.items()]
    if text.indent(close) is not None and text.line_start(close) > last:
        before = b"," if arguments and not comma else b""
        return [Insertion(last, before), _own_lines(text, call, arguments, words, comma)]
    after = _separator(text, arguments)
    joined = (b"," + after).join(words)
    if comma:
        return [Insertion(last, after + joined + b",")]
    return [Insertion(last, b"," + after + joined if arguments else joined)]


def _separator(text: PythonText, arguments: list[ast.expr | ast.keyword]) -> bytes:
    """What stands between two arguments: a space, or a new line where the last argument begins one."""
    begins = [text.start(each) for each in arguments]
    last = max(begins, default=None)
    indent = text.indent(last) if last is not None else None
    if last is None or indent is None:
        return b" "
    return text.newline(last) + indent


def _own_lines(
    text: PythonText,
    call: ast.Call,
    arguments: list[ast.expr | ast.keyword],
    words: list[bytes],
    comma: bool,
) -> Insertion:
    close = text.line_start(text.end(call) - 1)
    indents = [text.indent(text.start(each)) for each in sorted(arguments, key=text.start, reverse=True)]
    own = next((indent for indent in indents if indent is not None), None)
    indent = own if own is not None else _deeper(text, call)
    newline = text.newline(close)
    lines = [indent + word + b"," for word in words]
    if not comma and arguments:
        lines[-1] = lines[-1].removesuffix(b",")
    return Insertion(close, b"".join(line + newline for line in lines))


def _deeper(text: PythonText, call: ast.Call) -> bytes:
    """One level more than the line in which the call begins."""
    start = text.line_start(text.start(call))
    line = text.content[start : text.line_end(start)]
    indent = line[: len(line) - len(line.lstrip())]
    return indent + (b"\t" if b"\t" in indent else b"    ")


def _imported(text: PythonText, names: Naming) -> list[Insertion]:
    """The missing names behind the called one in its import: in the same line, or each on a line where that one has its own."""
    if not names.missing or names.statement is None or names.after is None:
        return []
    end, close = text.end(names.after), text.end(names.statement)
    words = [name.encode() for name in names.missing]
    indent = text.indent(text.start(names.after))
    if indent is None or text.content[close - 1 : close] != b")":
        return [Insertion(end, b"".join(b", " + word for word in words))]
    others = [text.start(each) for each in names.statement.names if text.start(each) > end]
    comma = text.sign(b",", end, min(others, default=close))
    line = text.line_end(comma if comma is not None else end)
    if any(start < line for start in others) or close - 1 < line:
        return [Insertion(end, b"".join(b", " + word for word in words))]
    newline = text.newline(line + 1)
    made = [newline + indent + word + b"," for word in words]
    if comma is None:
        made[-1] = made[-1].removesuffix(b",")
    return [*([Insertion(end, b",")] if comma is None else []), Insertion(line, b"".join(made))]


# --- proof ----------------------------------------------------------------------------------------------------------------


def _only(
    before: PythonText, after: PythonText, edit: PythonEdit, keywords: tuple[str, ...], names: Naming
) -> None:
    """Raises PatchRefused unless the new keywords and imported names are the only differences of the two trees."""
    call = _anchor(after, edit)
    new = {each.arg: _shape(each.value, {}, edit) for each in call.keywords if each.arg in keywords}
    right = new == {
        name: _shape(_read(_written(edit.add[name], names.written).decode()), {}, edit) for name in keywords
    }
    call.keywords = [each for each in call.keywords if each.arg not in keywords]
    if names.statement is not None:
        _forget(after.tree, names)
    if not right or ast.dump(before.tree) != ast.dump(after.tree):
        raise PatchRefused(
            f"line {call.lineno}: the edit would change more than it should; nothing was changed"
        )


def _forget(tree: ast.Module, names: Naming) -> None:
    """Take the names that were added out of their import again."""
    assert names.statement is not None
    line = names.statement.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.lineno == line and node.module == names.statement.module:
            node.names = [each for each in node.names if each.name not in names.missing or each.asname]
