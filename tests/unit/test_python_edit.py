"""Keywords put into one call of somebody else's Python text: the exact bytes of many variants, or a refusal that says why."""

from __future__ import annotations

import ast

import pytest
from pydantic import ValidationError

from sparkyard.patching import Known, PatchRefused, digest, patched
from sparkyard.python_edit import added
from sparkyard.recipe import EditSpec, PythonEdit

EDIT = PythonEdit(
    call="SamplingDefaults",
    argument="sampling_defaults",
    add={"ranges": '{"temperature": SamplingRange(1e-5, 1.)}'},
    names=["SamplingRange"],
    expects={"temperature": 1.0, "top_p": 1.0, "top_k": -1},
)
RANGES = 'ranges={"temperature": SamplingRange(1e-5, 1.)}'
IMPORT = "from m import SamplingDefaults\n"
IMPORTS = "from m import SamplingDefaults, SamplingRange\n"
CALL = "R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1))\n"
DONE = f"R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1, {RANGES}))\n"

VARIANTS = {
    "one line": (IMPORT + CALL, IMPORTS + DONE),
    "imported already": (IMPORTS + CALL, IMPORTS + DONE),
    "no line end at the end": (IMPORT + CALL.rstrip(), IMPORTS + DONE.rstrip()),
    "reordered keywords, other spelling": (
        IMPORT + "R( sampling_defaults = SamplingDefaults( top_k = -1 , temperature = 1.0, top_p=1 ) )",
        IMPORTS + f"R( sampling_defaults = SamplingDefaults( top_k = -1 , temperature = 1.0, top_p=1, {RANGES} ) )",
    ),
    "trailing comma in one line": (
        IMPORT + "R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1,),)",
        IMPORTS + f"R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1, {RANGES},),)",
    ),
    "a line an argument, comments, trailing comma": (
        IMPORT + "R(\n    sampling_defaults=SamplingDefaults(\n        temperature=1.,  # hot, hot\n        top_p=1.,\n"
        "        top_k=-1,  # all (of them)\n        # nothing else, so far\n    ),\n    other='x',  # \u00e9\n)\n",
        IMPORTS + "R(\n    sampling_defaults=SamplingDefaults(\n        temperature=1.,  # hot, hot\n        top_p=1.,\n"
        f"        top_k=-1,  # all (of them)\n        # nothing else, so far\n        {RANGES},\n    ),\n    other='x',  # \u00e9\n)\n",
    ),
    "a line an argument, no trailing comma, a comment with one": (
        IMPORT + "R(sampling_defaults=SamplingDefaults(\n  temperature=1.,\n  top_p=1.,\n  top_k=-1  # all, of them\n))\n",
        IMPORTS + "R(sampling_defaults=SamplingDefaults(\n  temperature=1.,\n  top_p=1.,\n  top_k=-1,  # all, of them\n"
        f"  {RANGES}\n))\n",
    ),
    "aligned behind the parenthesis": (
        IMPORT + "R(sampling_defaults=SamplingDefaults(temperature=1.,\n                                     top_p=1.,\n"
        "                                     top_k=-1))\n",
        IMPORTS + "R(sampling_defaults=SamplingDefaults(temperature=1.,\n                                     top_p=1.,\n"
        f"                                     top_k=-1,\n                                     {RANGES}))\n",
    ),
    "two lines, the parenthesis on the second": (
        IMPORT + "R(sampling_defaults=SamplingDefaults(\n    temperature=1., top_p=1., top_k=-1))\n",
        IMPORTS + f"R(sampling_defaults=SamplingDefaults(\n    temperature=1., top_p=1., top_k=-1, {RANGES}))\n",
    ),
    "the parenthesis alone, arguments on the first line": (
        IMPORT + "if x:\n    R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1\n    ))\n",
        IMPORTS + f"if x:\n    R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1,\n        {RANGES}\n    ))\n",
    ),
    "a value in parentheses, a line continued": (
        IMPORT + "R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., \\\n    top_k=(-1)  \\\n    ))\n",
        IMPORTS + "R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., \\\n    top_k=(-1),  \\\n"
        f"    {RANGES}\n    ))\n",
    ),
    "line ends of Windows": (
        (IMPORT + "R(\n    sampling_defaults=SamplingDefaults(\n\ttemperature=1.,\n\ttop_p=1.,\n\ttop_k=-1,\n    ),\n)\n").replace("\n", "\r\n"),
        (IMPORTS + f"R(\n    sampling_defaults=SamplingDefaults(\n\ttemperature=1.,\n\ttop_p=1.,\n\ttop_k=-1,\n\t{RANGES},\n    ),\n)\n").replace("\n", "\r\n"),
    ),
    "a byte order mark, and words beyond ASCII before the call on its line": (
        "\ufeff" + IMPORT + "'naïve 日本 🎉'; " + CALL + "# größer\u2028still a comment\n",
        "\ufeff" + IMPORTS + "'naïve 日本 🎉'; " + DONE + "# größer\u2028still a comment\n",
    ),
    "tabs": (
        IMPORT + "if x:\n\tR(sampling_defaults=SamplingDefaults(\n\t\ttemperature=1., top_p=1.,\n\t\ttop_k=-1,\n\t))\n",
        IMPORTS + f"if x:\n\tR(sampling_defaults=SamplingDefaults(\n\t\ttemperature=1., top_p=1.,\n\t\ttop_k=-1,\n\t\t{RANGES},\n\t))\n",
    ),
    "as the attribute of a module": (
        "import a.b\nR(sampling_defaults=a.b.SamplingDefaults(temperature=1., top_p=1., top_k=-1))\n",
        ("import a.b\nR(sampling_defaults=a.b.SamplingDefaults(temperature=1., top_p=1., top_k=-1, "
        'ranges={"temperature": a.b.SamplingRange(1e-5, 1.)}))\n'),
    ),
    "under an alias": (
        "from m import SamplingDefaults as SD, Other\nR(sampling_defaults=SD(temperature=1., top_p=1., top_k=-1))\n",
        f"from m import SamplingDefaults as SD, SamplingRange, Other\nR(sampling_defaults=SD(temperature=1., top_p=1., top_k=-1, {RANGES}))\n",
    ),
    "the new name has an alias": (
        "from m import SamplingDefaults, SamplingRange as SR\n" + CALL,
        "from m import SamplingDefaults, SamplingRange as SR\n" + DONE.replace("SamplingRange", "SR"),
    ),
    "imported in parentheses, a name a line": (
        "from .m import (\n    Before,\n    SamplingDefaults,  # ours\n    Zeta,\n)\n" + CALL,
        "from .m import (\n    Before,\n    SamplingDefaults,  # ours\n    SamplingRange,\n    Zeta,\n)\n" + DONE,
    ),
    "imported in parentheses, the last name without a comma": (
        "from m import (\n    Before,\n    SamplingDefaults  # ours, last\n)\n" + CALL,
        "from m import (\n    Before,\n    SamplingDefaults,  # ours, last\n    SamplingRange\n)\n" + DONE,
    ),
    "imported in parentheses, in one line": (
        "from m import (SamplingDefaults, Zeta)\n" + CALL,
        "from m import (SamplingDefaults, SamplingRange, Zeta)\n" + DONE,
    ),
    "imported in parentheses that close behind the name": (
        "from m import (Before,\n    SamplingDefaults)\n" + CALL,
        "from m import (Before,\n    SamplingDefaults, SamplingRange)\n" + DONE,
    ),
    "imported over a continued line": (
        "from m import Before, \\\n    SamplingDefaults; x = 1\n" + CALL,
        "from m import Before, \\\n    SamplingDefaults, SamplingRange; x = 1\n" + DONE,
    ),
    "imported in the function": (
        "def f():\n    from m import SamplingDefaults\n    return " + CALL,
        "def f():\n    from m import SamplingDefaults, SamplingRange\n    return " + DONE,
    ),
    "only a type checker reads the other import": (
        "if TYPE_CHECKING:\n    from m import SamplingRange\n" + IMPORT + CALL,
        "if TYPE_CHECKING:\n    from m import SamplingRange\n" + IMPORTS + DONE,
    ),
    "a star import, and the name is bound": (
        "from m import *\nfrom m import SamplingRange\n" + CALL,
        "from m import *\nfrom m import SamplingRange\n" + DONE,
    ),
    "both are classes of this text": (
        "class SamplingDefaults: pass\nclass SamplingRange: pass\n" + CALL,
        "class SamplingDefaults: pass\nclass SamplingRange: pass\n" + DONE,
    ),
    "a second call that is not meant": (
        IMPORT + "x = SamplingDefaults(temperature=0.)\n" + CALL,
        IMPORTS + "x = SamplingDefaults(temperature=0.)\n" + DONE,
    ),
    "other text of the same words": (
        IMPORT + '# sampling_defaults=SamplingDefaults(temperature=1.)\ns = "sampling_defaults=SamplingDefaults()"\n' + CALL,
        IMPORTS + '# sampling_defaults=SamplingDefaults(temperature=1.)\ns = "sampling_defaults=SamplingDefaults()"\n' + DONE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_the_exact_bytes(name):
    before, after = VARIANTS[name]
    assert added(before, EDIT).encode() == after.encode()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_patched_text_stays_as_it_is(name):
    after = VARIANTS[name][1]
    assert added(after, EDIT) == after
    ast.parse(after.encode())


@pytest.mark.parametrize(
    "ranges",
    [
        "{'temperature': SamplingRange(0.00001, 1)}",
        '{"temperature": m.SamplingRange(1e-05, +1.)}',
        '{ "temperature" :SamplingRange( 1e-5 , 1.0 , ) }',
    ],
)
def test_equal_by_value_is_patched_already(ranges):
    text = (
        f"{IMPORTS}R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1, ranges={ranges}))"
    )
    assert added(text, EDIT) == text


def refused(text: str, edit: PythonEdit = EDIT) -> PatchRefused:
    with pytest.raises(PatchRefused) as raised:
        added(text, edit)
    return raised.value


REFUSED = {
    "other ranges": (
        IMPORTS + "\n" + DONE.replace("1e-5", "1e-3"),
        ('line 3: ranges is already {"temperature": SamplingRange(1e-3, 1.)}, '
        'expected none, or {"temperature": SamplingRange(1e-5, 1.)}'),
    ),
    "more ranges": (
        IMPORTS + DONE.replace('{"t', '{"top_p": SamplingRange(0., 1.), "t'),
        "line 2: ranges is already",
    ),
    "called nowhere": (IMPORT, "sampling_defaults=SamplingDefaults(…) is called nowhere, expected exactly one call"),
    "called twice": (
        IMPORT + CALL + CALL,
        "sampling_defaults=SamplingDefaults(…) is called 2 times (lines 2, 3), expected exactly one call",
    ),
    "other temperature": (
        IMPORT + CALL.replace("temperature=1.", "temperature=0.6"),
        "SamplingDefaults has other values than expected: line 2: temperature is 0.6, expected 1.0",
    ),
    "several faults at once": (
        IMPORT + CALL.replace("temperature=1.", "temperature=T").replace("top_k=-1", "k=True"),
        "line 2: temperature is T, expected 1.0; line 2: top_k is not given, expected -1",
    ),
    "true is no number": (IMPORT + CALL.replace("top_p=1.", "top_p=True"), "top_p is True, expected 1.0"),
    "keywords that cannot be known": (
        IMPORT + CALL.replace("top_k", "**more, top_k"),
        "line 2: SamplingDefaults gets arguments by * or **",
    ),
    "a star import": (
        "from ..x.m import *\n" + CALL,
        ("SamplingRange must come from where SamplingDefaults comes from, and only a star import can bring it "
        "(line 1: from ..x.m import *)"),
    ),
    "a class without the other": (
        "class SamplingDefaults: pass\n" + CALL,
        "and SamplingDefaults is defined in this text (line 1); SamplingRange is bound nowhere",
    ),
    "another name": (
        "from m import Defaults as SamplingDefaults\n" + CALL,
        "SamplingDefaults is another name for Defaults (line 1)",
    ),
    "imported twice": (
        "try:\n    from a import SamplingDefaults\nexcept ImportError:\n    from b import SamplingDefaults\n" + CALL,
        "it is imported 2 times: lines 2, 4",
    ),
    "bound nowhere": (CALL, "nothing in this text binds SamplingDefaults"),
    "taken from a call": (
        CALL.replace("SamplingDefaults(", "get().SamplingDefaults("),
        "line 1: SamplingDefaults is taken from get(), expected a module's name before it",
    ),
    "no Python": ("def f(:\n", "it cannot be read as Python: line 1: "),
    "in an f-string": (
        IMPORT + 'f"{R(sampling_defaults=SamplingDefaults(temperature=1., top_p=1., top_k=-1))}"\n',
        "line ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_was_found_and_where(name):
    text, words = REFUSED[name]
    assert words in refused(text).message


def test_calls_that_are_not_meant_are_named():
    error = refused(IMPORT + "\nDEFAULTS = SamplingDefaults()\n")
    assert error.details == ("SamplingDefaults is called elsewhere: lines 3",)


def test_without_an_argument_the_one_call_of_the_text_is_meant():
    edit = PythonEdit(call="C", add={"a": "1", "b": "x"})
    assert added("y = C()\n", edit) == "y = C(a=1, b=x)\n"
    assert added("y = C(\n)\n", edit) == "y = C(\n    a=1,\n    b=x,\n)\n"
    assert added("y = C(q(1), a=1)\n", edit) == "y = C(q(1), a=1, b=x)\n"
    assert added("y = C((1))\n", edit) == "y = C((1), a=1, b=x)\n"
    assert "would change more" not in refused("y = C(z for z in w)\n", edit).message


def test_both_states_through_the_patch(monkeypatch):
    edits = [EditSpec(why="opened", python=EDIT)]
    before, after = (text.encode() for text in VARIANTS["one line"])
    found = patched("recipe", before, edits, Known())
    assert found.patched == after
    assert found.known == Known(digest(before), digest(after))
    with pytest.raises(
        PatchRefused, match=r"patch recipe: edit 1 of 1 does not fit: .* is called nowhere"
    ) as raised:
        patched("recipe", b"x = 1\n", edits, Known())
    assert raised.value.details == ("the edit is for: opened",)


def test_an_expression_that_is_no_python_is_a_fault_of_the_recipe():
    with pytest.raises(ValidationError, match="ranges is no Python expression: SamplingRange"):
        PythonEdit(call="C", add={"ranges": "SamplingRange(1,"})
