"""Lane D as it is rendered: published words, what must be equal, names that follow from settings, secrets, rules."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sparkyard.errors import ConfigError
from sparkyard.fidelity import comparisons
from sparkyard.load import find_recipes, load_all
from sparkyard.lock import Lock, LockedFile
from sparkyard.model import Lane
from sparkyard.normal_form import of_run
from sparkyard.render import render_lane
from sparkyard.rendered import RenderedLane
from sparkyard.rendered_job import RenderedJob
from tests.unit.words import behind

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "d-flare"
COMMIT = "1bae0e1" + "0" * 33
PRISTINE, PATCHED = "a" * 64, "b" * 64
HOME = "<discovered: home>/.local/share/sparkyard"
CACHE = f"{HOME}/lanes/D/cache/47581cc-c16-d5-csf"
CHECKPOINT = f"{HOME}/models/deepseek-ai--DeepSeek-V4.1-Flash-1017/{COMMIT}"
TARGET = "/opt/flare/ignition/recipes/deepseek41/recipe.py"
KEY = "0123456789abcdef"


@cache
def lane(*sets: str, inventory: str = "four-spark") -> Lane:
    recipes = dict(find_recipes(ROOT, []))
    return load_all(ROOT / "inventory" / inventory, recipes, "D", environ={}, sets=list(sets))


@cache
def rendered(*sets: str) -> RenderedLane:
    here = lane(*sets)
    lock = Lock(files={"sampling": LockedFile(PRISTINE, PATCHED)})
    return render_lane(here, dict.fromkeys(here.checkpoints, COMMIT), lock)


def job(made: RenderedLane, name: str) -> RenderedJob:
    return next(each for each in made.jobs if each.name == name)


def service(made: RenderedLane, name: str) -> list[Any]:
    return [each for each in made.containers if each.service == name]


# --- published ---------------------------------------------------------------------------------------------------------


def test_the_export_is_the_published_line_behind_our_check():
    export = job(rendered("profile=published"), "export")
    assert behind(export.containers[0]) == [
        *("sh", "/sparkyard/checked.sh", "pristine", PRISTINE),
        *(".venv/bin/python", "-m", "ignition", "export", CHECKPOINT, "--gpus", "0", "--ranks", "4"),
        *("--rendezvous", "10.0.0.1:29630", "--max-concurrency", "16", "--mtp-draft-tokens", "5"),
        *("--expert-scale-compression", "csf"),
        *("--output", "/root/.cache/flare/runtime/dsv41-1017-csf-tp4-c16.safetensors"),
    ]
    for rank in (1, 2, 3):
        assert behind(export.containers[rank])[4:] == [
            *(".venv/bin/python", "-m", "ignition", "join", "10.0.0.1:29630"),
            *("--rank", str(rank), "--ranks", "4"),
        ]


def test_published_lines_differ_where_the_recipe_says_so():
    found = {one.name: one for one in comparisons(lane())}
    assert [one.faults for one in found.values()] == [()] * 7
    assert {name: one.equal for name, one in found.items()} == {
        "agents on every node": 1,
        "pairing from rank 0": 0,  # all of it stands behind the shell's -c
        "export on rank 0": 8,
        "join on ranks 1 to 3": 2,
        "export, docker options of rank 0": 9,
        "export, docker options of ranks 1 to 3": 8,
        "serving": 6,
    }
    assert all(difference.why for one in found.values() for difference in one.seen)


def test_the_export_has_the_published_docker_flags_on_every_rank():
    forms = [of_run(container.words) for container in job(rendered(), "export").containers]
    for form in forms:
        assert form.options == {
            "--init": "",
            "--network": "host",
            "--gpus": "all",
            "--ipc": "host",
            "--ulimit.memlock": "-1",
            "--device./dev/infiniband": "",
            "--cap-add.IPC_LOCK": "",
            "--cap-add.SYS_NICE": "",
            "--security-opt.seccomp": "unconfined",
            "--workdir": "/opt/flare",
        }
        assert form.mounts["/root/.config/flare"] == f"{HOME}/lanes/D/config/flare"
        assert form.mounts["/root/.cache"] == CACHE
        assert form.mounts[TARGET] == f"{HOME}/lanes/D/patched/recipe.py:ro"
    assert [CHECKPOINT in form.mounts for form in forms] == [True, False, False, False]
    assert forms[0].mounts[CHECKPOINT] == f"{CHECKPOINT}:ro"


def test_agents_pairing_and_serving_are_the_published_words_with_secrets_behind_them():
    made = rendered("profile=published")
    agents = [behind(container) for container in service(made, "agent")]
    assert [words[4:] for words in agents] == [
        ["flare", "agent", "install", "--listen", f"10.0.0.{n}:29900"] for n in (1, 2, 3, 4)
    ]
    assert {words[2] for words in agents} == {'exec "$@" --join-code "$(cat /run/secrets/join-code)"'}
    pair = behind(job(made, "pair").containers[0])
    assert pair[4:] == ["flare", "orbit", "pair", *(f"10.0.0.{n}:29900" for n in (1, 2, 3, 4))]
    assert pair[2] == 'exec "$@" --code "$(cat /run/secrets/join-code)"'
    (orbit,) = service(made, "orbit")
    assert behind(orbit)[4:] == [
        *("flare", "orbit", "run", f"spark-1:{CACHE}/flare/runtime/dsv41-1017-csf-tp4-c16.safetensors"),
        *("--cluster", "sparks", "--gpus", "0", "--host", "0.0.0.0", "--port", "8003"),
        *(
            "--served-model-name",
            "deepseek-v4.1-flash-flare",
            "--dangerously-accept-publisher",
            "local-development",
        ),
    ]
    assert behind(orbit)[2] == 'exec "$@" --dangerously-approve-key "$(cat /run/secrets/approve-key)"'


def test_the_shell_puts_the_secret_behind_the_words(tmp_path):
    """The words run for real, with `flare` and the secret's file in place of their own."""
    made = rendered()
    program, secret = tmp_path / "flare", tmp_path / "join-code"
    program.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    program.chmod(0o755)
    secret.write_text("two words and * a star")
    words = [
        word.replace("/run/secrets/join-code", str(secret)) for word in behind(service(made, "agent")[0])
    ]
    done = subprocess.run(
        words, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        *("agent", "install", "--listen", "10.0.0.1:29900", "--join-code", "two words and * a star")
    ]


def test_the_default_is_closed_and_near_greedy():
    made = rendered()
    words = behind(service(made, "orbit")[0])
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert made.ready.body["temperature"] == 1e-5
    assert made.ready.body["chat_template_kwargs"] == {"enable_thinking": False}
    assert made.stages == (("agent",), ("pair",), ("orbit",))
    assert job(made, "export").order == ((0,), (1, 2, 3))
    assert (job(made, "export").timeout, job(made, "export").log_silence) == (10800, 1200)
    assert made.ports["spark-1"] == {"API": 8003, "rendezvous": 29630, "agent": 29900}
    assert made.ports["spark-3"] == {"agent": 29900}


# --- names and places ----------------------------------------------------------------------------------------------------


def package(made: RenderedLane) -> str:
    (output,) = job(made, "export").makes
    assert output.node == "spark-1"
    return output.path


@pytest.mark.parametrize(
    ("sets", "folder", "name"),
    [
        ([], "47581cc-c16-d5-csf", "dsv41-1017-csf-tp4-c16-t1e-5"),
        (["near_greedy=false"], "47581cc-c16-d5-csf", "dsv41-1017-csf-tp4-c16"),
        (["concurrency=8"], "47581cc-c8-d5-csf", "dsv41-1017-csf-tp4-c8-t1e-5"),
        (["drafts=3"], "47581cc-c16-d3-csf", "dsv41-1017-csf-tp4-c16-t1e-5"),
        (["output=/root/.cache/mine/p.safetensors"], "47581cc-c16-d5-csf", None),
    ],
)
def test_the_package_is_named_after_what_is_built_into_it(sets, folder, name):
    made = rendered(*sets)
    inside = f"flare/runtime/{name}.safetensors" if name else "mine/p.safetensors"
    assert package(made) == f"{HOME}/lanes/D/cache/{folder}/{inside}"
    words = behind(job(made, "export").containers[0])
    assert words[-1] == f"/root/.cache/{inside}"
    assert f"spark-1:{package(made)}" in behind(service(made, "orbit")[0])
    assert of_run(job(made, "export").containers[2].words).mounts["/root/.cache"].endswith(f"/{folder}")


@pytest.mark.parametrize("change", ["concurrency=8", "drafts=4", "compression=off"])
def test_a_changed_capacity_never_meets_the_old_compiled_forward(change):
    caches = [{kept.name: kept.path for kept in rendered(*sets).kept["spark-2"]} for sets in ([], [change])]
    assert caches[0]["cache"] != caches[1]["cache"]
    assert caches[0]["config"] == caches[1]["config"]


def test_room_is_counted_in_bytes():
    made = rendered()
    rooms = {room.node: room.size for room in job(made, "export").room}
    assert rooms == {
        "spark-1": 523_600_000_000,
        "spark-2": 170_000_000_000,
        "spark-3": 170_000_000_000,
        "spark-4": 170_000_000_000,
    }
    (output,) = job(made, "export").makes
    assert (output.size, output.at_least, output.sidecar) == (None, 452_200_000_000, True)
    assert rooms["spark-1"] == 476_000_000_000 * 11 // 10


def test_the_recipe_is_mounted_and_expected_only_where_it_is_patched():
    patched, plain = rendered(), rendered("near_greedy=false")
    for container in job(patched, "export").containers:
        assert behind(container)[2:4] == ["patched", PATCHED]
    for container in job(plain, "export").containers:
        assert behind(container)[2:4] == ["pristine", PRISTINE]
        assert TARGET not in of_run(container.words).mounts
    assert [check.name for check in plain.checks] == [
        c.name for c in patched.checks if "lowest temperature repeats" not in c.name
    ]


def test_the_checkpoint_may_be_everywhere():
    everywhere = lane("weights_on=all")
    assert [spec.nodes for spec in everywhere.checkpoints.values()] == ["all"]
    made = rendered("weights_on=all")
    assert all(CHECKPOINT in of_run(container.words).mounts for container in job(made, "export").containers)


def test_what_an_export_is_made_of_does_not_change_with_secrets_or_serving():
    before = job(rendered(), "export").hash
    same = [
        "approve_key=" + KEY,
        "port=9000",
        "model_name=other",
        "agent_token=" + "x" * 40,
        "join_code=abcd-efgh",
        "cluster=mine",
    ]
    for change in same:
        assert job(rendered(change), "export").hash == before, change
    for change in ("near_greedy=false", "concurrency=8", "drafts=4", "seccomp=/etc/flare.json"):
        assert job(rendered(change), "export").hash != before, change


# --- secrets ---------------------------------------------------------------------------------------------------------------


def test_secrets_travel_in_files_of_0600_without_a_line_end():
    token, code = "t" * 40, "code-of-mine"
    made = rendered(f"agent_token={token}", f"join_code={code}", f"approve_key={KEY}")
    files = {(file.node, file.name): file for file in made.files}
    for node in ("spark-1", "spark-2", "spark-3", "spark-4"):
        assert (files[node, "token"].mode, files[node, "token"].content) == (0o600, token)
        assert files[node, "join-code"].content == code
    assert files["spark-1", "approve-key"].content == KEY
    assert ("spark-2", "approve-key") not in files
    every = [*made.containers, *(container for each in made.jobs for container in each.containers)]
    assert not any(
        secret in word for container in every for word in container.words for secret in (token, code, KEY)
    )
    assert not any("--env-file" in container.words for container in every)


def test_a_generated_token_is_longer_than_32_bytes():
    assert len("0" * 2 * 24) >= 32
    made = rendered()
    assert next(file for file in made.files if file.name == "token").content == "<generated: agent_token>"


# --- rules -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["expose=true"], r"Flare has no known option for a key; set unauthenticated: true"),
        (
            ["output=/root/packages/x.safetensors"],
            r"output: a \.safetensors file below /root/\.cache/ .* is expected",
        ),
        (
            ["output=/root/.cache/../x.safetensors"],
            r"output: a \.safetensors file below /root/\.cache/ .* is expected",
        ),
        (["output=/root/.cache/x.bin"], r"output: a \.safetensors file below /root/\.cache/ .* is expected"),
        (
            ["output=/root/.cache/a:b.safetensors"],
            r"output: a \.safetensors file below /root/\.cache/ .* is expected",
        ),
        (["cluster=my sparks"], r'cluster: a word of .* is expected, found "my sparks"'),
        (["orbit_host=a:b"], r"orbit_host: a machine's name is expected"),
        (["orbit_host=--gpus"], r"orbit_host: a machine's name is expected"),
        (["publisher=--host"], r"publisher: one word, the first character no dash, is expected"),
        (["model_name=--host"], r"model_name: a word of letters"),
        (["seccomp=default"], r"seccomp: unconfined, or the absolute path of a profile, is expected"),
        (["seccomp=/etc/../x"], r"seccomp: unconfined, or the absolute path of a profile, is expected"),
        (["compression=a/b"], r"compression: a word of letters"),
        (
            ["agent_port=8003"],
            r"--set: lanes\.D\.agent_port: 8003, the port of agent, is the port of API too",
        ),
        (["rendezvous_port=29900"], r"29900, the port of rendezvous, is the port of agent too"),
        (["port=29630"], r"29630, the port of API, is the port of rendezvous too"),
    ],
)
def test_what_is_refused_before_the_first_connection(sets, says):
    with pytest.raises(ConfigError, match=says):
        rendered(*sets)


@pytest.mark.parametrize(
    "value", ["two words", "two\nlines-of-it", "a\ttabulator", "short", "--host=0.0.0.0", "\x1bescapes"]
)
@pytest.mark.parametrize("name", ["agent_token", "join_code", "approve_key"])
def test_a_secret_that_is_not_one_word_is_refused_and_not_told(name, value):
    with pytest.raises(
        ConfigError, match=rf"--set: {name}: one word of .* is expected, found another text of {len(value)} "
    ) as told:
        rendered(f"{name}={value}")
    assert value not in str(told.value)


def test_a_difference_of_the_interface_can_be_passed_over():
    made = rendered("check_interface=false")
    assert [each.name for each in made.jobs] == ["export", "pair"]
    assert job(made, "export").needs == ()
    assert job(rendered(), "export").needs == ("interface",)
    assert job(made, "export").hash == job(rendered(), "export").hash


def test_only_a_start_needs_the_key_that_approves():
    (fault,) = rendered().start_faults
    assert "approve_key is not set" in str(fault)
    assert rendered(f"approve_key={KEY}").start_faults == ()


def test_a_lane_of_four_needs_four(tmp_path):
    text = (ROOT / "inventory/four-spark/hosts.yml").read_text()
    three = re.sub(r"(?ms)^ {8}spark-4:.*?(?=^ {0,8}\S|\Z)", "", text)
    (tmp_path / "hosts.yml").write_text(three)
    with pytest.raises(ConfigError, match=r"(?i)lane D.*4|4 .*nodes|needs 4"):
        lane(inventory=str(tmp_path))


# --- the image -------------------------------------------------------------------------------------------------------------


def test_what_is_published_as_missing_is_asked_for_in_full():
    """A request without a body would be refused by every engine, and look like the published gap."""
    gaps = {check.path: check.body for check in rendered().checks if check.not_supported}
    assert gaps.keys() == {"/v1/chat/completions", "/tokenize"}
    assert gaps["/tokenize"]["prompt"]
    assert gaps["/v1/chat/completions"]["response_format"]["json_schema"]["strict"] is True
    assert {body["model"] for body in gaps.values()} == {"deepseek-v4.1-flash-flare"}


def test_the_image_is_built_as_published():
    text = (RECIPE / "image/Dockerfile").read_text()
    build = lane().recipe.image.build
    assert build is not None
    assert build.base == "docker.io/nvidia/cuda:13.2.1-devel-ubuntu24.04"
    assert "cargo build --release --manifest-path flare/Cargo.toml" in text
    assert "uv sync --locked --extra prepare --extra test" in text
    assert "WORKDIR /opt/flare" in text


def test_the_lab_s_image_and_repository_have_the_same_recipe():
    name = "ignition/recipes/deepseek41/recipe.py"
    image = ROOT / "recipes/lab/stand-in/root/opt/flare" / name
    repository = ROOT / "sparkyard/lab/repositories/NVIDIA/flare-local-inference" / name
    assert image.read_bytes() == repository.read_bytes()


# --- our scripts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["checked.sh", "interface.sh"])
def test_scripts_parse_and_are_no_templates(script):
    text = (RECIPE / script).read_text()
    assert "{{" not in text
    assert "{%" not in text
    assert "{#" not in text
    subprocess.run(["sh", "-n", str(RECIPE / script)], check=True)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("flare-local-inference", True),
        ("spark-local-inference", True),
        ("hyperflare-inference", True),
        ("hyperflare-local-inference-2", False),
        ("flare", False),
    ],
)
def test_the_checkout_must_come_from_a_name_that_the_repository_is_known_by(name, known):
    (says,) = [says for says in lane().recipe.jobs["interface"].says if says.pattern.startswith("^origin")]
    assert bool(re.search(says.pattern, f"origin https://github.com/NVIDIA/{name}")) is known
    assert not re.search(says.pattern, "origin unknown")


def test_where_the_checkout_came_from_is_not_the_recipe_s_own_word():
    """The Dockerfile takes what git was led to, as sparkyard puts it beside the checkout."""
    text = (RECIPE / "image/Dockerfile").read_text()
    assert "COPY flare.origin /opt/flare/.sparkyard-origin\n" in text
    assert "cat /opt/flare/.sparkyard-origin\n" in (RECIPE / "interface.sh").read_text()
    build = lane().recipe.image.build
    assert build is not None
    assert build.args.keys() == {"RUST", "UV"}


def test_what_the_interface_job_wants_is_every_option_that_the_recipe_uses():
    patterns = " ".join(says.pattern for says in lane().recipe.jobs["interface"].says)
    made = rendered(f"approve_key={KEY}")
    every = [*made.containers, *job(made, "export").containers, *job(made, "pair").containers]
    used = {
        word
        for container in every
        for text in behind(container)
        for word in re.findall(r"(?<!\S)--[a-z-]+", text)
    }
    assert used
    assert [option for option in sorted(used) if f"{option}(?![\\w-])" not in patterns] == []
