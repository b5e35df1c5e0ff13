"""Where a lab lives and what it is called: names, addresses, folders. Nothing here acts."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

MOST_NODES = 4
HUB_ADDRESS = "198.18.0.254"
CDN_ADDRESS = "198.18.0.253"
HUB_URL = f"http://{HUB_ADDRESS}"
FABRIC = "enp1s0f1np1"
SECOND_FABRIC = "enP2p1s0f1np1"
HCAS = {"rocep1s0f1": FABRIC, "roceP2p1s0f1": SECOND_FABRIC}
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Leg:
    """One cable of a node: its port on the switch, its bridge there, its name in the node."""

    port: str
    bridge: str
    interface: str
    network: str
    mtu: int


LEGS = (
    Leg("mgmt", "mgmt", "eth0", "198.18.0", 1500),
    Leg("fab", "fab", FABRIC, "198.18.1", 9000),
    # A Spark's one physical port shows as two PCIe halves, each with its own HCA and address.
    Leg("fabx", "fab", SECOND_FABRIC, "198.18.2", 9000),
)
FABRIC_LEGS = tuple(leg for leg in LEGS if leg.bridge == "fab")


@dataclass(frozen=True, slots=True)
class NodePlace:
    """One node of a lab: number, names, folders."""

    number: int
    lab: Place

    @property
    def name(self) -> str:
        return f"spark-{self.number}"

    @property
    def netns(self) -> str:
        return f"lab-{self.lab.id}-{self.name}"

    @property
    def folder(self) -> Path:
        return self.lab.folder / "nodes" / self.name

    @property
    def own(self) -> Path:
        """What the node sees as the lab's ``self`` folder, as seen from outside."""
        return self.folder / "self"

    @property
    def home(self) -> Path:
        return self.own / "home"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "pid"

    @property
    def socket(self) -> Path:
        """The node's Docker engine, reachable from outside."""
        return self.folder / "docker.sock"

    @property
    def management(self) -> str:
        return f"198.18.0.{self.number}"

    @property
    def fabric(self) -> str:
        return f"198.18.1.{self.number}"

    @property
    def path(self) -> str:
        """PATH of everything that runs in the node: the stubs first."""
        return f"{self.lab.shims}:{SYSTEM_PATH}"


@dataclass(frozen=True, slots=True)
class Place:
    """One lab: its folder, and everything named after it."""

    folder: Path
    cache: Path

    @property
    def id(self) -> str:
        """Short name of this folder, so that labs in two folders never meet."""
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:6]

    @property
    def switch(self) -> str:
        return f"lab-{self.id}-switch"

    @property
    def cgroup(self) -> str:
        """Parent of every container's cgroup: how containers with a network of their own are found."""
        return f"sparkyard-lab-{self.id}"

    @property
    def marker(self) -> Path:
        """Written first, so that `down` never deletes a folder that is not a lab."""
        return self.folder / "sparkyard-lab"

    @property
    def common(self) -> Path:
        """Where every node sees its own files."""
        return self.folder / "self"

    @property
    def shims(self) -> Path:
        return self.folder / "shims"

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    @property
    def hub_socket(self) -> Path:
        return self.folder / "hub.sock"

    @property
    def hub_log(self) -> Path:
        return self.folder / "hub.log"

    @property
    def hub_repos(self) -> tuple[Path, Path]:
        """Repositories the hub serves: those every lab shares, and this lab's own (tests put theirs there)."""
        return self.cache / "hub", self.folder / "hub"

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory" / "hosts.yml"

    @property
    def stand_in_inventory(self) -> Path:
        """The same nodes, for the lanes of real Sparks."""
        return self.folder / "stand-in" / "hosts.yml"

    @property
    def git(self) -> Path:
        """Git repositories that stand in for those of the internet: ``<owner>/<name>`` below it."""
        return self.folder / "git"

    def node(self, name: str) -> NodePlace:
        """The node of that name; names are spark-1 to spark-4."""
        numbers = {f"spark-{number}": number for number in range(1, MOST_NODES + 1)}
        if name not in numbers:
            raise KeyError(f"{name} is not a lab node; they are {', '.join(numbers)}")
        return NodePlace(numbers[name], self)

    def nodes(self, count: int = MOST_NODES) -> tuple[NodePlace, ...]:
        """The first ``count`` nodes."""
        return tuple(NodePlace(number, self) for number in range(1, count + 1))


def here() -> Place:
    """The lab this environment speaks of."""
    folder = Path(os.environ.get("SPARKYARD_LAB") or "/var/lib/sparkyard-lab")
    cache = Path(os.environ.get("SPARKYARD_LAB_CACHE") or "/var/cache/sparkyard-lab")
    return Place(folder.resolve(), cache.resolve())


def current_node() -> str:
    """The lab node that this process runs in; empty on an ordinary machine."""
    try:
        lines = Path("/run/sparkyard-lab").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("node: ") for line in lines if line.startswith("node: ")), "")
