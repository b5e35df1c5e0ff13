"""Bringing a lab up and taking it down."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sparkyard
from sparkyard.lab import control, git_repos, images, inventory, state, tiny_repos
from sparkyard.lab import node as nodes
from sparkyard.lab.errors import LabError, program, require_programs, require_root
from sparkyard.lab.files import keep, replace, same_file, sweep
from sparkyard.lab.hardware import write_shims
from sparkyard.lab.network import raise_switch, remove_netns, wire
from sparkyard.lab.places import CDN_ADDRESS, HUB_ADDRESS, MOST_NODES, NodePlace, Place, current_node
from sparkyard.lab.processes import (
    cgroup_pids,
    end,
    netns_exists,
    netns_pids,
    remove_cgroup,
    run,
    start,
    wait_until,
)
from sparkyard.lab.wheels import has_model, model_repo

Report = Callable[[str], None]
SPLITS = re.compile(r"[\s%,:]")
"""Signs at which sshd, overlayfs or mount options would split a path."""
MOST_PATH = 60
"""A socket's path has 107 characters at most, and the engine's sockets lie below the lab's folder."""


@contextlib.contextmanager
def alone(place: Place) -> Iterator[None]:
    """Hold the lab's folder, against another `up` or `down`. The lock dies with its holder."""
    while True:
        place.folder.mkdir(parents=True, exist_ok=True)
        held = os.open(place.folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            if same_file(place.folder, held):
                yield
                return
        finally:
            os.close(held)


def refuse_from_inside(verb: str) -> None:
    """A lab cannot be taken down by a process of its own."""
    if current_node():
        raise LabError(
            f"this shell is inside a lab node; lab.{verb} is for the machine outside", next_step="exit"
        )


def _refuse_unfit(place: Place) -> None:
    """Before anything is made: a path that sockets or programs could not bear."""
    if len(str(place.folder)) > MOST_PATH:
        raise LabError(
            f"{place.folder} is too long a path for the sockets in it", next_step="set SPARKYARD_LAB"
        )
    if SPLITS.search(str(place.folder)):
        raise LabError(
            f"{place.folder}: a lab's path has no spaces, commas, colons or percent signs",
            next_step="set SPARKYARD_LAB",
        )


def _claim(place: Place) -> None:
    if not place.marker.exists():
        if any(place.folder.iterdir()):
            raise LabError(f"{place.folder} holds files and is not a lab; nothing was changed",
                           next_step="set SPARKYARD_LAB to a folder that is empty or new")  # fmt: skip
        place.marker.write_text(
            f"A lab of sparkyard, id {place.id}. `invoke lab.down` deletes this folder.\n"
        )


def up(place: Place, count: int, report: Report, *, trust: bool, base: bool) -> state.LabState:
    """Make what is missing of a lab, and mend what is broken."""
    require_root("up")
    refuse_from_inside("up")
    require_programs()
    if not 1 <= count <= MOST_NODES:
        raise LabError(f"a lab has 1 to {MOST_NODES} nodes, not {count}", next_step="invoke lab.up --nodes=2")
    _refuse_unfit(place)
    with alone(place):
        _claim(place)
        tars = prepare(place, report, base=base)
        saved = {"count": count, "base_image": tars[-1][0] if base else "", "busybox_image": tars[0][0]}
        state.save(place, **saved)
        _write_common(place, count)
        _raise_nodes(place, count, report, trust=trust)
        raise_hub(place, report)
        _load_images(place.node("spark-1"), tars, report)
        seen = state.see(place, control.healthy(place))
    assert seen is not None
    report(f"{count} node{'s' if count > 1 else ''} up in {place.folder}; inventory {place.inventory}")
    return seen


def prepare(place: Place, report: Report, *, base: bool) -> list[tuple[str, Path]]:
    """What all labs share, in the cache: images and the model. Made once."""
    place.cache.mkdir(parents=True, exist_ok=True)
    sweep(place.cache)
    tars = [images.busybox_base(place)]
    if base:
        if not has_model(place):
            report("model: gemma3-270m-q4 into the cache, once")
        model_repo(place)
        tars.append(images.engine_base(place, report))
    return tars


def _write_common(place: Place, count: int) -> None:
    write_shims(place, program("runc"))
    nodes.make_key(place.keys / "id_ed25519", "sparkyard-lab")
    tiny_repos.write(place.hub_repos[1])
    replace(place.inventory, inventory.text(place.nodes(count)))
    replace(place.stand_in_inventory, inventory.stand_in_text(place.nodes(count)))
    place.git.mkdir(exist_ok=True)
    git_repos.keep(place.git)
    for node in place.nodes(count):
        nodes.make_key(node.folder / "hostkey", node.name)


def _raise_nodes(place: Place, count: int, report: Report, *, trust: bool) -> None:
    wanted = place.nodes(count)
    raise_switch(place)
    for node in place.nodes()[count:]:
        if netns_exists(node.netns) or node.folder.exists():
            report(f"{node.name}: removed")
            nodes.remove(node)
    driver = storage_driver(place, report)
    for node in wanted:
        nodes.write_files(node, wanted)
    if trust:
        write_known_hosts(place, wanted)
    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(lambda node: raise_node(node, driver, report), wanted))


def raise_node(node: NodePlace, driver: str, report: Report) -> None:
    """One node, up: its first process, its legs, its two services."""
    if nodes.anchor(node) is None:
        nodes.start_anchor(node)
        report(f"{node.name}: namespaces")
    wire(node)
    if nodes.listens(node, 22) and nodes.docker_answers(node):
        return
    nodes.start_services(node, driver)
    nodes.wait_for_services(node)
    report(f"{node.name}: sshd and dockerd answer")


def storage_driver(place: Place, report: Report) -> str:
    """overlay2 where it works; on an overlay (a lab inside a container) only vfs does."""
    scratch = place.folder / "try-overlay"
    for name in ("lower", "upper", "work", "merged"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
    try:
        run(["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options, f"{scratch}/merged"])
    except LabError:
        report(
            f"overlay2 does not work in {place.folder}: using vfs, which copies every layer (slow, and large)"
        )
        return "vfs"
    finally:
        shutil.rmtree(scratch)
    return "overlay2"


def write_known_hosts(place: Place, wanted: tuple[NodePlace, ...]) -> None:
    """Node 1 trusts every node, under the plain names that HostKeyAlias uses and by the link's address, as kits' scripts do."""
    lines = [
        f"{name} {' '.join((node.folder / 'hostkey.pub').read_text().split()[:2])}\n"
        for node in wanted
        for name in (node.name, node.fabric)
    ]
    home = place.node("spark-1").home
    keep(home / ".ssh" / "known_hosts", "".join(lines), 0o600)
    _forget_other_keys(home / ".local" / "state" / "sparkyard" / "known_hosts", lines)


def _forget_other_keys(record: Path, lines: list[str]) -> None:
    """Take from sparkyard's own record, which wins over known_hosts, the keys that the nodes had before."""
    if not record.is_file():
        return
    names = {line.split()[0] for line in lines}
    written = record.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    keep(record, "".join(line for line in written if line in lines or line.split(" ")[0] not in names), 0o600)


def raise_hub(place: Place, report: Report) -> None:
    """The local hub, on the switch's side of the management network."""
    if control.healthy(place):
        return
    end(lambda: netns_pids(place.switch), grace=1, what="the hub")
    folders = [word for folder in place.hub_repos for word in ("--folder", str(folder))]
    words = [
        program("nsenter"),
        f"--net=/run/netns/{place.switch}",
        sys.executable,
        "-m",
        "sparkyard.lab.hub",
        *folders,
    ]
    source = str(Path(sparkyard.__file__).parents[1])
    where = [
        "--address",
        HUB_ADDRESS,
        "--cdn-address",
        CDN_ADDRESS,
        "--port",
        "80",
        "--socket",
        str(place.hub_socket),
    ]
    start([*words, *where], place.hub_log, {**os.environ, "PYTHONPATH": source})
    wait_until(lambda: control.healthy(place), nodes.SLOW, "an answer of the hub", place.hub_log)
    report(f"hub: http://{HUB_ADDRESS} (from the nodes)")


def _load_images(node: NodePlace, tars: list[tuple[str, Path]], report: Report) -> None:
    for tag, tar in tars:
        if images.load(node, tag, tar):
            report(f"{node.name}: {tag}")


def down(place: Place, report: Report) -> None:
    """End and delete everything of the lab; the cache stays."""
    require_root("down")
    refuse_from_inside("down")
    if not exists(place):
        report(f"no lab in {place.folder}")
        return
    with alone(place):
        if any(place.folder.iterdir()) and not place.marker.exists():
            raise LabError(f"{place.folder} is not a lab; nothing was changed", next_step="set SPARKYARD_LAB")
        with ThreadPoolExecutor(MOST_NODES) as pool:
            list(pool.map(nodes.remove, place.nodes()))
        end(lambda: netns_pids(place.switch) | cgroup_pids(place.cgroup), grace=2, what="the lab")
        remove_netns(place.switch)
        remove_cgroup(place.cgroup)
        nodes.refuse_mounts(place.folder)
        shutil.rmtree(place.folder)
    report(f"nothing left of the lab in {place.folder} (cache kept: {place.cache})")


def exists(place: Place) -> bool:
    """Whether anything of the lab is there, even after half a `down`."""
    spaces = (place.switch, *(node.netns for node in place.nodes()))
    return place.folder.exists() or any(Path("/run/netns", name).exists() for name in spaces)
