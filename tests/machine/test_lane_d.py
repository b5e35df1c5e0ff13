"""Lane D's whole life on four simulated Sparks, with stand-ins for Flare: exports that meet, fail and heal; secrets that are seen nowhere."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.machine import recorded
from tests.machine.conftest import Lab
from tests.machine.lane_d import CACHE, DATA, KEY, NODES, NOTHING, OWN, PACKAGE, forget, inspected, somebody
from tests.machine.typed import PROJECT, Typist

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-d"
STATE = "home/.local/state/sparkyard"
OF_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "PYTHONPATH", "_"}
"""Variables of the shells that the words, and the lab's own programs, go through."""


@pytest.fixture(scope="module")
def typist(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type, who has told the inventory which key approves the packages of these nodes."""
    return somebody(four_lab, tmp_path_factory.mktemp("inventory") / "stand-in")


@dataclass
class Life:
    """What the lane's whole life said, and every command line that was there meanwhile."""

    said: str
    lines: set[bytes]


@pytest.fixture(scope="module")
def life(four_lab: Lab, typist: Typist) -> Life:
    """The lane, downloaded, built, exported, paired, serving and verified on nodes that had nothing."""
    forget(four_lab)
    with seen_meanwhile() as lines:
        said = typist.ok("download", "build", "start", "verify", "--lane=D", "--yes")
    results = [e["data"]["result"] for e in said.events if e["data"].get("result")]
    assert results == ["pass"] * 5 + ["not supported (published)"] * 2
    return Life(json.dumps(said.events) + said.err, lines)


@pytest.fixture(scope="module")
def started(four_lab: Lab, life: Life) -> Iterator[Lab]:
    """The lane as its life left it, once for all tests that only look."""
    yield four_lab
    forget(four_lab)


# --- what every rank was given ---------------------------------------------------------------------------------------


def record(lab: Lab, node: str, role: str, rank: int) -> dict[str, Any]:
    """What the stand-in of a role saw from inside."""
    places = (lab.own(node) / OWN).rglob(f"stand-in/{role}/stand-in.rank{rank}.json")
    told: dict[str, Any] = json.loads(max(places, key=lambda path: path.stat().st_mtime_ns).read_text())
    return told


def settled(seen: dict[str, Any]) -> dict[str, Any]:
    """The same with homes and the checkpoint's commit by their names."""
    text = re.sub(r'/[^" :,=]*/self/home/', "<home>/", json.dumps(seen))
    told: dict[str, Any] = json.loads(re.sub(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])", "<commit>", text))
    return told


def service(lab: Lab, name: str, rank: int) -> dict[str, Any]:
    host = inspected(lab, NODES[rank], f"sparkyard-D-{name}-{rank}")
    seen = recorded.normal(record(lab, NODES[rank], name, rank), host["HostConfig"])
    environment = {name: value for name, value in seen["environment"].items() if name not in OF_THE_SHELL}
    return settled({**seen, "environment": environment, "words": host["Config"]["Cmd"]})


def job(lab: Lab, rank: int) -> dict[str, Any]:
    """A rank of the export: from inside, and its ``docker run`` as the package's sidecar has it."""
    sidecar = json.loads((lab.own("spark-1") / f"{PACKAGE}.sparkyard.json").read_text())
    inside = record(lab, NODES[rank], "export", rank)
    asked = sidecar["ranks"][rank]["argv"]
    words = [
        word for word in asked if not word.startswith(("sparkyard.", "sparkyard/")) and word != "--label"
    ]
    return settled(
        {
            "argv": recorded.by_flag(inside["argv"]),
            "mounts": {each["target"]: recorded.source(each) for each in inside["mounts"]},
            "devices": inside["devices"],
            "user": f"{inside['uid']}:{inside['gid']}",
            "docker": [word.replace("<discovered: home>/", "<home>/") for word in words],
        }
    )


def test_every_rank_was_given_what_the_golden_files_say(started: Lab) -> None:
    recorded.compare(GOLDEN / "export", [job(started, rank) for rank in range(4)])
    recorded.compare(GOLDEN / "agent", [service(started, "agent", rank) for rank in range(4)])
    recorded.compare(GOLDEN / "orbit", [service(started, "orbit", 0)])


def test_the_agents_were_paired_in_the_order_of_the_ranks(started: Lab) -> None:
    assert recorded.by_flag(record(started, "spark-1", "pair", 0)["argv"]) == [
        "flare orbit pair 198.18.1.1:29900 198.18.1.2:29900 198.18.1.3:29900 198.18.1.4:29900",
        "--code '<hidden: 48 characters>'",
    ]


def test_the_export_of_every_rank_has_the_same_flags_and_the_same_recipe(started: Lab) -> None:
    ranks = [job(started, rank) for rank in range(4)]
    flags = [one["docker"][: one["docker"].index("--workdir")] for one in ranks]
    own = {word for rank in range(4) for word in (f"sparkyard-D-job-export-{rank}",)}
    assert len({tuple(word for word in words if word not in own) for words in flags}) == 1
    target = "/opt/flare/ignition/recipes/deepseek41/recipe.py"
    assert {one["mounts"][target] for one in ranks} == {
        "<home>/.local/share/sparkyard/lanes/D/patched/recipe.py"
    }
    texts = {(started.own(node) / OWN / "patched/recipe.py").read_bytes() for node in NODES}
    assert len(texts) == 1
    assert b'ranges={"temperature": SamplingRange(1e-5, 1.)}' in texts.pop()
    checkpoint = [target for target in ranks[0]["mounts"] if "/models/" in target]
    assert len(checkpoint) == 1
    assert not any("/models/" in target for one in ranks[1:] for target in one["mounts"])


def test_the_package_is_a_hard_link_with_a_sidecar(started: Lab) -> None:
    package = started.own("spark-1") / PACKAGE
    assert package.stat().st_nlink == 2
    sidecar = json.loads(Path(f"{package}.sparkyard.json").read_text())
    made_of = sidecar["made_of"]
    assert len(made_of["checkpoints"]["weights"]) == len(made_of["git"]["patches.sampling.git"]) == 40
    assert len(made_of["patches"]["sampling"]) == 64
    assert [rank["node"] for rank in sidecar["ranks"]] == list(NODES)
    assert len(set(sidecar["images"].values())) == 1


def test_the_checkpoint_is_on_the_head_alone(started: Lab) -> None:
    there = [bool(list((started.own(node) / DATA / "models").glob("*/*/config.json"))) for node in NODES]
    assert there == [True, False, False, False]


def test_the_second_time_changes_nothing(started: Lab, typist: Typist) -> None:
    assert typist.ok("download", "build", "start", "--lane=D").changed() == NOTHING
    assert typist.json("download", "build", "start", "--lane=D", "--check").status == 0
    assert typist.json("status").status == 0


def test_show_and_template_say_what_a_person_must_know(started: Lab, typist: Typist) -> None:
    shown = " ".join(typist.type("show", "--lane=D").stdout.split())
    assert "takes join_code only among its own words" in shown
    assert "takes approve_key only among its own words" in shown
    assert KEY not in shown
    told = typist.ok("template", "--lane=D", "--diff")
    lines = [line for event in told.of("finding") for line in event["data"].get("details", ())]
    added = [line for line in lines if line.startswith("+") and "SamplingRange(" in line]
    assert len(added) == 1
    assert 'ranges={"temperature": SamplingRange(1e-5, 1.)}' in added[0]


# --- secrets ---------------------------------------------------------------------------------------------------------


def secrets(lab: Lab) -> dict[str, str]:
    top = lab.own("spark-1") / DATA / "secrets"
    return {name: (top / f"D-{name}").read_text().strip() for name in ("agent_token", "join_code")} | {
        "key": KEY
    }


def command_lines() -> dict[int, bytes]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[int(path.parent.name)] = path.read_bytes()
        except OSError:
            continue
    return found


@contextmanager
def seen_meanwhile() -> Iterator[set[bytes]]:
    """Every command line of this machine, of all nodes, that was there at one of many looks."""
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.1):
            seen.update(command_lines().values())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        done.set()
        looking.join()


def test_secrets_are_in_no_command_line_but_flares_own(started: Lab, life: Life) -> None:
    told = secrets(started)
    assert len(told["agent_token"]) >= 32
    assert any(b"agent\0install" in line for line in life.lines)
    lines = life.lines | set(command_lines().values())
    for name, secret in told.items():
        holding = [line.split(b"\0") for line in lines if secret.encode() in line]
        if name == "agent_token":
            assert holding == []
            continue
        words = {b"install", b"pair"} if name == "join_code" else {b"run"}
        assert holding, name
        for line in holding:  # docker-init shows the words that it was given, and these have no secret
            assert {b"flare_program", b"/usr/local/bin/flare"} & set(line), line
            assert words & set(line)


def test_secrets_are_in_no_record_log_event_or_inspect(started: Lab, typist: Typist, life: Life) -> None:
    said = life.said + typist.type("status", "--json").stdout + typist.type("show", "--lane=D").stdout
    for node in NODES:
        names = started.out(
            node, "docker", "ps", "--all", "--quiet", "--filter", "label=sparkyard.lane"
        ).split()
        assert names
        for name in names:
            said += started.out(node, "docker", "inspect", name)
            both = started.run(node, "docker", "logs", name)
            said += both.stdout + both.stderr
        for top in (started.own(node) / STATE, started.own(node) / OWN / "jobs", started.own(node) / CACHE):
            said += "".join(
                path.read_text(errors="replace")
                for path in top.rglob("*")
                if path.is_file() and path.stat().st_size < 1 << 19
            )
    for name, secret in secrets(started).items():
        assert secret not in said, name
    for node in NODES:
        path = started.own(node) / OWN / "secrets/agent.token"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes() == secrets(started)["agent_token"].encode()


# --- sampling --------------------------------------------------------------------------------------------------------


def test_a_package_without_the_range_is_told_by_its_behaviour(started: Lab, typist: Typist) -> None:
    plain = ("--set", "near_greedy=false")
    typist.ok("stop", "--lane=D")
    sealed = (started.own("spark-1") / OWN / "jobs/export@c16-d5-csf-t1e-5.json").read_bytes()
    said = typist.ok("build", "start", "verify", "--lane=D", *plain, "--yes")
    assert [e["data"]["result"] for e in said.events if e["data"].get("result")].count("pass") == 4
    packages = sorted(
        path.name for path in (started.own("spark-1") / CACHE / "flare/runtime").glob("*.safetensors")
    )
    assert packages == ["dsv41-1017-csf-tp4-c16-t1e-5.safetensors", "dsv41-1017-csf-tp4-c16.safetensors"]
    told = typist.json("verify", "--lane=D")  # with the checks of the patched package
    assert told.status == 3
    assert "the lowest temperature repeats itself" in told.failures()
    assert typist.ok("build", "--lane=D", "--yes").changed() == NOTHING  # back, without another export
    assert (started.own("spark-1") / OWN / "jobs/export@c16-d5-csf-t1e-5.json").read_bytes() == sealed


def test_stop_ends_everything(started: Lab, typist: Typist) -> None:
    assert typist.ok("stop", "--lane=D").changed() == dict.fromkeys(NODES, 1)
    for node in NODES:
        assert started.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.lane") == ""


# --- refused before anything ------------------------------------------------------------------------------------------


def test_an_output_outside_of_the_mount_is_refused(four_lab: Lab, typist: Typist) -> None:
    said = typist.json("build", "--lane=D", "--set", "output=/root/packages/x.safetensors", "--yes")
    assert said.status == 2
    assert "output: a .safetensors file below /root/.cache/" in said.failures()
    assert not said.of("step-start")


def test_a_start_without_the_key_is_refused_and_a_build_says_where_it_is(
    started: Lab, typist: Typist
) -> None:
    keyless = ("--lane=D", "--set", "approve_key=", "--yes")
    said = typist.json("build", "start", *keyless)
    assert said.status == 2
    assert "approve_key is not set" in said.failures()
    assert "invoke download build --lane=D needs no approve_key" in said.failures()
    assert not said.of("step-start")
    told = typist.ok("build", *keyless).of("finding")[-1]
    assert "a start still needs approve_key" in told["message"]
    assert "lanes: {D: {approve_key: …}}" in told["data"]["next"]
    details = "\n".join(told["data"]["details"])
    assert "  keys/local-development (33 bytes, " in details
    assert "of the log of job export: " in details
    assert KEY not in json.dumps(told)


def test_options_that_the_image_does_not_have_are_one_list(
    started: Lab, typist: Typist, tmp_path: Path
) -> None:
    other = tmp_path / "d-other"
    shutil.copytree(PROJECT / "recipes/d-flare", other)
    text = (other / "recipe.yml").read_text().replace("lane: D\n", "lane: Dother\n", 1)
    for option in ("--listen(", "--served-model-name("):
        text = text.replace(option, option.replace("(", "-newer("))
    (other / "recipe.yml").write_text(text.replace("^commit 47581cc", "^commit 1234567"))
    said = typist.json("build", "--lane=Dother", f"--recipes={tmp_path}", "--yes")
    assert said.status == 1
    told = said.failures()
    assert "3 missing" in told
    for line in (
        "the checkout is at the commit that the recipe names",
        "agent install takes --listen",
        "orbit run takes --served-model-name",
    ):
        assert line in told
    assert "takes --code" not in told
    assert not list((started.own("spark-1") / DATA / "lanes/Dother").rglob("*.safetensors"))
