"""Lines of running commands: whole, and in bounds whatever a program writes."""

from __future__ import annotations

import tracemalloc

from sparkyard.executors.watch import WIDEST, cut
from sparkyard.streams import LONGEST, TAIL, Output


def followed(*chunks: bytes) -> list[str]:
    lines: list[str] = []
    output = Output(lines.append)
    for chunk in chunks:
        output.feed(chunk)
    output.close()
    return lines


def test_lines_are_handed_out_whole_however_they_arrive():
    assert followed(b"one\ntw", b"o\r\n", b"thr", b"ee") == ["one", "two", "three"]


def test_a_line_without_an_end_comes_in_pieces_and_none_of_it_is_lost():
    lines = followed(*[b"z" * 65536] * 40, b"end\nnext\n")
    assert [len(line) for line in lines] == [LONGEST, LONGEST, 40 * 65536 + 3 - 2 * LONGEST, 4]
    assert lines[2].endswith("zend")


def test_memory_stays_in_bounds_for_a_line_that_never_ends():
    output = Output(lambda line: None)
    tracemalloc.start()
    for _ in range(400):  # 25 MiB
        output.feed(b"z" * 65536)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * TAIL
    assert len(output.close()) <= 2 * TAIL


def test_a_line_that_nobody_would_read_is_cut_where_it_is_shown():
    assert cut("short") == "short"
    shown = cut("q" * 1_000_000)
    assert shown.startswith("q" * WIDEST + " …")
    assert shown.endswith("(1,000,000 characters, whole in the saved log)")
