"""Parts of the lab that need neither root nor a lab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sparkyard.lab import edit_bundle, inventory
from sparkyard.lab.files import keep, sweep, unfinished
from sparkyard.lab.hardware import gids
from sparkyard.lab.images import closure, read_edges
from sparkyard.lab.node import dockerd_words, sshd_words
from sparkyard.lab.places import Place, here

PLACE = Place(Path("/var/lib/x"), Path("/var/cache/x"))
DEPENDS = """\
python3-minimal
  PreDepends: python3.11-minimal
  Depends: dpkg
python3.11-minimal
  PreDepends: libc6
 |Depends: libfoo
  Depends: libbar
  Depends: <virtual>
libc6
  Depends: libgcc-s1
libgcc-s1
  Depends: gcc-12-base
  Depends: libc6
dpkg
  Depends: tar
"""


def test_what_apt_says_becomes_a_list_of_packages() -> None:
    assert closure(read_edges(DEPENDS), ["python3-minimal"]) == [
        "libbar", "libc6", "libgcc-s1", "python3-minimal", "python3.11-minimal",
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "index"), [(1, 3), (2, 5), (3, 3), (4, 5)])
def test_the_right_gid_index_differs_from_node_to_node(number: int, index: int) -> None:
    table = gids(number, f"198.18.1.{number}")
    found = [at for at, (gid, kind) in enumerate(table) if ":ffff:" in gid and kind == "RoCE v2"]
    assert found == [index]
    assert len(table) == 16


def test_the_committed_inventory_is_the_one_of_a_lab_of_two() -> None:
    committed = Path(__file__).parents[2] / "inventory" / "lab" / "hosts.yml"
    assert yaml.safe_load(committed.read_text()) == yaml.safe_load(inventory.text(PLACE.nodes(2)))


def test_the_committed_stand_in_inventory_is_the_one_of_the_usual_lab() -> None:
    committed = Path(__file__).parents[2] / "inventory" / "stand-in" / "hosts.yml"
    usual = Place(Path("/var/lib/sparkyard-lab"), PLACE.cache)
    assert committed.read_text() == inventory.stand_in_text(usual.nodes(2))


def test_an_inventory_of_four() -> None:
    hosts = yaml.safe_load(inventory.text(PLACE.nodes(4)))["all"]["children"]["sparks"]["hosts"]
    assert [host["rank"] for host in hosts.values()] == [0, 1, 2, 3]
    assert hosts["spark-1"]["ansible_connection"] == "local"
    assert hosts["spark-4"]["ansible_host"] == "198.18.0.4"
    assert hosts["spark-4"]["link"]["address"] == "198.18.1.4"


def test_a_stand_in_inventory_of_four() -> None:
    top = yaml.safe_load(inventory.stand_in_text(PLACE.nodes(4)))["all"]
    assert (top["vars"]["lab"], top["vars"]["stand_in"]) == (True, True)
    assert top["vars"]["mirrors"] == {"https://github.com/": "/var/lib/x/git/"}
    assert list(top["children"]["sparks"]["hosts"]) == ["spark-1", "spark-2", "spark-3", "spark-4"]


def test_two_folders_are_two_labs() -> None:
    other = Place(Path("/var/lib/y"), PLACE.cache)
    assert PLACE.id != other.id
    assert PLACE.switch != other.switch
    assert PLACE.node("spark-1").netns != other.node("spark-1").netns


def test_the_environment_names_the_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKYARD_LAB", str(tmp_path / "lab"))
    monkeypatch.delenv("SPARKYARD_LAB_CACHE", raising=False)
    assert here() == Place((tmp_path / "lab").resolve(), Path("/var/cache/sparkyard-lab"))


def test_a_nodes_servers_stay_in_its_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkyard.lab.node.program", lambda name: f"/usr/sbin/{name}")
    node = PLACE.node("spark-2")
    engine = dockerd_words(node, "overlay2")
    assert "--data-root=/var/lib/x/self/docker" in engine
    assert "unix:///var/lib/x/nodes/spark-2/docker.sock" in engine
    assert f"--cgroup-parent=/sparkyard-lab-{PLACE.id}/spark-2" in engine
    assert "HostKey=/var/lib/x/nodes/spark-2/hostkey" in sshd_words(node)


@pytest.mark.parametrize("exec_", [False, True])
def test_the_runtime_takes_out_what_the_machine_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exec_: bool
) -> None:
    process = {
        "rlimits": [{"type": "RLIMIT_MEMLOCK"}],
        "capabilities": {"bounding": ["CAP_CHOWN", "CAP_NONE"]},
    }
    name = "process.json" if exec_ else "config.json"
    (tmp_path / name).write_text(json.dumps(process if exec_ else {"process": process}))
    where = ["--process", f"{tmp_path}/process.json"] if exec_ else ["--bundle", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["edit_bundle.py", "--root", "/run", "create", *where, "id"])
    monkeypatch.setattr(edit_bundle, "bounding", lambda: {"CAP_CHOWN"})
    edit_bundle.main()
    edited = json.loads((tmp_path / name).read_text())
    assert (edited if exec_ else edited["process"]) == {"capabilities": {"bounding": ["CAP_CHOWN"]}}


def test_a_file_that_is_right_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "file"
    keep(file, "one", 0o600)
    before = file.stat()
    keep(file, "one", 0o600)
    assert file.stat().st_ctime_ns == before.st_ctime_ns
    keep(file, "two", 0o600)
    assert (file.read_text(), file.stat().st_ino, file.stat().st_mode & 0o777) == (
        "two",
        before.st_ino,
        0o600,
    )


def test_scratch_of_the_dead_is_swept_and_that_of_the_living_stays(tmp_path: Path) -> None:
    dead = tmp_path / "images" / "base.tar.1.part"
    dead.mkdir(parents=True)
    with unfinished(tmp_path / "images" / "other.tar") as scratch:
        sweep(tmp_path)
        assert scratch.is_dir()
        assert not dead.exists()
    assert not scratch.exists()
