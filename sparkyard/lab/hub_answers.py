"""Answers of the local hub other than the one asked for, and ranges."""

from __future__ import annotations


class Refusal(Exception):
    """An answer other than the one asked for."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {
            "X-Error-Message": message,
            **({"X-Error-Code": code} if code else {}),
            **(headers or {}),
        }


def bad_range(size: int) -> Refusal:
    """The answer to a range that the file does not have."""
    return Refusal(416, "", "The range is not satisfiable", {"Content-Range": f"bytes */{size}"})


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """First and last byte of a single range, None for the whole."""
    if not header.startswith("bytes=") or "," in header:
        return None
    first, _, last = header.removeprefix("bytes=").partition("-")
    if not first:
        start, end = max(0, size - int(last)), size - 1
    else:
        start, end = int(first), min(int(last) if last else size - 1, size - 1)
    if start >= size or start > end:
        raise bad_range(size)
    return start, end
