"""The stand-in engine as a process: what it reads out of a lane's words, what it records, what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sparkyard.lab import tiny_repos
from tests.machine.typed import until
from tests.ports import free_port

LAB = Path(__file__).parents[2] / "recipes" / "lab"
SHOW = "import json, sys, os, styles; g = styles.parse(sys.argv[1:], os.environ); print(json.dumps([g.style.name, dict(g.facts), g.rendezvous, g.problems]))"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The engine's files as its image has them."""
    folder: Path = tmp_path_factory.mktemp("stand-in")
    for path in (*(LAB / "stand-in").glob("*.py"), *(LAB / "engine").glob("*.py")):
        shutil.copy(path, folder)
    return folder


def read(program: Path, *words: str, **env: str) -> tuple[str, dict[str, str], str, list[str]]:
    """Style, facts, rendezvous and problems of a command line."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *words],
        cwd=program, env=env, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    style, facts, rendezvous, problems = json.loads(done.stdout)
    return style, facts, rendezvous, problems


def test_words_of_tensorfold(program: Path) -> None:
    line = "tensorfold serve /model --tp 2 --rank 1 --master 10.0.0.1 --context 1048576 --parallel 4 --mtp-drafts 5 --no-thinking --port 8888"
    style, facts, rendezvous, problems = read(program, *line.split())
    assert (style, rendezvous, problems) == ("tensorfold", "10.0.0.1:29551", [])
    assert (facts["model"], facts["rank"], facts["world"], facts["parallel"]) == ("/model", "1", "2", "4")
    assert facts["no_thinking"] == "true"


def test_words_of_tensorfold_behind_python(program: Path) -> None:
    assert read(program, "python3", "-m", "tensorfold", "serve", "/m", "--port=9")[1]["port"] == "9"


def test_a_flag_that_the_real_parser_lacks_is_a_problem(program: Path) -> None:
    problems = read(program, "tensorfold", "serve", "/m", "--mtp-draft", "5")[3]
    assert problems == ["unrecognized arguments: --mtp-draft"]


def test_words_of_vllm(program: Path) -> None:
    line = "vllm serve /model --served-model-name V --port 8888 --tensor-parallel-size 2 --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 --master-port 29521 --headless --cudagraph-capture-sizes 1 2 3 --max-num-seqs 2"
    style, facts, rendezvous, problems = read(program, *line.split())
    assert (style, rendezvous, problems) == ("vllm", "10.0.0.1:29521", [])
    assert (facts["name"], facts["rank"], facts["world"], facts["parallel"]) == ("V", "1", "2", "2")


def test_words_of_sglang(program: Path) -> None:
    line = "python3 -m sglang.launch_server --model-path /model --served-model-name S --tp 4 --nnodes 4 --node-rank 3 --dist-init-addr 10.0.0.1:20000 --host 0.0.0.0"
    style, facts, rendezvous, _ = read(program, *line.split())
    assert (style, rendezvous) == ("sglang", "10.0.0.1:20000")
    assert (facts["model"], facts["rank"], facts["world"]) == ("/model", "3", "4")


def test_words_of_the_native_engine_and_its_followers(program: Path) -> None:
    env = {"TF_TP_WORLD": "4", "TF_TP_MASTER": "10.0.0.1", "TF_TP_PORT": "29760"}
    style, facts, rendezvous, _ = read(program, "tensorfold-native", "serve", "/model", **env)
    assert (style, facts["world"], rendezvous) == ("tensorfold-native", "4", "10.0.0.1:29760")
    line = "tf-dsv41-lanes /model /cache/r2.bin 2 4 10.0.0.1 29760 /kit --engram /engram --graphs 1"
    style, facts, rendezvous, _ = read(program, *line.split())
    assert (style, facts["rank"], facts["world"]) == ("tf-dsv41-lanes", "2", "4")
    assert rendezvous == "10.0.0.1:29760"


# --- running ----------------------------------------------------------------------------------------------------------


class Ranks:
    """Ranks of one lane on this machine."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        tiny_repos.write(folder / "hub")
        self.model = folder / "hub" / "Mia-AiLab" / "DeepSeek-V4.1-Flash-EXL3-2.9bpw"
        self.engram = folder / "hub" / "deepseek-ai" / "DeepSeek-V4.1-Flash"
        self.port, self.master = free_port(), free_port()
        self.running: dict[int, subprocess.Popen[str]] = {}

    def words(self, rank: int, *more: str) -> list[str]:
        line = f"tensorfold serve {self.model} --tp 2 --rank {rank} --master 127.0.0.1 --master-port {self.master} --port {self.port} --name M"
        return [*line.split(), *more]

    def start(self, rank: int, *more: str, **env: str | None) -> None:
        state = self.folder / f"state{rank}"
        state.mkdir(exist_ok=True)
        given = {"TF_DS_ENGRAM": str(self.engram), "STAND_IN_STATE": str(state), "PATH": os.environ["PATH"]}
        given |= {name: value for name, value in env.items() if value is not None}
        for name in [name for name, value in env.items() if value is None]:
            given.pop(name, None)
        with (self.folder / f"{rank}.log").open("w") as log:
            self.running[rank] = subprocess.Popen(
                [sys.executable, str(self.program / "stand_in.py"), *self.words(rank, *more)],
                env=given, stdout=log, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip

    def log(self, rank: int) -> str:
        return (self.folder / f"{rank}.log").read_text()

    def ended(self, rank: int) -> int:
        return self.running[rank].wait(180)

    def record(self, rank: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.folder / f"state{rank}" / f"stand-in.rank{rank}.json").read_text()
        )
        return found

    def ask(self, path: str, body: dict[str, Any] | None = None, key: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx2.request(
            "POST" if body is not None else "GET", url, json=body, headers=headers, timeout=60
        )

    def serve(self, *more: str, **env: str | None) -> None:
        for rank in (1, 0):
            self.start(rank, *more, **env)
        until(lambda: "serving M" in self.log(0) or self.running[0].poll() is not None)
        assert self.running[0].poll() is None, self.log(0)

    def chat(self, **more: Any) -> dict[str, Any]:
        body = {"model": "M", "messages": [{"role": "user", "content": "17*19="}], **more}
        answer = self.ask("/v1/chat/completions", body)
        assert answer.status_code == 200, answer.text
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message


@pytest.fixture
def ranks(program: Path, tmp_path: Path) -> Iterator[Ranks]:
    made = Ranks(program, tmp_path)
    yield made
    for process in made.running.values():
        process.kill()
        process.wait()


def test_two_ranks_record_meet_and_serve(ranks: Ranks) -> None:
    ranks.serve("--no-thinking", TF_DS_RANK_CACHE=str(ranks.folder / "prepared"))
    assert [ranks.record(rank)["rank"] for rank in (0, 1)] == [0, 1]
    assert ranks.record(1)["argv"] == ranks.words(1, "--no-thinking")
    assert sorted(path.name for path in (ranks.folder / "prepared").iterdir()) == [
        "rank0of2.bin",
        "rank1of2.bin",
    ]
    assert ranks.ask("/v1/models").json()["data"][0]["id"] == "M"
    assert ranks.chat() == {"role": "assistant", "content": "323"}
    assert "reasoning_content" in ranks.chat(reasoning_effort="high")
    assert "reasoning_content" in ranks.chat(chat_template_kwargs={"enable_thinking": True})
    assert ranks.ask("/v1/chat/completions", {"model": "other", "messages": []}).status_code == 404
    assert len(ranks.ask("/tokenize", {"content": "two words"}).json()["tokens"]) == 2
    ranks.running[1].kill()
    assert ranks.ended(0) == 3


def test_exact_formats_are_obeyed(ranks: Ranks) -> None:
    ranks.serve("--no-thinking")
    assert ranks.chat(guided_choice=["yes", "no"])["content"] == "yes"
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    assert json.loads(ranks.chat(guided_json=schema)["content"]) == {"n": 3}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads(ranks.chat(response_format=form)["content"]) == {"n": 3}
    for pattern in (r"[0-9]{4}-[01]\d", r"(red|green)+ [^a]\w*\.", r"a?b{2,3}\sc"):
        assert re.fullmatch(pattern, ranks.chat(guided_regex=pattern)["content"]), pattern
    refused = ranks.ask("/v1/chat/completions", {"model": "M", "messages": [], "guided_regex": "("})
    assert refused.status_code == 400


def test_thinking_is_on_unless_the_words_say_otherwise_and_eats_small_budgets(ranks: Ranks) -> None:
    ranks.serve()
    assert "reasoning_content" in ranks.chat()
    assert ranks.chat(max_tokens=2)["content"] == ""
    assert "reasoning_content" not in ranks.chat(chat_template_kwargs={"enable_thinking": False})


def test_a_key_is_wanted_everywhere_but_at_health_and_is_shown_nowhere(ranks: Ranks) -> None:
    ranks.serve(TF_API_KEY="very-secret-key")
    assert ranks.ask("/health").status_code == 200
    assert ranks.ask("/v1/models").status_code == 401
    assert ranks.ask("/v1/models", key="very-secret-key").status_code == 200
    assert "very-secret-key" not in ranks.log(0) + json.dumps(ranks.record(0))


@pytest.mark.parametrize(
    ("more", "env", "said"),
    [
        (("--parallel", "2"), {}, "--parallel is '2' on rank 1 and 'auto' on rank 0"),
        (("--vision",), {}, "--vision is 'true' on rank 1 and 'off' on rank 0"),
        ((), {"NCCL_IB_HCA": "a,b"}, "the number of RDMA devices is 2 on rank 1 and 0 on rank 0"),
    ],
)
def test_ranks_that_differ_end(ranks: Ranks, more: tuple[str, ...], env: dict[str, str], said: str) -> None:
    ranks.start(0)
    ranks.start(1, *more, **env)
    assert (ranks.ended(0), ranks.ended(1)) == (2, 2)
    assert said in ranks.log(0)
    assert said in ranks.log(1)


def test_what_is_missing_is_said_and_ends_the_rank(ranks: Ranks) -> None:
    (ranks.model / "chat_template.jinja").unlink()
    (ranks.model / "model-00002-of-00039.safetensors").unlink()
    with (ranks.engram / "model-00047-of-00048.safetensors").open("ab") as table:
        table.write(b"x")
    ranks.start(0, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="1")
    assert ranks.ended(0) == 1
    for words in (
        "no chat_template.jinja",
        "model-00002-of-00039.safetensors is missing",
        "its header ends at",
        "must be 0",
    ):
        assert f"{words}" in ranks.log(0)


def test_engram_tables_that_nobody_named_are_an_error(ranks: Ranks) -> None:
    ranks.start(0, TF_DS_ENGRAM=None)
    assert ranks.ended(0) == 1
    assert "ERROR no Engram tables" in ranks.log(0)


def test_another_identity_s_kept_prompts_are_deleted(ranks: Ranks) -> None:
    spill = ranks.folder / "spill"
    (spill / "other").mkdir(parents=True)
    ranks.serve(TF_DS_SPILL_GIB="64", TF_DS_SPILL_DIR=str(spill))
    assert [path.name != "other" for path in spill.iterdir()] == [True]


BOTH = """
import shutil
from pathlib import Path
import disk

deleted, top = [], Path("spill")
really = shutil.rmtree

def rmtree(folder):
    if not deleted:  # the other rank was faster
        really(folder)
    deleted.append(folder.name)
    really(folder)

shutil.rmtree = rmtree
(top / "other" / "prompt").mkdir(parents=True)
disk.spill(top, 1, "mine")
print(deleted, [path.name for path in top.iterdir()])
"""


def test_two_ranks_of_a_node_delete_the_same_prompts(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOTH], cwd=tmp_path, env={"PYTHONPATH": str(program)}, capture_output=True,
        text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "['other'] ['mine']"


def test_faults_on_demand_are_for_every_rank_or_for_one(ranks: Ranks) -> None:
    ranks.start(1, STAND_IN_1="--die-after 0 --exit-code 7 --last-words 'CUDA error: out of memory'")
    assert ranks.ended(1) == 7
    assert "CUDA error: out of memory" in ranks.log(1)
