"""A YAML file as Marked values. Refuses what has two meanings: duplicate keys, anchors, tags, YAML 1.1's surprises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sparkyard.loading.marked import UNREADABLE, Faults, Marked, dotted
from sparkyard.loading.phrases import quoted
from sparkyard.loading.scalars import read_plain

_DEEPEST = 32
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VAULT = "$ANSIBLE_VAULT"


class _DepthError(Exception):
    """Nesting beyond any sensible file; ends the reading of it."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def shown(path: Path) -> str:
    """The path as people type it: relative when it lies below the working folder."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except ValueError:
        return str(path)


def read_yaml(path: Path, faults: Faults) -> Marked | None:
    """The file's content, or None when it is empty or cannot be read; each fault is collected."""
    name = shown(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        faults.add(name, 0, "", "not UTF-8 text; save the file as UTF-8")
        return None
    except OSError as error:
        faults.add(name, 0, "", f"cannot be read: {error.strerror}")
        return None
    return read_text(text, name, faults)


def read_text(text: str, name: str, faults: Faults) -> Marked | None:
    """The same for text; ``name`` stands for the file in messages."""
    if text.startswith(VAULT):
        faults.add(
            name, 1, "", "Ansible Vault is not supported; keep secrets in the environment or a 0600 file"
        )
        return None
    if text.startswith("#!"):
        faults.add(
            name, 1, "", "a script (#!): dynamic inventories are not supported; write the nodes out in YAML"
        )
        return None
    return _Reader(text, name, faults).read()


class _Reader:
    """Builds Marked values from YAML events."""

    def __init__(self, text: str, name: str, faults: Faults) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.name = name
        self.faults = faults

    def read(self) -> Marked | None:
        try:
            return self._documents()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 0
            self.faults.add(self.name, line, "", f"not valid YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self.faults.add(self.name, 0, "", f"not valid YAML: {getattr(error, 'reason', 'unreadable')}")
        except _DepthError as deep:
            self.faults.add(self.name, deep.line, "", f"nested more than {_DEEPEST} levels deep")
        return None

    def _documents(self) -> Marked | None:
        root: Marked | None = None
        seen = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                seen += 1
                if seen == 2:
                    self._fault(event, "", "a second YAML document (---); put everything into one")
            elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                value = self._value(event, "", self._line(event), 0)
                root = value if seen == 1 else root
        return None if root is None or root.value is None else root

    def _value(self, event: Any, key: str, line: int, depth: int) -> Marked:
        if depth > _DEEPEST:
            raise _DepthError(self._line(event))
        self._refuse_extras(event, key)
        if isinstance(event, yaml.MappingStartEvent):
            return Marked(self._mapping(key, depth), self.name, line)
        if isinstance(event, yaml.SequenceStartEvent):
            return Marked(self._sequence(key, depth), self.name, line)
        if isinstance(event, yaml.AliasEvent):
            return Marked(UNREADABLE, self.name, line)
        return Marked(self._scalar(event, key), self.name, line)

    def _mapping(self, key: str, depth: int) -> dict[str, Marked]:
        entries: dict[str, Marked] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = self._line(event)
            name = self._key(event, key, depth)
            value = self._value(next(self.events), dotted(key, name), line, depth + 1)
            if name in entries:
                first = entries[name].line
                self._fault(event, dotted(key, name), f"written twice (first on line {first}); keep one")
            elif name:
                entries[name] = value
        return entries

    def _sequence(self, key: str, depth: int) -> list[Marked]:
        entries: list[Marked] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            entries.append(self._value(event, dotted(key, len(entries)), self._line(event), depth + 1))
        return entries

    def _key(self, event: Any, key: str, depth: int) -> str:
        """The key as text; empty when it is refused."""
        if not isinstance(event, yaml.ScalarEvent):
            self._fault(event, key, "a key must be one word of text")
            self._value(event, key, self._line(event), depth + 1)
            return ""
        self._refuse_extras(event, key)
        if event.value == "<<" and event.implicit[0]:
            self._fault(event, key, "YAML merge keys (<<) are not supported; write the values out")
            return ""
        value, complaint = read_plain(event.value) if event.implicit[0] else (event.value, "")
        if complaint or not isinstance(value, str) or not value:
            self._fault(
                event, key, f"the key {event.value or '(empty)'} is not text; quote it: {quoted(event.value)}"
            )
            return ""
        return value

    def _scalar(self, event: Any, key: str) -> Any:
        if event.tag:
            return UNREADABLE
        if not event.implicit[0]:
            return event.value
        value, complaint = read_plain(event.value)
        if complaint:
            self._fault(event, key, complaint)
            return UNREADABLE
        return value

    def _refuse_extras(self, event: Any, key: str) -> None:
        tag = getattr(event, "tag", None)
        if tag and "vault" in tag:
            self._fault(event, key, "!vault is not supported; keep secrets in the environment or a 0600 file")
        elif tag:
            word = tag.replace("tag:yaml.org,2002:", "!!")
            self._fault(
                event,
                key,
                f"the YAML tag {word} is not supported; write the plain value, quoted if it is text",
            )
        if getattr(event, "anchor", None):
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            self._fault(
                event, key, f"YAML anchors ({sign}{event.anchor}) are not supported; write the value out"
            )

    def _fault(self, event: Any, key: str, message: str) -> None:
        self.faults.add(self.name, self._line(event), key, message)

    @staticmethod
    def _line(event: Any) -> int:
        return int(event.start_mark.line) + 1
