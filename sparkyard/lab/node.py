"""One simulated Spark: its files, its first process, its sshd and its Docker engine."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from sparkyard.lab.errors import LabError, program
from sparkyard.lab.files import keep
from sparkyard.lab.hardware import write_hardware
from sparkyard.lab.network import remove_netns, wire
from sparkyard.lab.places import NodePlace
from sparkyard.lab.processes import cgroup_pids, end, netns_pids, remove_cgroup, run, start, wait_until

FOREIGN = (
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "DOCKER_HOST",
    "SSH_AUTH_SOCK",
)
"""Variables of the machine that would lead a program in a node out of it."""
SLOW = 180.0
"""Seconds that a process of a node may take to come up, where many labs share few cores."""
ANSWER = 20.0
"""Seconds for an engine's answer to a ping. An engine that is gone refuses at once; a busy one must not be taken for it and ended."""


def anchor(node: NodePlace) -> int | None:
    """The process that keeps the node's namespaces, if it lives and is really this node's."""
    try:
        pid = int(node.pid_file.read_text())
        ours = Path("/run/netns", node.netns).stat().st_ino == Path(f"/proc/{pid}/ns/net").stat().st_ino
        marked = Path(f"/proc/{pid}/root/run/sparkyard-lab").read_text(encoding="utf-8") == marker_text(node)
    except (OSError, ValueError):
        return None
    return pid if ours and marked else None


def marker_text(node: NodePlace) -> str:
    """What a node's marker file says."""
    return f"lab: {node.lab.folder}\nid: {node.lab.id}\nnode: {node.name}\n"


def enter(node: NodePlace, command: Sequence[str], cwd: str | None = None) -> tuple[str, ...]:
    """Words that run a command in the node's namespaces, with the node's home and PATH."""
    pid = anchor(node)
    if pid is None:
        raise LabError(f"{node.name} is not up in {node.lab.folder}", next_step="invoke lab.up")
    unset = [word for name in FOREIGN for word in ("-u", name)]
    own = [f"HOME={node.lab.common}/home", f"PATH={node.path}", f"SPARKYARD_LAB={node.lab.folder}"]
    own += [f"SPARKYARD_LAB_CACHE={node.lab.cache}", f"SPARKYARD_LAB_NODE={node.name}"]
    nsenter = (program("nsenter"), "--target", str(pid), "--net", "--mount", "--uts", "--")
    return (*nsenter, "env", f"--chdir={cwd or Path.cwd()}", *unset, *own, *command)


def inside(node: NodePlace, *command: str) -> str:
    """Run a command in the node, from its root folder."""
    return run(enter(node, command, cwd="/"))


def write_files(node: NodePlace, nodes: Sequence[NodePlace]) -> None:
    """Everything that the node's namespaces will show, made from outside."""
    for folder in (node.logs, node.own, node.folder / "etc", node.home / ".ssh"):
        folder.mkdir(parents=True, exist_ok=True)
    (node.home / ".ssh").chmod(0o700)
    keep(node.own / "lab-marker", marker_text(node))
    keep(node.folder / "daemon.json", "{}\n")  # the machine's own daemon.json would conflict with our flags
    write_hardware(node)
    _write_etc(node, nodes)
    _write_ssh(node, nodes)


def _write_etc(node: NodePlace, nodes: Sequence[NodePlace]) -> None:
    home = node.lab.common / "home"
    lines = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()
    others = [line for line in lines if not line.startswith("root:")]
    if not any(line.startswith("sshd:") for line in others):
        others.append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin")
    named = "".join(f"{each.management} {each.name}\n" for each in nodes if each is not node)
    files = {
        "passwd": "\n".join([f"root:x:0:0:root:{home}:/bin/bash", *others]) + "\n",
        "shadow": "root:*:19000:0:99999:7:::\n",  # no password, and not locked: sshd refuses a locked account
        "hosts": f"127.0.0.1 localhost\n::1 localhost\n{node.management} {node.name}\n{named}",
        "hostname": f"{node.name}\n",
    }
    for name, text in files.items():
        keep(node.folder / "etc" / name, text)


def _write_ssh(node: NodePlace, nodes: Sequence[NodePlace]) -> None:
    """The lab's key pair, and names for plain `ssh spark-2`. Host keys are trusted elsewhere, or not at all."""
    folder = node.home / ".ssh"
    public = (node.lab.keys / "id_ed25519.pub").read_text()
    secret = (node.lab.keys / "id_ed25519").read_text()
    aliases = [
        f"Host {each.name}\n  HostName {each.management}\n  HostKeyAlias {each.name}\n  User root\n"
        for each in nodes
    ]
    files = {
        "id_ed25519": secret,
        "id_ed25519.pub": public,
        "authorized_keys": public,
        "config": "\n".join(aliases),
    }
    for name, text in files.items():
        keep(folder / name, text, 0o600)


def make_key(path: Path, comment: str) -> None:
    """An ed25519 key pair, unless it is there whole (a killed run may leave half)."""
    if path.exists() and path.with_suffix(".pub").exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def start_anchor(node: NodePlace) -> None:
    """Namespaces of its own, made ready by node.sh."""
    end_processes(node)
    wire(node)
    node.pid_file.unlink(missing_ok=True)
    node.lab.common.mkdir(exist_ok=True)
    script = str(Path(__file__).with_name("node.sh"))
    words = [program("nsenter"), f"--net=/run/netns/{node.netns}", program("unshare"), "--mount", "--uts"]
    log = node.logs / "node.log"
    start([*words, "sh", script, node.name, str(node.folder), str(node.lab.folder)], log)
    wait_until(lambda: anchor(node) is not None, SLOW, f"{node.name}: its first process", log)


def sshd_words(node: NodePlace) -> tuple[str, ...]:
    """The node's sshd: keys only, own host key, every connection in the log."""
    options = {
        "HostKey": str(node.folder / "hostkey"),
        "PidFile": "/run/sshd.pid",
        "AuthorizedKeysFile": ".ssh/authorized_keys",
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "LogLevel": "VERBOSE",
        "Subsystem": "sftp internal-sftp",
        "SetEnv": f"PATH={node.path} SPARKYARD_LAB_NODE={node.name}",
    }
    settings = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return (program("sshd"), "-D", "-e", "-f", "/dev/null", *settings)


def listens(node: NodePlace, port: int) -> bool:
    """Whether anything in the node listens on the port, read from /proc: no connection is made."""
    pid = anchor(node)
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:  # the node is down, or went down just now
        return False
    rows = [line.split() for line in lines]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def dockerd_words(node: NodePlace, driver: str) -> tuple[str, ...]:
    """The node's Docker engine: everything below the node's own folders, no bridge, no iptables."""
    own = node.lab.common
    settings = {
        "config-file": node.folder / "daemon.json",
        "data-root": own / "docker",
        "exec-root": "/run/docker",
        "pidfile": "/run/docker.pid",
        "storage-driver": driver,
        "bridge": "none",
        "cgroup-parent": f"/{node.lab.cgroup}/{node.name}",
        "exec-opt": "native.cgroupdriver=cgroupfs",
        "add-runtime": f"lab={node.lab.shims}/lab-runc",
        "default-runtime": "lab",
    }
    flags = [f"--{key}={value}" for key, value in settings.items()]
    return (
        program("dockerd"),
        *flags,
        "--iptables=false",
        "--ip6tables=false",
        "-H",
        "unix:///run/docker.sock",
        "-H",
        f"unix://{node.socket}",
    )


def docker_answers(node: NodePlace) -> bool:
    """Whether the engine answers a ping on its outside socket."""
    connection = http.client.HTTPConnection("docker")
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(ANSWER)
        connection.sock.connect(str(node.socket))
        connection.request("GET", "/_ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def start_services(node: NodePlace, driver: str) -> None:
    """sshd and dockerd, unless they answer."""
    base_env = {"PATH": node.path, "HOME": f"{node.lab.common}/home", "LC_ALL": "C.UTF-8"}
    if not listens(node, 22):
        start(enter(node, sshd_words(node), cwd="/"), node.logs / "sshd.log", base_env)
    if not docker_answers(node):
        clear_dead_engine(node)
        start(enter(node, dockerd_words(node, driver), cwd="/"), node.logs / "dockerd.log", base_env)


def clear_dead_engine(node: NodePlace) -> None:
    """End what is left of an engine and forget its numbers.

    A dockerd refuses to start, or waits for a containerd in vain, while a process of the old number shows in /proc, be it
    a zombie.
    """
    end(lambda: _named(node, "dockerd") | _named(node, "containerd"), grace=5, what=f"{node.name}'s engine")
    for name in ("docker.pid", "docker/containerd/containerd.pid"):
        Path(f"/proc/{anchor(node)}/root/run", name).unlink(missing_ok=True)


def _named(node: NodePlace, name: str) -> set[int]:
    """Processes of the node that run this program."""

    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == name
        except OSError:
            return False

    return {pid for pid in netns_pids(node.netns) if runs(pid)}


def wait_for_services(node: NodePlace) -> None:
    """Until sshd listens and the engine answers."""
    wait_until(lambda: listens(node, 22), SLOW, f"{node.name}: sshd on port 22", node.logs / "sshd.log")
    wait_until(
        lambda: docker_answers(node), SLOW, f"{node.name}: an answer of dockerd", node.logs / "dockerd.log"
    )


def restart_sshd(node: NodePlace) -> None:
    """End the listening sshd (open sessions stay) and start it again."""
    pid = int(inside(node, "cat", "/run/sshd.pid"))
    end(lambda: {pid} & netns_pids(node.netns), grace=5, what=f"{node.name}'s sshd")
    start(enter(node, sshd_words(node), cwd="/"), node.logs / "sshd.log")
    wait_until(lambda: listens(node, 22), SLOW, f"{node.name}: sshd on port 22", node.logs / "sshd.log")


def connections(node: NodePlace) -> int:
    """How many ssh connections the node has accepted since it was made."""
    log = node.logs / "sshd.log"
    return (
        len(re.findall(r"^Accepted publickey", log.read_text(errors="replace"), re.MULTILINE))
        if log.exists()
        else 0
    )


def pids(node: NodePlace) -> set[int]:
    """Every process of the node: in its network namespace, or in a container of its engine."""
    return netns_pids(node.netns) | cgroup_pids(f"{node.lab.cgroup}/{node.name}")


def end_processes(node: NodePlace, grace: float = 3) -> None:
    """End them all; the namespaces and files stay."""
    cgroup = f"{node.lab.cgroup}/{node.name}"
    # Containers at once: dockerd would give each its ten seconds, and their files are about to go anyway.
    end(lambda: cgroup_pids(cgroup), grace=0, what=f"{node.name}'s containers")
    end(lambda: pids(node), grace=grace, what=node.name)
    remove_cgroup(cgroup)


def remove(node: NodePlace) -> None:
    """End and delete the node."""
    end_processes(node)
    remove_netns(node.netns)
    if node.folder.exists():
        refuse_mounts(node.folder)
        shutil.rmtree(node.folder)


def refuse_mounts(folder: Path) -> None:
    """Never delete through a mount: what lies behind it is not the lab's."""
    mounts = [
        line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    ]
    below = [mount for mount in mounts if mount == str(folder) or mount.startswith(f"{folder}{os.sep}")]
    if below:
        raise LabError(
            f"{folder} holds mounts, so it is not deleted", details=below, next_step=f"umount {below[-1]}"
        )
