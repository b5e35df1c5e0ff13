"""The map of a partly downloaded file."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkyard.ranges import PartMap, count, gaps, joined, pieces

SIZE = 60
RANGES = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=8)
DIGEST = "sha256:" + "a" * 64


def bytes_in(ranges):
    return {at for start, end in ranges for at in range(start, end)}


@given(RANGES)
def test_joined_ranges_hold_the_same_bytes_sorted_and_apart(ranges):
    result = joined(ranges)
    assert bytes_in(result) == bytes_in(ranges)
    assert all(a[1] < b[0] for a, b in pairwise(result))
    assert all(start < end for start, end in result)
    assert count(ranges) == len(bytes_in(ranges))


@given(RANGES)
def test_gaps_are_exactly_the_other_bytes(ranges):
    assert bytes_in(gaps(ranges, SIZE)) == set(range(SIZE)) - bytes_in(ranges)
    assert gaps(gaps(ranges, SIZE), SIZE) == joined(ranges)


@given(RANGES, st.integers(1, 20))
def test_pieces_cover_the_gaps_once_and_none_is_too_long(ranges, longest):
    cut = pieces(gaps(ranges, SIZE), longest)
    assert sum(end - start for start, end in cut) == len(bytes_in(cut)) == SIZE - count(ranges)
    assert all(0 < end - start <= longest for start, end in cut)


@given(RANGES)
def test_a_map_comes_back_from_its_text(ranges):
    saved = PartMap(SIZE, DIGEST, joined(ranges))
    assert PartMap.parse(saved.text(), SIZE, DIGEST) == saved


@given(RANGES.filter(joined), st.integers(0, 300))
def test_a_map_cut_short_is_empty(ranges, cut):
    text = PartMap(SIZE, DIGEST, joined(ranges)).text()
    assert PartMap.parse(text[: min(cut, len(text) - 1)], SIZE, DIGEST).done == ()


def test_a_map_of_another_file_or_beyond_the_end_is_empty():
    text = PartMap(SIZE, DIGEST, ((0, 10),)).text()
    assert PartMap.parse(text, SIZE + 1, DIGEST).done == ()
    assert PartMap.parse(text, SIZE, "sha256:" + "b" * 64).done == ()
    beyond = json.dumps({"version": 1, "size": SIZE, "digest": DIGEST, "done": [[0, SIZE + 1]]})
    assert PartMap.parse(beyond, SIZE, DIGEST).done == ()
