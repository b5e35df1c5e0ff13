"""A YAML file as Marked values, with anchors and merge keys resolved.

Refuses what has two meanings: duplicate keys, tags, several documents, YAML 1.1's surprises.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sparkyard.loading.marked import UNREADABLE, Faults, Marked, dotted
from sparkyard.loading.phrases import quoted
from sparkyard.loading.scalars import read_plain

_DEEPEST = 32
_LARGEST = 20_000  # values in one file, aliases counted each time: a short file can stand for billions
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VAULT = "$ANSIBLE_VAULT"


class _SizeError(Exception):
    """Nesting or repetition beyond any sensible file; ends the reading of it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def shown(path: Path) -> str:
    """The path as people type it: relative when it lies below the working folder."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except ValueError:
        return str(path)


def is_odd(path: Path) -> bool:
    """Whether reading would never end, or end in something else: there is a pipe, a socket or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def read_yaml(path: Path, faults: Faults) -> Marked | None:
    """The file's content, or None when it is empty or cannot be read; each fault is collected."""
    name = shown(path)
    if is_odd(path):
        faults.add(name, 0, "", "a file is expected, found something else (a pipe or a device)")
        return None
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
        self.anchors: dict[str, Marked] = {}
        self.count = 0

    def read(self) -> Marked | None:
        try:
            return self._documents()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 0
            self.faults.add(self.name, line, "", f"not valid YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self.faults.add(self.name, 0, "", f"not valid YAML: {getattr(error, 'reason', 'unreadable')}")
        except _SizeError as error:
            self.faults.add(self.name, error.line, "", str(error))
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
            raise _SizeError(self._line(event), f"nested more than {_DEEPEST} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, key, line, depth)
        self._counted(event, 1)
        self._refuse_tags(event, key)
        marked = Marked(self._content(event, key, depth), self.name, line)
        if event.anchor:
            self.anchors[event.anchor] = marked
        return marked

    def _content(self, event: Any, key: str, depth: int) -> Any:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(key, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(key, depth)
        return self._scalar(event, key)

    def _alias(self, event: Any, key: str, line: int, depth: int) -> Marked:
        target = self.anchors.get(event.anchor)
        if target is None:
            self._fault(event, key, f"*{event.anchor} stands before its &{event.anchor}, or there is none")
            return Marked(UNREADABLE, self.name, line)
        size, levels = target.measure()
        self._counted(event, size)
        if depth + levels > _DEEPEST:
            raise _SizeError(self._line(event), f"nested more than {_DEEPEST} levels deep")
        return Marked(target.value, self.name, line)

    def _counted(self, event: Any, more: int) -> None:
        self.count += more
        if self.count > _LARGEST:
            raise _SizeError(self._line(event), f"more than {_LARGEST} values in one file")

    def _mapping(self, key: str, depth: int) -> dict[str, Marked]:
        entries: dict[str, Marked] = {}
        merged: dict[str, Marked] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = self._line(event)
            if _is_merge(event):
                merged = self._merge(self._value(next(self.events), key, line, depth + 1), key) | merged
                continue
            name = self._key(event, key, depth)
            value = self._value(next(self.events), dotted(key, name), line, depth + 1)
            if name in entries:
                first = entries[name].line
                self._fault(event, dotted(key, name), f"written twice (first on line {first}); keep one")
            elif name:
                entries[name] = value
        return merged | entries

    def _merge(self, marked: Marked, key: str) -> dict[str, Marked]:
        """What ``<<`` brings in: a mapping, or a list of which the first wins."""
        parts = marked.items or [marked]
        if marked.value is not UNREADABLE and not all(isinstance(part.value, dict) for part in parts):
            self.faults.at(marked, key, "<< takes a mapping or a list of mappings")
        merged: dict[str, Marked] = {}
        for part in reversed(parts):
            merged |= part.fields
        return merged

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
        self._refuse_tags(event, key)
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

    def _refuse_tags(self, event: Any, key: str) -> None:
        tag = getattr(event, "tag", None)
        if tag and "vault" in tag:
            self._fault(event, key, "!vault is not supported; use the environment or a 0600 file")
        elif tag:
            word = tag.replace("tag:yaml.org,2002:", "!!")
            self._fault(
                event,
                key,
                f"the YAML tag {word} is not supported; write the plain value",
            )

    def _fault(self, event: Any, key: str, message: str) -> None:
        self.faults.add(self.name, self._line(event), key, message)

    @staticmethod
    def _line(event: Any) -> int:
        return int(event.start_mark.line) + 1


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and bool(event.implicit[0])
