"""Lane D's whole life on four simulated Sparks, with stand-ins for Flare: exports that meet, fail and heal; secrets that are seen nowhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkyard.lab import faults
from tests.machine import recorded
from tests.machine.conftest import Lab
from tests.machine.typed import LIMIT, PROJECT, Said, Typist, until

pytestmark = pytest.mark.machine

GOLDEN = PROJECT / "tests" / "data" / "golden" / "lane-d"
NODES = ("spark-1", "spark-2", "spark-3", "spark-4")
NOTHING = dict.fromkeys(NODES, 0)
DATA = "home/.local/share/sparkyard"
STATE = "home/.local/state/sparkyard"
OWN = f"{DATA}/lanes/D"
CACHE = f"{OWN}/cache/47581cc-c16-d5-csf"
PACKAGE = f"{CACHE}/flare/runtime/dsv41-1017-csf-tp4-c16-t1e-5.safetensors"
KEY = "0123456789abcdef0123456789abcdef"
"""The development key that the lab's Ignition finds in its folder, and would else make itself."""
OF_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "PYTHONPATH", "_"}
"""Variables of the shells that the words, and the lab's own programs, go through."""


@pytest.fixture(scope="module")
def typist(four_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Typist:
    """Somebody to type, who has told the inventory which key approves the packages of these nodes."""
    folder = tmp_path_factory.mktemp("inventory") / "stand-in"
    shutil.copytree(four_lab.folder / "stand-in", folder)
    hosts = folder / "hosts.yml"
    text = hosts.read_text()
    hosts.write_text(text.replace("  vars:\n", f'  vars:\n    lanes: {{D: {{approve_key: "{KEY}"}}}}\n', 1))
    return Typist(folder)


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


@pytest.fixture
def stopped(started: Lab) -> Lab:
    """The same nodes with checkpoint, image and the image's own word of itself, and without anything that an export left."""
    unmade(started)
    return started


def forget(lab: Lab) -> None:
    """Take everything of sparkyard from the nodes, and give the head's Ignition its key."""
    for node in NODES:
        containers_away(lab, node)
        lab.delete(node, DATA)
    key(lab)


def unmade(lab: Lab) -> None:
    for node in NODES:
        containers_away(lab, node)
        lab.delete(node, f"{OWN}/cache")
        for path in (lab.own(node) / OWN / "jobs").glob("export*"):
            path.unlink()


def containers_away(lab: Lab, node: str) -> None:
    lab.away(node)


def key(lab: Lab) -> None:
    path = lab.own("spark-1") / OWN / "config/flare/keys/local-development"
    path.parent.mkdir(parents=True)
    path.write_text(f"{KEY}\n")


def inspected(lab: Lab, node: str, container: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(lab.out(node, "docker", "inspect", container))[0]
    return told


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


def test_a_start_without_the_key_is_refused_and_a_build_is_not(four_lab: Lab, typist: Typist) -> None:
    said = typist.json("build", "start", "--lane=D", "--set", "approve_key=", "--yes")
    assert said.status == 2
    assert "approve_key is not set" in said.failures()
    assert not said.of("step-start")
    assert typist.json("build", "--lane=D", "--set", "approve_key=", "--check").status in (0, 6)


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


# --- exports that are interrupted --------------------------------------------------------------------------------------


def export(typist: Typist, *line: str) -> Said:
    return typist.json("build", "--lane=D", "--yes", *line)


def seals(lab: Lab) -> list[bool]:
    return [(lab.own(node) / OWN / "jobs/export@c16-d5-csf-t1e-5.json").is_file() for node in NODES]


def log_of(lab: Lab, rank: int) -> str:
    done = lab.run(NODES[rank], "docker", "logs", f"sparkyard-D-job-export-{rank}", check=False)
    return done.stdout + done.stderr


def fault(lab: Lab, rank: int, words: str) -> None:
    """What a rank of the next export does wrong; empty: nothing any more."""
    path = lab.own(NODES[rank]) / CACHE / "stand-in/faults"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)


def held(lab: Lab, typist: Typist, phase: str) -> None:
    """An export that holds in a phase, and whose sparkyard was killed there."""
    fault(lab, 0, f"--hold-at {phase}")
    line = typist.start("build", "--lane=D", "--yes", start_new_session=True)
    try:
        until(lambda: f"holding in phase {phase}" in log_of(lab, 0))
    finally:
        os.killpg(line.pid, signal.SIGKILL)
        line.communicate()
    fault(lab, 0, "")


def test_an_export_whose_nodes_went_down_in_a_phase_is_made_anew(stopped: Lab, typist: Typist) -> None:
    began = ""
    for phase in ("start", "rendezvous", "pull", "write"):  # each run gets further than the one before it
        held(stopped, typist, phase)
        for node in NODES:  # as a reboot does; a rank that lost its peers may have ended by itself
            stopped.kill(node, "label=sparkyard.job")
        again = inspected(stopped, "spark-1", "sparkyard-D-job-export-0")["Id"]
        assert again != began
        began = again
        assert seals(stopped) == [False] * 4
    said = export(typist)
    assert said.status == 0, said.failures()
    assert seals(stopped) == [True] * 4
    assert (stopped.own("spark-1") / PACKAGE).stat().st_size > 1 << 20
    assert export(typist).changed() == NOTHING


def test_a_rank_that_fails_ends_the_others_and_leaves_no_seal(stopped: Lab, typist: Typist) -> None:
    fault(stopped, 2, "--die-at compile")
    said = export(typist)
    assert said.status == 1
    assert "spark-3" in said.failures()
    assert "FATAL scripted death in phase compile" in said.failures()
    assert seals(stopped) == [False] * 4
    for node in NODES:
        assert stopped.out(node, "docker", "ps", "--quiet", "--filter", "label=sparkyard.job") == ""
    fault(stopped, 2, "")


def test_an_export_that_goes_on_without_sparkyard_is_waited_for(started: Lab, typist: Typist) -> None:
    """Begun anew over what the failed rank of the test before left."""
    held(started, typist, "end")
    (started.own("spark-1") / CACHE / "stand-in/go").touch()
    until(lambda: "signed by" in log_of(started, 0))
    made = (started.own("spark-1") / PACKAGE).stat()
    assert seals(started) == [False] * 4
    said = export(typist)
    assert said.status == 0, said.failures()
    assert seals(started) == [True] * 4
    assert (started.own("spark-1") / PACKAGE).stat().st_mtime_ns == made.st_mtime_ns


def test_a_disk_that_fills_leaves_no_half_package_that_looks_whole(stopped: Lab, typist: Typist) -> None:
    disk = faults.small_disk("spark-1", 6 << 20, f"{CACHE}")
    try:
        stopped.run("spark-1", "mkdir", f"{disk}/stand-in")
        stopped.run("spark-1", "sh", "-c", f"echo --hold-at write > {disk}/stand-in/faults")
        line = typist.start("build", "--lane=D", "--yes", "--json")
        until(lambda: "holding in phase write" in log_of(stopped, 0))
        stopped.run(
            "spark-1", "sh", "-c", f"head -c 5500000 /dev/zero > {disk}/filler; touch {disk}/stand-in/go"
        )
        out, _ = line.communicate(timeout=LIMIT)
        assert line.returncode == 1
        assert "No space left on device" in out
        assert seals(stopped) == [False] * 4
        stopped.run("spark-1", "rm", f"{disk}/filler", f"{disk}/stand-in/faults")
        healed = export(typist)
        assert healed.status == 0, healed.failures()
        size = stopped.out("spark-1", "stat", "-c", "%s %h", str(disk / Path(PACKAGE).relative_to(CACHE)))
        assert size.split()[1] == "2"
        assert int(size.split()[0]) > 1 << 20
    finally:
        for node in NODES:
            containers_away(stopped, node)
        faults.whole_disk("spark-1", CACHE)


def test_a_package_that_nobody_recorded_is_not_taken_for_ours(stopped: Lab, typist: Typist) -> None:
    path = stopped.own("spark-1") / PACKAGE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"somebody's")
    said = typist.json("build", "--lane=D")
    assert said.status == 2
    told = f"{Path(PACKAGE).name} on spark-1 (10 bytes) is not on record as job export left it, and would be removed"
    assert told in said.failures()
    assert path.read_bytes() == b"somebody's"
    assert seals(stopped) == [False] * 4
