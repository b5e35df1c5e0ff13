"""Environment files mean the same to their reader as to us."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkyard import env_dialects

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=40)


def test_docker_takes_values_literally():
    assert env_dialects.text({"A": 'say "$HOME" # c'}, "docker-env") == 'A=say "$HOME" # c\n'


@settings(deadline=None)
@given(TEXT)
def test_a_shell_reads_every_value_back(value):
    text = env_dialects.text({"A": value}, "shell")
    read = subprocess.run(
        ["sh", "-c", '. /dev/stdin; printf %s "$A"'], input=text.encode(), capture_output=True, check=True
    )
    assert read.stdout == value.encode()


def test_what_a_dialect_cannot_carry_is_told_of_every_entry():
    values = {"1A": "x", "B": "two\nlines", "C": "a\0b", "D": "x" * 70_000, "NCCL_IB_GID_INDEX": "", "E": ""}
    found = dict(env_dialects.faults(values, "docker-env"))
    assert list(found) == ["1A", "B", "C", "D", "NCCL_IB_GID_INDEX"]
    assert found["B"] == "holds a line break, which docker run --env-file cannot carry"


def test_a_shell_can_carry_line_breaks():
    assert list(env_dialects.faults({"B": "two\nlines"}, "shell")) == []
