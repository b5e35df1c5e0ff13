"""Words to run: a command is a tuple of words, quoted once, and shown with its secrets masked."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MASK = "********"


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text with every occurrence of a secret replaced; the longest secrets first, so that none shows in part."""
    for secret in sorted({s for s in secrets if s}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


@dataclass(frozen=True, slots=True)
class Command:
    """Words for one program.

    Attributes:
        words: the program and its arguments, each exactly as the program shall see it.
        env: variables set for it alone, by ``env K=V`` in front (never for secrets: argv can be read by everybody).
        stdin: bytes given to its standard input; the way for secrets.
        secrets: values masked wherever the command is shown.
        timeout: seconds after which it is killed on the node; None for no limit.
    """

    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    timeout: float | None = None

    @classmethod
    def of(cls, *words: str, timeout: float | None = None, stdin: bytes = b"") -> Command:
        return cls(words, timeout=timeout, stdin=stdin)

    def argv(self) -> tuple[str, ...]:
        """The words with the environment in front."""
        if not self.env:
            return self.words
        return ("env", *(f"{name}={value}" for name, value in self.env), *self.words)

    def line(self) -> str:
        """The command as one line of POSIX shell. The only place that quotes."""
        return shlex.join(self.argv())

    def shown(self) -> str:
        """The line for people and logs: secrets masked."""
        return mask(self.line(), self.secrets)

    def filled(self, values: Mapping[str, str]) -> Command:
        """The command with discovered values in place of their ``<discovered: name>`` marks."""
        return replace(
            self,
            words=tuple(fill(word, values) for word in self.words),
            env=tuple((name, fill(value, values)) for name, value in self.env),
        )


def generated(name: str) -> str:
    """The mark of a secret setting that nobody set: it is made once, on the head."""
    return f"<generated: {name}>"


def discovered(name: str) -> str:
    """The mark that stands for a value known only on the node, as ``render`` shows it."""
    return f"<discovered: {name}>"


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with every mark whose name is in ``values`` replaced by its value."""
    for name, value in values.items():
        text = text.replace(discovered(name), value)
    return text
