"""Base images, made on this machine: a Python tree with llama.cpp for the engine, and a busybox for tests.

The tree comes from the machine's own packages by `apt-get download` and `dpkg-deb --extract`: the mirror is whatever apt is set
to, nothing is installed, and it is ready in seconds (debootstrap takes 70 s and ten times the space).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparkyard.lab.errors import LabError, program
from sparkyard.lab.files import unfinished
from sparkyard.lab.places import NodePlace, Place
from sparkyard.lab.processes import run
from sparkyard.lab.wheels import engine_wheels

if TYPE_CHECKING:
    import docker

ROOTS = ("python3-minimal", "libpython3-stdlib", "libstdc++6", "libgomp1", "busybox-static")
LEFT_OUT = re.compile(
    r"^(dpkg|tar|perl.*|libperl.*|debconf.*|install-info|media-types|mailcap|mime-support|readline-common|libreadline.*"
    r"|libtirpc.*|libnsl.*|libgssapi.*|libk.*|libcom-err.*|libdb5.*|libncurses.*|libtinfo.*|netbase|tzdata|libc-bin"
    r"|.*-base|libsqlite3.*)$"
)
ENGINE = "sparkyard-lab/engine-base"
BUSYBOX = "sparkyard-lab/busybox-base"
EPOCH = 1_700_000_000
FORMAT = 1
"""Part of the tag: counts changes of how the tree is made."""


def closure(edges: dict[str, list[str]], roots: Iterable[str]) -> list[str]:
    """The roots and all they depend on, without what a Python that only serves can do without."""
    todo, seen = list(roots), set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and not LEFT_OUT.match(name):
            seen.add(name)
            todo.extend(edges.get(name, []))
    return sorted(seen)


def read_edges(text: str) -> dict[str, list[str]]:
    """`apt-cache depends --recurse` as a graph. Of alternatives (``|``) the last one, of virtual packages none."""
    edges: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if not line.startswith((" ", "|", "<")):
            name = line.strip()
            edges.setdefault(name, [])
        elif match := re.match(r"^ +(?:Pre)?Depends: ([^<\s]+)$", line):
            edges[name].append(match[1].split(":")[0])
    return edges


def packages() -> list[str]:
    """Names of the packages of the engine's tree on this distribution."""
    flags = [
        f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    ]
    try:
        text = run(["apt-cache", "depends", "--recurse", *flags, *ROOTS])
    except LabError as fault:
        raise LabError("apt knows no packages", details=fault.details, next_step="apt-get update") from fault
    return closure(read_edges(text), ROOTS)


def engine_tag(place: Place) -> str:
    """Name of the engine's base image: a hash of what it is made from, known without asking apt."""
    release = [
        line
        for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        if line.startswith(("ID=", "VERSION_ID="))
    ]
    names = [
        *release,
        os.uname().machine,
        *ROOTS,
        LEFT_OUT.pattern,
        *(wheel.name for wheel in engine_wheels(place)),
    ]
    return f"{ENGINE}:{hashlib.sha256(' '.join([*names, str(FORMAT)]).encode()).hexdigest()[:12]}"


def _unpack_packages(names: Sequence[str], tree: Path) -> None:
    for folder in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / folder).mkdir(parents=True, exist_ok=True)
        (tree / folder).symlink_to(f"usr/{folder}")  # before the packages, or their files make real folders
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # noqa: S103, PTH101 (apt downloads as its own user)
        try:
            # `sh -c cd`: apt-get download writes to the working folder.
            run(
                ["sh", "-c", 'cd "$1" && shift && exec apt-get -q download "$@"', "sh", scratch, *names],
                seconds=300,
            )
        except LabError as fault:
            raise LabError("packages of the engine's base image cannot be fetched", details=fault.details,
                           next_step="apt-get update") from fault  # fmt: skip
        for package in sorted(Path(scratch).glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(tree)])


def _trim(tree: Path) -> None:
    """What no engine reads; and a shell, so that a Dockerfile's RUN works."""
    for name in ("usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/locale", "usr/share/bug"):
        shutil.rmtree(tree / name, ignore_errors=True)
    add_busybox(tree, Path(next(iter(tree.glob("usr/bin/busybox")), program("busybox"))))
    if not (tree / "usr/bin/python3").exists():
        newest = sorted(tree.glob("usr/bin/python3.[0-9]*"))[-1]
        (tree / "usr/bin/python3").symlink_to(newest.name)


def add_busybox(tree: Path, busybox: Path) -> None:
    """busybox and its names, without overwriting anything."""
    folder = tree / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "busybox"
    if not target.exists():
        shutil.copy2(busybox, target)
    for applet in run([str(busybox), "--list"]).split():
        link = folder / applet
        if not (link.exists() or link.is_symlink()):
            link.symlink_to("busybox")
    for name, mode in (
        ("etc", 0o755),
        ("tmp", 0o1777),
        ("root", 0o700),
        ("proc", 0o555),
        ("sys", 0o555),
        ("dev", 0o755),
    ):
        (tree / name).mkdir(exist_ok=True)
        (tree / name).chmod(mode)
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def _unpack_wheels(files: Iterable[Path], tree: Path) -> None:
    """A wheel is a zip whose top level goes on the path; the engine's wheels have no scripts and no dependencies."""
    target = tree / "usr/lib/python3/dist-packages"
    target.mkdir(parents=True, exist_ok=True)
    for wheel in files:
        shutil.unpack_archive(wheel, target, "zip")


def _same_everywhere(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """One tree, one layer: no times, no owners."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = EPOCH, 0, 0, "", ""
    return member


def _pack(tree: Path, target: Path) -> None:
    """The tree as a tar."""
    with tarfile.open(target, "w") as tar:
        for path in sorted(tree.rglob("*")):
            tar.add(path, str(path.relative_to(tree)), recursive=False, filter=_same_everywhere)


def _make(target: Path, fill: Callable[[Path], None]) -> Path:
    """The tar of a tree, made once; complete or not there at all."""
    if not target.exists():
        with unfinished(target) as scratch:
            tree = scratch / "tree"
            tree.mkdir()
            fill(tree)
            _pack(tree, scratch / "tar")
            (scratch / "tar").rename(target)
    return target


def engine_base(place: Place, report: Callable[[str], None]) -> tuple[str, Path]:
    """Tag and tar of the engine's base image."""
    tag = engine_tag(place)

    def fill(tree: Path) -> None:
        names = packages()
        report(f"base image: {len(names)} packages and llama.cpp, once (about a minute)")
        _unpack_packages(names, tree)
        _trim(tree)
        _unpack_wheels(engine_wheels(place), tree)

    return tag, _make(place.cache / "images" / f"{tag.replace('/', '_').replace(':', '_')}.tar", fill)


def busybox_base(place: Place) -> tuple[str, Path]:
    """Tag and tar of a 2 MB image for tests."""
    busybox = Path(program("busybox"))
    digest = hashlib.sha256(busybox.read_bytes()).hexdigest()[:12]
    target = place.cache / "images" / f"busybox_{digest}.tar"
    return f"{BUSYBOX}:{digest}", _make(target, lambda tree: add_busybox(tree, busybox))


def engine_client(node: NodePlace) -> docker.DockerClient:
    """The docker SDK on the node's engine, from outside."""
    import docker  # noqa: PLC0415 (0.3 s)

    return docker.DockerClient(base_url=f"unix://{node.socket}", timeout=600)


def tags(client: docker.DockerClient) -> tuple[str, ...]:
    """The names of an engine's images, as its one answer has them."""
    told = (tag for image in client.api.images() for tag in image["RepoTags"] or ())
    return tuple(sorted(tag for tag in told if tag != "<none>:<none>"))


def load(node: NodePlace, tag: str, tar: Path) -> bool:
    """Import a tree as an image (also under the tag ``latest``) unless the node has it; whether it was needed."""
    client = engine_client(node)
    try:
        if tag in tags(client):
            return False
        name, version = tag.rsplit(":", 1)
        changes = ["ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["/bin/sh"]']
        client.api.import_image_from_file(str(tar), repository=name, tag=version, changes=changes)
        client.api.tag(tag, name, "latest")
        return True
    finally:
        client.close()
