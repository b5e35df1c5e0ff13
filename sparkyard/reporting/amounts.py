"""Numbers in words: bytes, rates and times, as people read them."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB")
"""Powers of 1000, as disks and the Hub count."""


def size(count: float, unit: str = "bytes") -> str:
    """``1.5 GB`` for bytes, ``12 files`` for anything else."""
    if unit != "bytes":
        return f"{count:.0f} {unit}"
    power = 0
    while count >= 999.5 and power < len(UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 0 if power == 0 or count >= 100 else 1
    return f"{count:.{digits}f} {UNITS[power]}"


def gigabytes(count: float) -> str:
    """``114.5 GB``: bytes that are compared with others, of memory or of a disk, always in the same unit."""
    return f"{count / 1e9:.1f} GB"


def span(seconds: float) -> str:
    """``0.42 s``, ``14.2 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def left(done: float, total: float, rate: float) -> str:
    """The time left at this rate; empty when nobody can know."""
    return f"{span((total - done) / rate)} left" if rate > 0 and total > done else ""


def progress(done: float, total: float, unit: str, rate: float, *, at_most: bool = False) -> str:
    """``1.2 GB of 40.0 GB, 95.0 MB/s, 6 min 48 s left``; ``at most`` 40.0 GB, and time, where it may be less."""
    most = "at most " if at_most else ""
    parts = [f"{size(done, unit)} of {most}{size(total, unit)}" if total else size(done, unit)]
    if rate > 0:
        parts.append(f"{size(rate, unit)}/s")
    time_left = left(done, total, rate)
    parts.append(f"{most}{time_left}" if time_left else "")
    return ", ".join(part for part in parts if part)
