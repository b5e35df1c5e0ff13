"""Secrets that nobody sets: made once, kept in a 0600 file in ``secrets/`` below the head's folder, and found there ever after."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sparkyard.command import discovered, generated
from sparkyard.errors import ConfigError, Fault, StepFailed
from sparkyard.loading.settings import check_value
from sparkyard.model import Lane, Origin, Value

BYTES = 24


def with_secrets(lane: Lane, *, read: bool, make: bool, judge: bool = True) -> Lane:
    """The lane with its generated secrets in place of their marks (``<generated: name>``).

    The marks stay without ``read`` (verbs that are for any machine), and where there is no file yet and none may be made.
    Raises StepFailed when the file cannot be read or written, and with ``judge`` ConfigError when what it holds is not what the
    setting allows; verbs that look or stop do not ask that.
    """
    wanted = [name for name, value in lane.settings.items() if value.value == generated(name)]
    found = {name: _value(path(lane, name), name, make=make) for name in wanted if read}
    if judge:
        _check(lane, found)
    known = {name: value for name, value in found.items() if value is not None}
    return replace(lane, settings={**lane.settings, **known}) if known else lane


def path(lane: Lane, name: str) -> Path:
    """Where a generated secret lies on the head, which is the machine where sparkyard runs."""
    root = lane.inventory.head.root.replace(discovered("home"), str(Path.home()))
    return Path(root) / "secrets" / f"{lane.name}-{name}"


def _check(lane: Lane, found: Mapping[str, Value | None]) -> None:
    """Raises ConfigError when a person, or a damaged disk, left another text in a file than the setting allows."""
    faults = [
        Fault(
            value.origin.place,
            0,
            name,
            f"{fault}; remove the file for a new secret, or write another into it",
        )
        for name, value in found.items()
        if value is not None
        and (fault := check_value(lane.recipe.settings[name], value.value) or _empty(value.value))
    ]
    if faults:
        raise ConfigError(faults)


def _empty(text: object) -> str:
    return "" if text else "it is empty"


def _value(file: Path, name: str, *, make: bool) -> Value | None:
    try:
        if make and not file.exists():
            _write(file, secrets.token_hex(BYTES))
        if not file.exists():
            return None
        return Value(file.read_text(encoding="ascii").strip(), Origin(str(file)), secret=True)
    except (OSError, ValueError) as error:
        raise StepFailed(
            f"the secret {name} cannot be kept in {file}: {error}", next_step=f"ls -l {file.parent}"
        ) from error


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text + "\n")
    new.replace(file)
