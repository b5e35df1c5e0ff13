"""The facts document and its parsers, with raw answers."""

from __future__ import annotations

import hashlib
import json
import subprocess

import pytest

from sparkyard import facts
from sparkyard.errors import CouldNotCheck
from sparkyard.network import Gid
from sparkyard.plan import Question
from sparkyard.sections import sections
from sparkyard.system import SYSTEM, system
from tests.unit import raw

HEAD, WORKER = raw.HEAD, raw.WORKER
FILE = facts.file_question("/etc/x", "content")


def test_the_script_names_each_question_and_runs_nothing_when_cut():
    text = facts.script([Question("ask_file", ("it's", "hash"))]).decode()
    assert text.rstrip().endswith("main")
    assert "ask 0 ask_file 'it'\"'\"'s' hash" in text
    cut = text[: text.rindex("}")]
    done = subprocess.run(["sh", "-s"], input=cut.encode(), capture_output=True, check=False)
    assert done.stdout == b""


def test_several_images_are_asked_for_in_one_call_and_one_by_itself():
    asked = [facts.image_question(name) for name in ("a:1", "b:2")]
    told = facts.script([SYSTEM, *asked]).decode().partition("\nmain() {\n")[2].splitlines()
    assert told[:3] == ["answers_open", "images_know a:1 b:2", "ask 0 ask_system"]
    assert "\nimages_know " not in facts.script([SYSTEM, asked[0]]).decode().partition("\nmain() {\n")[2]


def test_a_question_is_one_word_that_begins_with_ask():
    with pytest.raises(ValueError, match="not a question"):
        facts.script([Question("reboot; ask_x")])


def test_the_real_script_answers_in_one_document(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b").write_text('$HOME "x"\n')
    (tmp_path / "empty").write_text("")
    home = "<discovered: home>"
    asked = [
        SYSTEM,
        facts.file_question(f"{home}/a b", "content"),
        facts.file_question(f"{home}/a b"),
        facts.file_question(f"{home}/empty", "content"),
        facts.file_question(f"{home}/none"),
        facts.folder_question(home),
        Question("ask_of_another_version"),
        facts.ping_question("127.0.0.1", 8972),
    ]
    command = facts.command(asked)
    done = subprocess.run(command.words, input=command.stdin, capture_output=True, check=False)
    found = facts.parse(HEAD, asked, b"Welcome!\n" + done.stdout)
    assert done.stderr == b""
    assert found.discovered["home"] == str(tmp_path)
    content, hashed, empty, none = (facts.file(found, q) for q in asked[1:5])
    assert content.content == b'$HOME "x"\n'
    assert content.sha256 == hashed.sha256 == hashlib.sha256(b'$HOME "x"\n').hexdigest()
    assert (empty.kind, empty.content) == ("regular", b"")
    assert none.kind == "missing"
    assert facts.folder(found, asked[5]).kind == "directory"
    assert found.of(asked[6]).status == 127
    facts_here = system(found)
    assert facts_here.memory_total > facts_here.memory_available > 0
    assert facts_here.boot_id
    assert facts_here.interface("lo") is not None


def test_the_kernel_tables_stand_in_for_iproute2_and_ss(tmp_path):
    names = ["sh", "timeout", "grep", "uname", "id", "base64", "stat", "sed"]
    for name in names:
        target = subprocess.run(
            ["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True
        )
        (tmp_path / name).symlink_to(target.stdout.strip())
    done = subprocess.run(
        ["sh", "-s"],
        input=facts.script([SYSTEM]),
        capture_output=True,
        check=False,
        env={"PATH": str(tmp_path), "HOME": "/h"},
    )
    found = system(facts.parse(HEAD, [SYSTEM], done.stdout))
    assert found.interface("lo") is not None
    assert "addresses" not in found.failed
    assert found.failed["gpus"] == "the program is not installed"
    assert found.docker.error


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_a_document_cut_anywhere_could_not_be_checked(size):
    whole = raw.document(HEAD, {SYSTEM: (0, raw.system_text(HEAD), "")})
    for cut in range(size, len(whole) - 1, 97):
        with pytest.raises(CouldNotCheck):
            facts.parse(HEAD, [SYSTEM], whole[:cut])


def test_an_answer_cut_in_a_section_could_not_be_checked():
    text = raw.system_text(HEAD)
    for cut in range(0, len(text) - 40, 61):
        given = {SYSTEM: (0, text[:cut], "")}
        with pytest.raises(CouldNotCheck):
            system(facts.parse(HEAD, [SYSTEM], raw.document(HEAD, given)))


def test_an_answer_out_of_time_could_not_be_checked():
    found = raw.answers(HEAD, {facts.CONTAINERS: (124, "", "")})
    with pytest.raises(CouldNotCheck, match="time limit"):
        facts.containers(found)


def test_a_question_that_was_not_answered_is_refused():
    with pytest.raises(CouldNotCheck, match="no answer to: ask_file /etc/x content"):
        facts.file(raw.answers(HEAD), FILE)


@pytest.mark.parametrize(
    ("status", "out", "err"),
    [
        (1, "", "stat: cannot statx '/etc/x': Permission denied"),
        (0, "regular file|600|12\n", "base64: /etc/x: Permission denied"),
        (0, "", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_not_missing(status, out, err):
    with pytest.raises(CouldNotCheck):
        facts.file(raw.answers(HEAD, {FILE: (status, out, err)}), FILE)


def test_containers_of_others_have_a_name_a_state_and_an_image():
    given = raw.containers({"name": "web", "image": "nginx", "state": "exited"})
    (fact,) = facts.containers(raw.answers(HEAD, {facts.CONTAINERS: given}))
    assert (fact.name, fact.image, fact.state, fact.lane) == ("web", "nginx", "exited", "")


def test_our_containers_tell_how_they_ended():  # T55
    given = raw.containers(
        {"name": "e", "state": "exited", "labels": {"sparkyard.lane": "T"}, "more": {"ExitCode": 0}}
    )
    (fact,) = facts.containers(raw.answers(HEAD, {facts.CONTAINERS: given}))
    assert (fact.lane, fact.running, fact.exit_code, fact.started) == ("T", False, 0, "2026-11-01T10:00:00Z")


def test_a_container_that_went_between_two_calls_is_gone():
    _, out, _ = raw.containers({"name": "e", "labels": {"sparkyard.lane": "T"}})
    listed = out.splitlines()[0] + "\n"
    given = {facts.CONTAINERS: (1, listed, "Error: No such container: 000")}
    assert facts.containers(raw.answers(HEAD, given)) == ()


def test_docker_without_access_is_not_an_empty_list():
    given = {
        facts.CONTAINERS: (1, "", "permission denied while trying to connect to the Docker daemon socket")
    }
    with pytest.raises(CouldNotCheck, match="permission denied"):
        facts.containers(raw.answers(HEAD, given))


def test_no_such_image_is_none_and_anything_else_is_unclear():
    asked = facts.image_question("x")
    assert facts.image(raw.answers(HEAD, {asked: raw.NO_IMAGE}), asked) is None
    with pytest.raises(CouldNotCheck, match="Cannot connect") as failure:
        facts.image(raw.answers(HEAD, {asked: (1, "", "Cannot connect to the Docker daemon")}), asked)
    assert failure.value.next_step == "on spark-1: sudo systemctl start docker"


def test_listeners_from_ss_and_from_the_kernel_table():
    listening = [
        'LISTEN 0 4096 [::]:8000 [::]:* users:(("python3",pid=42,fd=3))',
        "LISTEN 0 128 127.0.0.1%lo:53 0.0.0.0:*",
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000",
        "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A",
    ]
    found = system(raw.answers(HEAD, listening=listening)).listening
    assert [(each.port, each.process) for each in found] == [
        (8000, "python3 (pid 42)"),
        (53, ""),
        (8080, ""),
        (22, ""),
    ]
    assert [each.address for each in found[2:]] == ["127.0.0.1", "::1"]


def test_optional_keys_of_iproute2_may_be_missing():
    found = system(raw.answers(HEAD, addresses=[{"ifname": "x"}, {}]))
    assert [(i.name, i.mtu, i.addresses) for i in found.interfaces] == [("x", 0, ())]


def test_hcas_come_from_sysfs_alone():  # T01, T04
    found = system(raw.answers(HEAD))
    assert [h.name for h in found.hcas if h.active] == ["rocep1s0f1", "roceP2p1s0f1"]
    down = found.hca("rocep1s0f0")
    assert down is not None
    assert down.interfaces == ("enp1s0f0np0",)


def test_each_node_has_its_own_hcas():  # T02
    assert [h.name for h in system(raw.answers(WORKER)).hcas if h.active] == ["rocep1s0f0", "roceP2p1s0f0"]


def test_gid_indexes_are_found_per_node():  # T05
    assert raw.answers(HEAD).discovered["gid"] == "3"
    more = raw.answers(WORKER, devices=raw.devices(WORKER, "f0", pairs=2))
    assert more.discovered["gid"] == "5"
    assert more.discovered["gid.rocep1s0f0"] == "5"


def test_gids_that_differ_between_rails_have_no_single_index():
    first, second = raw.devices(HEAD, "f1"), raw.devices(HEAD, "f1", pairs=2)
    lines = [line for line in first[0] if "P2p1" not in line] + [line for line in second[0] if "P2p1" in line]
    found = raw.answers(HEAD, devices=(lines, first[1])).discovered
    assert "gid" not in found
    assert (found["gid.rocep1s0f1"], found["gid.roceP2p1s0f1"]) == ("3", "5")


def test_only_link_local_gids_give_no_index():  # T07
    found = raw.answers(HEAD, devices=raw.devices(HEAD, "f1", address=""))
    assert "gid" not in found.discovered


def test_a_moved_gid_is_found_where_it_is_now():  # T08
    lines, netdevs = raw.devices(HEAD, "f1")
    moved = [line.replace("/3:", "/4:") for line in lines]
    assert raw.answers(HEAD, devices=(moved, netdevs)).discovered["gid"] == "4"


def test_a_gid_knows_its_ipv4_address():
    assert Gid(3, raw.mapped("10.0.0.1"), "RoCE v2", "x").ipv4 == "10.0.0.1"
    assert Gid(0, raw.LINK_LOCAL, "RoCE v2", "x").ipv4 == ""


def test_sections_keep_their_status():
    assert sections("@@ a\nx\n\n@@ = 3\n")["a"].status == 3


def test_the_document_is_json_for_any_home(tmp_path):
    home = tmp_path / 'q"uo\\te'
    home.mkdir()
    command = facts.command([])
    done = subprocess.run(
        command.words,
        input=command.stdin,
        capture_output=True,
        check=True,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    assert json.loads(done.stdout)["home"] == str(home)
