"""Images are built and shipped for real: two Docker engines, one behind a real sshd."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import threading

import pytest

from sparkyard.actions_image import BuildImage, ShipImage
from sparkyard.asking import ask
from sparkyard.command import Command
from sparkyard.errors import Interrupted, StepFailed, Unreachable
from sparkyard.executors.image import build_image, context_tar, image_facts
from sparkyard.executors.ship import ship_image
from sparkyard.facts import image_question
from sparkyard.known_hosts import Keys
from sparkyard.model import Inventory
from sparkyard.plan import Step, Verdict
from sparkyard.step_world import StepWorld, Surroundings
from tests.engine.local_nodes import local_node
from tests.machine import docker_engine, sshd

pytestmark = pytest.mark.machine
REF = "sparkyard-lane:1"
LABEL = "LABEL sparkyard.build=abc"


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    with docker_engine.running(folder / "head") as head, docker_engine.running(folder / "worker") as worker:
        yield head, worker


@pytest.fixture(scope="module")
def worker_sshd(engines, tmp_path_factory):
    with sshd.running(tmp_path_factory.mktemp("sshd"), set_env=f"DOCKER_HOST={engines[1].host}") as running:
        yield running


@pytest.fixture
def clean(engines):
    yield
    for engine in engines:
        engine.docker("image", "prune", "--all", "--force")


def trusting(folder, *nodes):
    folder.mkdir()
    keys = Keys(folder, [])
    for node, key in nodes:
        kind, value = key.read_text().split()[:2]
        with keys.own_file.open("a") as file:
            file.write(f"{node.name} {kind} {value}\n")
    return keys


@pytest.fixture
def place(tmp_path, engines, worker_sshd, monkeypatch, clean):
    monkeypatch.setenv("DOCKER_HOST", engines[0].host)
    head, worker = local_node("spark-1", 0, tmp_path), worker_sshd.node()
    inventory = Inventory(tmp_path, (head, worker), {}, None, None)
    keys = trusting(tmp_path / "own", (worker, worker_sshd.host_key.with_suffix(".pub")))
    around = Surroundings(inventory, tmp_path / "own", tmp_path, keys)
    yield around
    around.close()


@pytest.fixture
def events():
    return []


@pytest.fixture
def world(place, events):
    step = Step("image", "x", "spark-2", "x", lambda _: Verdict("ok"))
    return StepWorld(place, step, events.append, {})


def ship(world, address="127.0.0.2"):
    ship_image(ShipImage(REF, address), "spark-2", world)


def labels(world, node):
    facts = image_facts(world.shell(node), REF)
    return facts and dict(facts.labels)


def moved(events):
    return [event.data["progress"] for event in events if "progress" in event.data]


def test_an_image_arrives_with_layers_and_labels_and_moves_once(world, engines, events):
    engines[0].add_image(REF, LABEL, filler=b"x" * 3_000_000)
    ship(world)
    facts = [image_facts(world.shell(name), REF) for name in ("spark-1", "spark-2")]
    assert facts[0] == facts[1]
    assert labels(world, "spark-2") == {"sparkyard.build": "abc"}
    assert moved(events)[-1]["done"] > 3_000_000
    events.clear()
    ship(world)
    assert moved(events) == []
    assert "same layers, same labels" in events[-1].message


@pytest.mark.parametrize("change", [("LABEL sparkyard.build=other", b""), (LABEL, b"y")])
def test_another_label_or_layer_is_shipped_again(world, engines, change):
    engines[0].add_image(REF, LABEL)
    engines[1].add_image(REF, change[0], filler=change[1])
    ship(world)
    assert image_facts(world.shell("spark-1"), REF) == image_facts(world.shell("spark-2"), REF)


@pytest.mark.parametrize("mode", [None, 0o600])
def test_without_its_filter_the_whole_image_is_shipped(world, engines, events, tmp_path, monkeypatch, mode):
    """A Python of the head that is missing or may not be run costs bytes, and nothing else."""
    program = tmp_path / "python"
    if mode is not None:
        program.touch(mode)
    monkeypatch.setattr("sparkyard.executors.ship._held", lambda *_: 1)
    monkeypatch.setattr("sparkyard.executors.ship.trim_words", lambda _: (str(program),))
    engines[0].add_image(REF, LABEL)
    ship(world)
    assert image_facts(world.shell("spark-1"), REF) == image_facts(world.shell("spark-2"), REF)
    assert any("everything is sent once more" in event.message for event in events)


def test_an_image_that_the_head_lacks(world):
    with pytest.raises(StepFailed, match="is not on the head") as failure:
        ship(world)
    assert failure.value.next_step == "invoke build"


def test_a_wrong_host_key_is_refused_before_a_byte_moves(world, place, engines, worker_sshd, tmp_path):
    engines[0].add_image(REF, LABEL)
    sshd.make_key(tmp_path / "other")
    image_facts(
        world.shell("spark-2"), REF
    )  # fabric's connection stands with the right key; ssh must refuse by itself
    place.keys = trusting(tmp_path / "wrong", (worker_sshd.node(), tmp_path / "other.pub"))
    with pytest.raises(Unreachable, match="host key is not the one on record") as failure:
        ship(world)
    assert failure.value.next_step == "invoke trust"
    assert engines[1].docker("image", "ls", "--quiet") == ""


def test_an_address_where_nobody_listens(world, engines):
    engines[0].add_image(REF, LABEL)
    with pytest.raises(Unreachable, match=r"could not be sent to 127\.0\.0\.9"):
        ship(world, "127.0.0.9")


def test_a_worker_whose_docker_is_gone(world, engines, tmp_path):
    engines[0].add_image(REF, LABEL)
    with sshd.running(tmp_path / "sshd2", "127.0.0.3", set_env="DOCKER_HOST=unix:///nowhere") as other:
        node = other.node()
        keys = trusting(tmp_path / "own2", (node, other.host_key.with_suffix(".pub")))
        head = local_node("spark-1", 0, tmp_path)
        around = Surroundings(
            Inventory(tmp_path, (head, node), {}, None, None), tmp_path / "own2", tmp_path, keys
        )
        step = Step("image", "x", "spark-2", "x", lambda _: Verdict("ok"))
        with pytest.raises(StepFailed, match="could not look at image"):
            ship(StepWorld(around, step, lambda _: None, {}), "127.0.0.3")
        around.close()


def test_a_cancelled_ship_leaves_nothing_running_and_the_next_one_heals(world, place, engines, events):
    engines[0].add_image(REF, LABEL, filler=bytes(range(256)) * 400_000)
    seen = threading.Event()

    class Stopping(StepWorld):
        def progress(self, done, total, label, unit="bytes", **more):
            place.stop.set()
            seen.set()

    stopping = Stopping(place, world._step, events.append, {})
    with pytest.raises(Interrupted):
        ship(stopping)
    assert seen.is_set()
    assert not re.search(rf"docker save {REF}|ssh .*docker load", engines[0].clients())
    place.begin_undo()
    ship(world)
    assert image_facts(world.shell("spark-1"), REF) == image_facts(world.shell("spark-2"), REF)


def test_workers_at_once_share_one_save(world, place, engines, monkeypatch, tmp_path):
    """A docker on PATH that counts its calls and then is the real one."""
    engines[0].add_image(REF, LABEL, filler=b"x" * 1_000_000)
    log = tmp_path / "calls"
    real = shutil.which("docker")
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "docker"
    wrapper.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")
    failures = []
    everybody = threading.Barrier(3)  # looks before anybody sends
    looking = threading.local()

    def look(shell, reference):
        if not hasattr(looking, "begun"):
            looking.begun = True
            everybody.wait()
        return image_facts(shell, reference)

    monkeypatch.setattr("sparkyard.executors.ship.image_facts", look)
    monkeypatch.setattr("sparkyard.executors.shipment.GATHER", 300.0)

    def one():
        try:
            ship(world)
        except StepFailed as failure:
            failures.append(failure)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert log.read_text().split().count("save") == 1


@pytest.mark.parametrize("guard", [0, 1])
def test_a_broken_connection_is_no_death_and_loses_no_line(world, place, engines, worker_sshd, guard):
    engines[1].add_image("base:1")
    script = "for i in $(seq 30); do echo line $i; sleep 0.05; done; until [ -e /go ]; do sleep 0.1; done; for i in $(seq 31 60); do echo line $i; done; exec sleep 600"
    words = ("--network", "host", "--name", "lane-1", "--label", "sparkyard.lane=lab")
    engines[1].docker("run", "--detach", *words, "base:1", "/bin/sh", "-c", script)
    try:
        watch = world.watches.start(world, "spark-2", "lane-1", gate="line 60", guard=guard)
        while not watch.lines(1):
            world.watches.news.wait(1, world.watches.news.count)
        before = worker_sshd.connections()
        place.shell("spark-2")._connection.client.get_transport().close()
        engines[1].docker("exec", "lane-1", "/bin/sh", "-c", "echo >/go")
        while not watch.gate_seen:
            world.watches.demand_all_alive()
            world.watches.news.wait(1, world.watches.news.count)
        assert worker_sshd.connections() > before
        saved = place.run_folder / "logs" / "spark-2-lane-1.log"
        assert [line.split(" ", 1)[1] for line in saved.read_text().splitlines()] == [
            f"line {n}" for n in range(1, 61)
        ]
        world.watches.release("spark-2", "lane-1")
    finally:
        engines[1].docker("rm", "--force", "lane-1")


def build(world, tmp_path, dockerfile, *words, last):
    context = tmp_path / "context"
    context.mkdir(exist_ok=True)
    (context / "Dockerfile").write_text(dockerfile)
    command = Command(
        ("docker", "build", "--network", "host", "--tag", REF, *words, last or str(context)),
        secrets=("hunter2",),
    )
    build_image(BuildImage(REF, command, str(context)), "spark-1", world)


@pytest.mark.parametrize("last", ["-", ""])
def test_a_build_with_its_context(world, engines, tmp_path, events, last):
    engines[0].add_image("base:1")
    build(
        world, tmp_path, "FROM base:1\nRUN echo hunter2 speaks\n", "--label", "sparkyard.build=abc", last=last
    )
    assert labels(world, "spark-1") == {"sparkyard.build": "abc"}
    assert any("******** speaks" in event.message for event in events)
    assert not any("hunter2" in event.message for event in events)


def test_a_build_that_fails_names_its_instruction(world, engines, tmp_path):
    engines[0].add_image("base:1")
    with pytest.raises(StepFailed) as failure:
        build(world, tmp_path, "FROM base:1\nRUN echo before && false\n", last="-")
    assert failure.value.message == f"docker build of {REF} failed with status 1 at: RUN echo before && false"
    assert any(line == "before" for line in failure.value.details)


def test_equal_folders_are_equal_tars(tmp_path):
    for name, when in (("a", 1), ("b", 2)):
        folder = tmp_path / name
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "f").write_text("same")
        os.utime(folder / "sub" / "f", (when, when))
    assert context_tar(tmp_path / "a") == context_tar(tmp_path / "b")


def test_images_that_are_asked_for_together_answer_as_each_alone(place, engines):
    names = [f"sparkyard-lane:{number}" for number in (1, 2)]
    for name, label in zip(names, ("one", "two *"), strict=True):
        engines[0].add_image(name, f"LABEL x='{label}'")
    questions = [image_question(name) for name in (*names, "sparkyard-lane:none")]
    alone = [ask(place, "spark-1", (question,)).of(question) for question in questions]
    assert [answer.status for answer in alone] == [0, 0, 1]
    assert alone[0].out != alone[1].out
    for some in (questions, questions[:2], questions[1::-1]):
        together = ask(place, "spark-1", tuple(some))
        assert [together.of(question) for question in some] == [alone[questions.index(q)] for q in some]


# --- only the layers that are lacking ---------------------------------------------------------------------------------------

FILLER = bytes(range(256)) * 12_000


def layers_of(world):
    found = image_facts(world.shell("spark-1"), REF)
    assert found is not None
    return found.layers


def layered(engine, *layers, label=LABEL, large=b""):
    """An image on a base of 3 MB, with a layer for each word: a file of that name (or of ``path=word``), times always the same; ``large`` is on top."""
    if not engine.docker("image", "ls", "--quiet", "large:1"):
        engine.add_image("large:1", filler=FILLER)
    named = [(layer.split("=")[-1], layer.split("=")[0]) for layer in layers]
    copied = [f"COPY {word} /{path}" for word, path in named]
    copied += ["COPY large /large"] if large else []
    files = {"Dockerfile": "\n".join(("FROM large:1", *copied, label)).encode(), "large": large}
    files |= {word: word.encode() for word, _path in named}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as context:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            context.addfile(entry, io.BytesIO(content))
    engine.docker("build", "--tag", REF, "-", stdin=buffer.getvalue())


def ids(engines):
    return [engine.docker("image", "inspect", "--format", "{{.Id}}", REF) for engine in engines]


@pytest.fixture
def earlier(world, engines):
    """Both have an earlier image of the same name."""
    layered(engines[0], "one", "two")
    ship(world)
    assert world.results.pop("shipped")["left_out"] == 0
    assert ids(engines)[0] == ids(engines)[1]


def in_front(folder, monkeypatch, script):
    """A docker of this machine that does something first; ``real`` is the true one."""
    real = shutil.which("docker")
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "docker"
    wrapper.write_text(f'#!/bin/sh\nreal={real}\n{script}\nexec $real "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")


@pytest.mark.parametrize(
    ("layers", "label", "left_out"),
    [
        (("one", "three"), LABEL, 2),
        (("one", "two", "three"), LABEL, 3),
        (("one",), LABEL, 2),
        (("one", "two"), "LABEL sparkyard.build='é <&> \"x\"'", 3),
        (("other", "two"), LABEL, 1),
    ],
    ids=["top", "one more", "one less", "label", "lower"],
)
def test_only_layers_that_are_lacking_move(world, engines, earlier, events, layers, label, left_out):
    layered(engines[0], *layers, label=label)
    ship(world)
    told = world.results["shipped"]
    assert (told["layers_left_out"], told["layers"]) == (
        left_out,
        len(layers_of(world)),
    )
    assert told["moved"] < 100_000
    assert told["left_out"] > len(FILLER)
    assert moved(events)[-1] == {
        "done": told["moved"],
        "total": told["moved"],
        "label": "image to spark-2",
        "unit": "bytes",
    }
    assert "left out: " in world.results["details"][0]
    assert ids(engines)[0] == ids(engines)[1]
    assert (
        engines[1].docker("run", "--rm", "--network", "host", REF, "/bin/cat", f"/{layers[-1]}") == layers[-1]
    )


def test_layers_of_an_image_without_a_name_count_too(world, engines, earlier):
    engines[1].add_image(REF)  # takes the name away
    assert engines[1].docker("image", "ls", "--quiet", "--filter", "dangling=true") != ""
    layered(engines[0], "new")
    ship(world)
    assert ids(engines)[0] == ids(engines)[1]
    assert world.results["shipped"]["layers_left_out"] == 1


def test_a_layer_that_comes_twice(world, engines):
    """The same file with the same times is the same layer, here over two different ones in turn."""
    for between in ("two", "three"):
        layered(engines[0], "f=same", f"f={between}", "f=same")
        layers = layers_of(world)
        assert layers[1] == layers[3]
        ship(world)
    told = world.results["shipped"]
    assert told["layers_left_out"] == 1  # the base; the one that comes again is sent
    assert told["moved"] < 100_000
    assert ids(engines)[0] == ids(engines)[1]
    assert engines[1].docker("run", "--rm", "--network", "host", REF, "/bin/cat", "/f") == "same"


def test_layers_that_go_away_in_between_are_sent_after_all(world, engines, earlier, monkeypatch, tmp_path):
    layered(engines[0], "one", "three")
    once = tmp_path / "once"
    prune = f"$real --host {engines[1].host} image prune --all --force > {once}"
    in_front(tmp_path, monkeypatch, f'[ "$1" != save ] || [ -e {once} ] || {prune}')
    ship(world)
    assert once.read_text().count("deleted") > 2
    told = world.results["shipped"]
    assert told["left_out"] == 0
    assert told["moved"] > len(FILLER)
    assert "everything was sent once more" in world.results["details"][1]
    assert "layer.tar" in world.results["details"][1]  # the engine's own words: which file it missed
    assert ids(engines)[0] == ids(engines)[1]


@pytest.fixture
def odd_docker(place, engines, tmp_path):
    """Another sshd to the worker's engine, whose docker says what a script says in front of the true one."""
    stack = contextlib.ExitStack()

    def begin(script):
        (tmp_path / "odd").mkdir()
        wrapper = tmp_path / "odd" / "docker"
        wrapper.write_text(
            f'#!/bin/sh\necho "$1" >> {tmp_path}/odd-calls\n{script}\nexec {shutil.which("docker")} "$@"\n'
        )
        wrapper.chmod(0o755)
        env = f"DOCKER_HOST={engines[1].host} PATH={tmp_path}/odd:/usr/sbin:/usr/bin:/sbin:/bin"
        other = stack.enter_context(sshd.running(tmp_path / "sshd3", "127.0.0.4", set_env=env))
        node = other.node()
        keys = trusting(tmp_path / "own3", (node, other.host_key.with_suffix(".pub")))
        head = local_node("spark-1", 0, tmp_path)
        around = Surroundings(
            Inventory(tmp_path, (head, node), {}, None, None), tmp_path / "own3", tmp_path, keys
        )
        stack.callback(around.close)
        return StepWorld(
            around, Step("image", "x", "spark-2", "x", lambda _: Verdict("ok")), lambda _: None, {}
        )

    with stack:
        yield begin


def loads(folder):
    return (folder / "odd-calls").read_text().split().count("load")


def test_a_worker_that_says_it_has_what_it_lacks_is_sent_everything(engines, odd_docker, tmp_path):
    layered(engines[0], "one")
    chain = engines[0].docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", REF)
    world = odd_docker(f"case $* in 'image ls'*) echo x; exit;; *'Layers}}}} x') echo '{chain}'; exit;; esac")
    ship(world, "127.0.0.4")
    assert loads(tmp_path) == 2
    assert world.results["shipped"]["moved"] > len(FILLER)
    assert "everything was sent once more" in world.results["details"][1]
    assert ids(engines)[0] == ids(engines)[1]


@pytest.mark.parametrize("said", ["[[driver-type io.containerd.snapshotter.v1]]", ""])
def test_an_engine_of_another_or_an_unknown_store_is_sent_everything(
    world, engines, earlier, odd_docker, tmp_path, said
):
    layered(engines[0], "one", "three")
    other = odd_docker(f'[ "$1" != info ] || {{ echo "{said}"; exit; }}')
    ship(other, "127.0.0.4")
    assert loads(tmp_path) == 1
    assert other.results["shipped"]["left_out"] == 0
    assert ids(engines)[0] == ids(engines)[1]


def test_a_full_disk_is_told_at_once_and_not_tried_with_more(world, engines, earlier, odd_docker, tmp_path):
    layered(engines[0], "one", "three")
    other = odd_docker(
        '[ "$1" != load ] || { cat > /dev/null; echo write /x: no space left on device >&2; exit 1; }'
    )
    with pytest.raises(StepFailed, match="its disk is full"):
        ship(other, "127.0.0.4")
    assert loads(tmp_path) == 1
    ship(world)  # the next run, with room
    assert world.results["shipped"]["moved"] < 100_000
    assert ids(engines)[0] == ids(engines)[1]


def test_a_cut_while_a_part_is_on_its_way_leaves_nothing_and_the_next_one_heals(
    world, place, engines, earlier, events
):
    layered(engines[0], "one", large=os.urandom(60_000_000))

    class Stopping(StepWorld):
        def progress(self, *told, **more):
            place.stop.set()

    with pytest.raises(Interrupted):
        ship(Stopping(place, world._step, events.append, {}))
    assert not re.search(rf"docker save {REF}|ssh .*docker load|trim\.py", engines[0].clients())
    place.begin_undo()
    ship(world)
    assert world.results["shipped"]["layers_left_out"] == 2
    assert ids(engines)[0] == ids(engines)[1]


def test_the_words_that_are_shown_can_be_pasted(world, engines, earlier, monkeypatch, tmp_path):
    """An ssh that runs its words here, against the worker's engine."""
    layered(engines[0], "one", "three")
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(
        f'#!/bin/sh\n[ "$1" = 127.0.0.2 ] || exit 255\nshift\nDOCKER_HOST={engines[1].host} exec sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    line = ShipImage(REF, "127.0.0.2").shown()
    done = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True)
    assert done.stderr.count("left-out") == 2
    assert ids(engines)[0] == ids(engines)[1]
