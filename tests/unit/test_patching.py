"""Edits of somebody else's text: exact counts, three states, the difference."""

import pytest

from sparkyard.patching import Known, PatchRefused, difference, digest, edited, patched, standing
from sparkyard.recipe import EditSpec

PRISTINE = b"one\ntwo\ntwo\n"
EDITS = [
    EditSpec(find="one", replace="ONE", why="shout"),
    EditSpec(find="two", replace="2", why="shorter", count=2),
]
PATCHED = b"ONE\n2\n2\n"


def test_both_states_and_their_hashes():
    found = patched("t", PRISTINE, EDITS, Known())
    assert found.patched == PATCHED
    assert found.known == Known(digest(PRISTINE), digest(PATCHED))
    assert patched("t", PRISTINE, EDITS, found.known) == found


@pytest.mark.parametrize(("text", "words"), [("two two", "edit 1 of 2 does not fit: its text stands there not at all"),
                                             ("one two", "edit 2 of 2 does not fit: its text stands there once, expected 2 times"),
                                             ("one one two two", "edit 1 of 2 does not fit: its text stands there 2 times, expected once")])  # fmt: skip
def test_an_edit_that_does_not_fit_is_refused(text, words):
    with pytest.raises(PatchRefused, match=words) as refused:
        edited(text, EDITS, "t")
    assert any("the edit is for" in line for line in refused.value.details)


def test_edits_see_what_the_ones_before_them_made():
    twice = [EditSpec(find="a", replace="b", why="w"), EditSpec(find="bb", replace="c", why="w")]
    assert edited("ab", twice, "t") == "c"


def test_a_text_that_is_not_the_locked_one_is_refused():
    known = patched("t", PRISTINE, EDITS, Known()).known
    with pytest.raises(PatchRefused, match="the fetched text is not the locked one"):
        patched("t", PRISTINE + b" ", EDITS, known)
    with pytest.raises(PatchRefused, match="the edits make another text than the locked one"):
        patched("t", PRISTINE, EDITS[:1], known)


def test_a_text_that_is_no_text_is_refused():
    with pytest.raises(PatchRefused, match="not UTF-8"):
        patched("t", b"\xff", EDITS, Known())


def test_standing():
    known = Known(digest(PRISTINE), digest(PATCHED))
    assert standing(digest(PRISTINE), known) == "pristine"
    assert standing(digest(PATCHED), known) == "patched"
    assert standing(digest(b"x"), known) == "neither"
    assert standing("", Known()) == "neither"


def test_the_difference_names_the_file_and_is_cut():
    assert difference(b"a\n", b"b\n", "f")[:2] == ("--- f (expected)", "+++ f (found)")
    assert difference(b"a", b"a\n", "f") == ("they differ in line ends or in the end of the last line",)
    long = difference(b"", b"x\n" * 100, "f")
    assert long[-1] == "… 43 more lines"
    assert len(difference(b"", b"x\n" * 100, "f", lines=None)) == 103


def test_without_edits_a_text_is_placed_as_it_is_whatever_its_bytes():
    found = patched("t", b"\xff\x00", [], Known())
    assert (found.patched, found.known.pristine) == (b"\xff\x00", found.known.patched)


@pytest.mark.parametrize("md5", ["", "b4a3e194", "b4a3e194d4e6ee0730ca12c5d063a4dd"])
def test_a_published_md5_or_its_first_digits(md5):
    assert patched("t", PRISTINE, EDITS, Known(), md5).patched == PATCHED


def test_another_md5_is_refused_with_both():
    with pytest.raises(
        PatchRefused, match=r"not the published one: md5 d8578edf, expected 01234567"
    ) as refused:
        patched("t", b"qwerty", [], Known(), "01234567")
    assert "its md5 in full: d8578edf8458ce06fbc5bb76a58c5ca4" in refused.value.details
