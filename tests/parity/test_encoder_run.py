"""The program that runs a checkpoint's encoder, its words, its answers, and what is remembered of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sparkyard import parity
from sparkyard.errors import ConfigError, CouldNotCheck
from sparkyard.guard import node_script
from sparkyard.parity_record import record_path, standing
from tests.parity.adapter import source

CASES = parity.suite()


def test_the_program_of_the_container_runs_an_encoder_over_the_suite(tmp_path):
    encoder = tmp_path / "encoding.py"
    encoder.write_text(source())
    asked = parity.encoder_command("image", str(tmp_path), CASES).stdin
    words = [sys.executable, "-I", "-B", "-c", node_script("encode.py"), str(encoder)]
    done = subprocess.run(words, input=asked, capture_output=True, check=True)
    prompts = parity.encoder_prompts(done.stdout, len(CASES))
    expected = [case.expected for case in CASES if not case.refused_here]
    assert [p for p, case in zip(prompts, CASES, strict=True) if not case.refused_here] == expected


def test_the_container_can_do_nothing_but_answer():
    words = parity.encoder_command("sparkyard/a:1", "/models/x/encoding", CASES[:1]).words
    line = " ".join(words[: words.index("-c")])
    for part in (
        "--network none",
        "--read-only",
        "--user 65534:65534",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pull never",
        "--mount type=bind,source=/models/x/encoding,target=/encoding,readonly",
        "--entrypoint python3 sparkyard/a:1 -I -B",
    ):
        assert part in line


@pytest.mark.parametrize("out", [b"", b"[]", b'[{"promt": "x"}]', b"Traceback", b"[1]"])
def test_an_answer_that_is_none_is_could_not_check(out):
    with pytest.raises(CouldNotCheck):
        parity.encoder_prompts(out, 1)


def test_a_damaged_suite_is_named(tmp_path):
    (tmp_path / "x.json").write_text('[{"name": "a"}]')
    with pytest.raises(ConfigError, match="no suite of conversations"):
        parity.suite(tmp_path)


def test_what_is_known_holds_for_one_template_only(tmp_path):
    assert standing(tmp_path, "A", "1" * 64) == "parity unproven"
    path = record_path(tmp_path, "A")
    path.parent.mkdir()
    record = {"proven": True, "equal": 60, "template": "1" * 64, "when": "today", "differ": []}
    path.write_text(json.dumps(record))
    assert standing(tmp_path, "A", "1" * 64).startswith("parity proven on today: 60 conversations")
    assert standing(tmp_path, "A", "2" * 64) == "parity unproven: the last run was of another template"
    assert standing(tmp_path, "A", "") == "parity unproven: the last run was of another template"
    path.write_text(json.dumps(record | {"proven": False, "differ": ["unicode"]}))
    assert standing(tmp_path, "A", "1" * 64) == "parity refuted on today: unicode"
    path.write_text("{")
    assert standing(tmp_path, "A", "1" * 64) == "parity unproven"
