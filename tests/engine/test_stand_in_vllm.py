"""The stand-in in place of a vLLM whose image calls it itself: how it is known, what its boot says, and what ends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_stand_in_engine import LAB, read

BOOT = "import json, sys, os, styles, boot_log, checks; g = styles.parse(sys.argv[1:], os.environ); print(json.dumps([list(boot_log.vllm(g, int(g.facts['rank']), os.environ)), list(checks.vllm_faults(g, os.environ))]))"
DRAFTS = json.dumps({"method": "dspark", "num_speculative_tokens": 5})
LINE = "/models --served-model-name V --max-model-len 1048576 --max-num-seqs 16 --max-num-batched-tokens 8192 --kv-cache-memory-bytes 11274289152 --nnodes 4 --node-rank 0 --master-addr 10.0.0.1 --master-port 9999 --long-prefill-token-threshold 8096"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("stand-in")
    for path in (*(LAB / "stand-in").glob("*.py"), *(LAB / "engine").glob("*.py")):
        (made / path.name).write_bytes(path.read_bytes())
    return made


def boot(folder: Path, line: str, **env: str) -> tuple[list[str], list[str]]:
    """What the boot says, and what would end it."""
    words = [*line.split(), "--speculative-config", DRAFTS]
    done = subprocess.run(
        [sys.executable, "-c", BOOT, *words],
        cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    said, faults = json.loads(done.stdout)
    return said, faults


def test_it_is_known_by_its_flags_where_no_word_names_it(folder: Path) -> None:
    style, facts, rendezvous, problems = read(folder, *LINE.split(), "--headless")
    assert (style, rendezvous, problems) == ("vllm", "10.0.0.1:9999", [])
    assert (facts["model"], facts["name"], facts["world"], facts["chunk"]) == ("/models", "V", "4", "8192")


def test_the_pool_follows_from_its_bytes_as_published(folder: Path) -> None:
    assert boot(folder, LINE)[0] == ["GPU KV cache size: 8,580,566 tokens"]
    smaller = LINE.replace("11274289152", "8589934592")
    assert boot(folder, smaller)[0] == ["GPU KV cache size: 6,537,574 tokens"]
    assert boot(folder, LINE.replace("--node-rank 0", "--node-rank 1"))[0] == []


def test_one_shot_collectives_are_named_where_they_are_set_up(folder: Path) -> None:
    said = boot(folder, LINE, SPARKNET_ROCE_TOPOLOGY="direct")[0]
    assert said[0].startswith("Collective policy for group 'tp:0': SPARKNET_ONESHOT for eligible")


@pytest.mark.parametrize(
    ("change", "env", "says"),
    [
        (("8096", "8192"), {}, "leaves the decodes no room: at most 8096"),
        (("--nnodes", "--disable-custom-all-reduce --nnodes"), {"VLLM_DS41_KERNEL_BACKEND": "tilelang"}, "need custom all-reduce"),
        (("", ""), {"VLLM_DS41_KERNEL_BACKEND": "tilelang", "VLLM_ENABLE_ROCE_ALLREDUCE": "1"}, "does not apply"),
        (("--nnodes", "--enable-expert-parallel --nnodes"), {"SPARKNET_ROCE_TOPOLOGY": "ring4"}, "no route for experts"),
    ],
)  # fmt: skip
def test_what_ends_a_boot(folder: Path, change: tuple[str, str], env: dict[str, str], says: str) -> None:
    (fault,) = boot(folder, LINE.replace(*change) if change[0] else LINE, **env)[1]
    assert says in fault
