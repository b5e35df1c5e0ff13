"""What the answers about a checkpoint mean: room, missing, unproven and damaged files, links, leftovers, --deep."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparkyard.actions import CopyFiles, Fetch, Offer, Prove
from sparkyard.errors import CouldNotCheck
from sparkyard.load import find_recipes, load_all
from sparkyard.manifest import seal_text
from sparkyard.model import Manifest, RemoteFile
from sparkyard.plan import Answer, Answers
from sparkyard.render import render_lane
from sparkyard.steps.adopt import adopt_steps, match
from sparkyard.steps.checkpoint import download_steps, mounted_steps
from sparkyard.steps.job import build_jobs
from sparkyard.trees import Seen
from tests.unit import sample

ROOT = Path(__file__).resolve().parents[2]
A = RemoteFile("a.bin", 100, sha256="a" * 64)
B = RemoteFile("sub/b.json", 20, blob="b" * 40)
MANIFEST = Manifest("example/tiny", sample.COMMIT, (A, B))
LANE = sample.lane(2)
SEAL = seal_text(MANIFEST, {})
HOME = "/home/me"
FOLDER = f"{HOME}/.local/share/sparkyard/models/example--tiny/{sample.COMMIT}"


def entry(path, inode, size, kind="f"):
    return f"//{kind}\t{inode}\t{size}\t8\t5.0000000010\t6.0000000020\t{path}\n"


def proof(inode, size, digest):
    return f"f00\t{inode}\t{size}\t5000000001\t6000000002\t{digest}\n"


GOOD = entry("a.bin", 1, 100) + entry("sub/b.json", 2, 20)
PROVEN = proof(1, 100, "sha256:" + "a" * 64) + proof(2, 20, "blob:" + "b" * 40)


def tree(entries=GOOD, ledger=PROVEN, seal=SEAL):
    return Answer(0, f"tree 1\nfs f00\n{entries}//ledger\n{ledger}\n//seal\n{seal}\n//done\n")


def disk(available=10**9, fs="f00"):
    return Answer(0, f"disk 1\nfs {fs}\navailable {available}\nat {HOME}\n//done\n")


def steps(lane=LANE, *, deep=False):
    return {step.id: step for step in download_steps(lane, {"model": MANIFEST}, deep=deep)}


def verdict(step, answer, room=None, offered=None):
    kinds = {"ask_tree": answer, "ask_disk": room or disk(), "ask_offer": offered}
    given = {question: kinds[question.ask] for question in step.questions}
    return step.judge(Answers(step.node, given, {"home": HOME}))


HEAD, WORKER = "checkpoint:model@spark-1", "checkpoint:model@spark-2"
ROOMS = ("preflight:checkpoint-disk@spark-1", "preflight:checkpoint-disk@spark-2")


def test_room_comes_first_everywhere_then_the_head_then_the_copies():
    plan = steps()
    assert tuple(plan) == (*ROOMS, HEAD, WORKER)
    assert plan[HEAD].needs == ROOMS
    assert plan[WORKER].needs == (*ROOMS, HEAD)
    assert len(plan[HEAD].questions) == 1


@pytest.mark.parametrize("step", [HEAD, WORKER])
def test_proven_and_sealed_is_right(step):
    seen = verdict(steps()[step], tree())
    assert (seen.state, seen.reason, seen.actions) == ("ok", "2 files (120 B), proven", ())


def test_missing_files_are_fetched_by_the_head_and_copied_to_the_worker():
    answer = tree(entry("a.bin", 1, 100), seal="")
    head = verdict(steps()[HEAD], answer)
    assert head.state == "change"
    assert head.reason == "1 file (20 B) missing"
    fetch, proof_ = head.actions
    assert isinstance(fetch, Fetch)
    assert (fetch.files, fetch.folder) == ((B,), FOLDER)
    assert isinstance(proof_, Prove)
    assert (proof_.files, proof_.arrived, proof_.held, proof_.seal_text) == ((), (), (A, B), SEAL)
    copy, proof_ = verdict(steps()[WORKER], answer).actions
    assert isinstance(copy, CopyFiles)
    assert (copy.files, copy.address, copy.target) == ((B,), "10.0.0.2", f"{FOLDER}/.incoming")
    assert proof_.arrived == (B,)


def test_what_the_ledger_does_not_know_is_read():
    for ledger in ("", PROVEN.replace("6000000002", "6000000003"), PROVEN.replace("f00", "f01")):
        seen = verdict(steps()[WORKER], tree(ledger=ledger))
        assert [type(action) for action in seen.actions] == [Prove]
        assert seen.actions[0].files == (A, B)
        assert "read 2 files, 120 bytes," in seen.actions[0].shown()


def test_a_ledger_with_another_digest_is_no_proof():
    ledger = PROVEN.replace("a" * 64, "c" * 64)
    assert verdict(steps()[HEAD], tree(ledger=ledger)).actions[0].files == (A,)


def test_a_missing_or_other_seal_is_written_without_reading():
    for seal in ("", "{", seal_text(replace(MANIFEST, files=(A,)), {})):
        seen = verdict(steps()[HEAD], tree(seal=seal))
        assert (seen.state, seen.reason) == ("change", "not sealed")
        assert seen.actions[0].files == ()
        assert seen.actions[0].shown().startswith("write ")


def test_a_wrong_size_is_missing_and_named():
    seen = verdict(steps()[HEAD], tree(GOOD.replace("\t100\t", "\t99\t")))
    assert seen.actions[0].files == (A,)
    assert seen.details == ("a.bin: 99 bytes, expected 100",)


def test_extra_files_are_named_and_leftovers_are_cleared():
    seen = verdict(steps()[HEAD], tree(GOOD + entry("mine\nown", 3, 1)))
    assert seen.state == "ok"
    assert seen.details == ("'mine\\nown' is not in the listing, left alone",)
    assert verdict(steps()[HEAD], tree(GOOD + entry(".incoming/old.part", 3, 1))).state == "change"


def test_a_whole_arrival_is_read_and_not_copied():
    seen = verdict(steps()[WORKER], tree(entry("sub/b.json", 2, 20) + entry(".incoming/a.bin", 1, 100)))
    [action] = seen.actions
    assert isinstance(action, Prove)
    assert action.arrived == (A,)


def test_a_link_as_a_file_is_replaced_and_as_a_folder_blocks():
    as_file = verdict(steps()[HEAD], tree(GOOD.replace("//f\t1", "//l\t1")))
    assert as_file.actions[0].files == (A,)
    as_folder = verdict(steps()[HEAD], tree(entry("a.bin", 1, 100) + entry("sub", 2, 5, "l")))
    assert as_folder.state == "blocked"
    assert f"{FOLDER}/sub is not a folder of its own" in as_folder.reason


def test_answers_that_failed_are_not_taken_for_anything():
    for step in steps().values():
        with pytest.raises(CouldNotCheck):
            verdict(step, Answer(1, tree().out, "find: Permission denied"))
        with pytest.raises(CouldNotCheck):
            verdict(step, Answer(0, tree().out[:-20]))
        with pytest.raises(CouldNotCheck):
            step.judge(Answers(step.node, {}, {"home": HOME}))


def test_room_counts_what_is_missing_and_what_has_arrived_in_part():
    room = steps()[ROOMS[1]]
    assert verdict(room, tree("", "", ""), disk(119)).state == "blocked"
    seen = verdict(room, tree("", "", ""), disk(119))
    assert seen.reason == f"119 B free on {HOME}, 120 B needed"
    assert verdict(room, tree("", "", ""), disk(120)).state == "ok"
    assert verdict(room, tree(entry(".incoming/a.bin", 9, 60), "", ""), disk(60)).state == "ok"
    assert verdict(room, tree(), disk(0)).state == "ok"


def test_deep_reads_all_before_and_is_its_own_proof():
    plan = steps(deep=True)
    deep = plan["checkpoint:model-deep@spark-2"]
    assert not deep.recheck
    assert plan[WORKER].needs == (*ROOMS, deep.id, HEAD)
    assert verdict(deep, tree()).actions[0].files == (A, B)
    assert verdict(deep, tree("", "", "")).state == "skipped"


def test_a_checkpoint_for_the_head_alone_is_not_copied():
    data = sample.recipe_data()
    data["checkpoints"]["model"]["nodes"] = "head"
    assert WORKER not in steps(sample.lane(2, data))


def seen_file(path, size, inode=7, kind="f"):
    return Seen(path, kind, inode, size, size, 0, 0)


def test_offers_are_matched_by_path_then_hash_then_name_and_never_by_size_alone():
    offered = [
        seen_file("else/a.bin", 99),
        seen_file("c.bin", 100),
        seen_file("blobs/" + "a" * 64, 100, 8),
        seen_file("x/a.bin", 100, 9),
        seen_file("b.json", 20, 10),
        seen_file("y/a.bin", 100, 9),
    ]
    assert match([A, B], offered, "/kit") == (
        Offer(A, "/kit/x/a.bin"),
        Offer(A, "/kit/blobs/" + "a" * 64),
        Offer(B, "/kit/b.json"),
    )


def test_adopting_asks_every_node_and_downloads_nothing():
    plan = {step.id: step for step in adopt_steps(LANE, {"model": MANIFEST}, "~/kit")}
    assert tuple(plan) == (HEAD, WORKER)
    assert plan[HEAD].questions[-1].arguments == ("<discovered: home>/kit",)
    offer = Answer(0, tree(entry("a.bin", 9, 100), "", "").out)
    taken = verdict(plan[WORKER], tree("", "", ""), offered=offer)
    assert [type(action) for action in taken.actions] == [Prove]
    assert taken.actions[0].offered == (Offer(A, f"{HOME}/kit/a.bin"),)
    other = Answer(0, offer.out.replace("fs f00", "fs f01"))
    assert verdict(plan[WORKER], tree("", "", ""), disk(99), other).state == "blocked"
    assert verdict(plan[WORKER], tree("", "", ""), disk(99), offer).state == "change"
    assert verdict(plan[WORKER], tree(), offered=offer).state == "ok"
    assert verdict(plan[WORKER], tree(), offered=Answer(2, "", "no folder")).state == "skipped"


def test_steps_import_nothing_that_acts():
    words = (
        "import sys, sparkyard.steps.checkpoint, sparkyard.steps.adopt\n"
        "print({'fabric', 'docker', 'huggingface_hub', 'httpx2', 'rich', 'sparkyard.shell', 'sparkyard.engine', 'sparkyard.hub'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("B", {"spark-1", "spark-2", "spark-3", "spark-4"}),  # each rank packs rows of its own copy
        ("D", {"spark-1"}),  # the head exports for all
        ("C", set()),  # no job
    ],
)
def test_what_jobs_of_a_build_mount_must_be_there_before_they_begin(name, nodes):
    inventory = ROOT / "inventory/four-spark"
    here = load_all(inventory, find_recipes(ROOT, []), name, environ={}, sets=[])
    index = RemoteFile("model.safetensors.index.json", 7, sha256="5" * 64)
    known = {
        each: Manifest(spec.repo, sample.COMMIT, (index,), config=sample.ENGRAM_CONFIG)
        for each, spec in here.checkpoints.items()
    }
    asked = mounted_steps(here, known, build_jobs(render_lane(here, known)))
    assert {step.node for step in asked} == nodes
    assert not any(step.needs for step in asked)
