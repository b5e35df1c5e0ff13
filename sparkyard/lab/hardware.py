"""What a node shows of a Spark's hardware: sysfs of two HCAs, memory, and stubs of NVIDIA's programs."""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import sys
from pathlib import Path

from sparkyard.lab.files import keep
from sparkyard.lab.places import HCAS, LEGS, NodePlace, Place

GID_SLOTS = 16
MEMORY_KB = 121 * 1024 * 1024
CMDLINE = "BOOT_IMAGE=/boot/vmlinuz-6.14.0-1013-nvidia root=UUID=sparkyard-lab ro quiet splash kho=off\n"

NVIDIA_SMI = """#!/bin/sh
# Stub of the lab: answers the questions that are asked of a Spark's GPU. Memory is not reported there either.
field() {
  case $1 in
    name|gpu_name) echo "NVIDIA GB10" ;; driver_version) echo "580.95.05" ;; count) echo 1 ;; index) echo 0 ;;
    compute_cap) echo "12.1" ;; uuid|gpu_uuid) echo "GPU-00000000-0000-0000-0000-00000000001b" ;;
    clocks.sm) echo "208 MHz" ;; power.draw) echo "4.50 W" ;; utilization.gpu) echo "0 %" ;;
    temperature.gpu) echo 40 ;; *) echo "[N/A]" ;;
  esac
}
for word in "$@"; do
  case $word in
    -L) echo "GPU 0: NVIDIA GB10 (UUID: $(field uuid))"; exit 0 ;;
    --query-compute-apps=*) exit 0 ;;
    --query-gpu=*)
      line=""
      for name in $(echo "${word#*=}" | tr ',' ' '); do line="$line${line:+, }$(field "$name")"; done
      echo "$line"; exit 0 ;;
  esac
done
echo "NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0"
echo "  0  NVIDIA GB10   (a stub of sparkyard's lab)"
"""

IBDEV2NETDEV = """#!/bin/sh
# Stub of the lab, from the same sysfs that sparkyard reads.
for hca in /sys/class/infiniband/*; do
  echo "$(basename "$hca") port 1 ==> $(cat "$hca/ports/1/gid_attrs/ndevs/0") (Up)"
done
"""

RUNTIME = """#!/bin/sh
# The lab's OCI runtime: what this machine cannot grant is taken out of a bundle before runc sees it.
case " $* " in
  *" create "*|*" run "*|*" exec "*) {python} -IS {edit} "$@" ;;
esac
exec {runc} "$@"
"""


def write_shims(place: Place, runc: str) -> None:
    """The stubs that come first on every node's PATH, and the wrapper runtime."""
    edit = place.shims / "edit_bundle.py"
    keep(edit, Path(__file__).with_name("edit_bundle.py").read_text())
    stubs = {
        "nvidia-smi": NVIDIA_SMI,
        "ibdev2netdev": IBDEV2NETDEV,
        # Its presence alone makes Docker accept `--gpus`; as a hook it has nothing to do.
        "nvidia-container-runtime-hook": "#!/bin/sh\nexit 0\n",
        "lab-runc": RUNTIME.format(python=sys.executable, edit=edit, runc=runc),
    }
    for name, text in stubs.items():
        keep(place.shims / name, text, 0o755)


def write_hardware(node: NodePlace) -> None:
    """The files that are bound over /sys/class, /proc/meminfo and /proc/cmdline."""
    keep(node.folder / "meminfo", _meminfo())
    keep(node.folder / "cmdline", CMDLINE)
    tree = node.folder / "sysclass"
    if not tree.exists():
        _copy_classes(tree)
    for hca, device in HCAS.items():
        _write_hca(tree / "infiniband" / hca, node, device)


def set_available(node: NodePlace, available: int | None) -> None:
    """Let a node show so many KiB of available memory, or as much as it had; the file is bound into the node, so it shows at once.

    It stays as long as it was and is written in one piece: whoever reads it meanwhile sees the old value or the new one.
    """
    text = _meminfo() if available is None else _meminfo(available)
    with (node.folder / "meminfo").open("r+b", buffering=0) as file:
        file.write(text.encode())


def _meminfo(free: int = MEMORY_KB - 3 * 1024 * 1024) -> str:
    """A Spark's memory as Linux writes it."""
    values = {"MemTotal": MEMORY_KB, "MemFree": free, "MemAvailable": free, "Buffers": 0, "Cached": 0}
    values |= {"SwapTotal": 0, "SwapFree": 0, "HugePages_Total": 0}
    return "".join(f"{key + ':':<16}{value:>9} kB\n" for key, value in values.items())


def _copy_classes(tree: Path) -> None:
    """A copy of /sys/class: its entries are relative links, right again once it is bound there."""
    building = tree.with_name("sysclass.new")
    shutil.rmtree(building, ignore_errors=True)
    for kind in Path("/sys/class").iterdir():
        folder = building / kind.name
        folder.mkdir(parents=True)
        if kind.name not in {"net", "infiniband"}:
            _copy_links(kind, folder)
    for interface in ("lo", *(leg.interface for leg in LEGS)):
        (building / "net").mkdir(exist_ok=True)
        (building / "net" / interface).symlink_to(f"/run/sysfs/class/net/{interface}")
    building.rename(tree)


def _copy_links(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the machine's devices come and go
            if entry.is_symlink():
                (target / entry.name).symlink_to(entry.readlink())


def _write_hca(folder: Path, node: NodePlace, device: str) -> None:
    port = folder / "ports" / "1"
    files = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "200 Gb/sec (2X NDR)",
        "link_layer": "Ethernet",
    }
    for name, value in files.items():
        _put(port / name, value)
    _put(folder / "node_type", "1: CA")
    network = next(leg.network for leg in LEGS if leg.interface == device)
    for index, (gid, kind) in enumerate(gids(node.number, f"{network}.{node.number}")):
        _put(port / "gids" / str(index), gid)
        if kind:  # on real hardware the type of an empty slot cannot be read
            _put(port / "gid_attrs" / "types" / str(index), kind)
            _put(port / "gid_attrs" / "ndevs" / str(index), device)


def gids(number: int, address: str) -> list[tuple[str, str]]:
    """A GID table as Sparks have them: the IPv4 RoCE v2 slot is 3 on odd nodes and 5 on even ones."""
    local = f"fe80::4ebb:47ff:fe00:{number:x}"
    linked = [local] if number % 2 else [local, f"fe80::{number:x}"]
    addresses = [*linked, f"::ffff:{address}"]
    rows = [(_spell(each), kind) for each in addresses for kind in ("IB/RoCE v1", "RoCE v2")]
    return rows + [(_spell("::"), "")] * (GID_SLOTS - len(rows))


def _spell(address: str) -> str:
    return ipaddress.IPv6Address(address).exploded


def _put(path: Path, value: str) -> None:
    keep(path, value + "\n")


def set_hca_state(node: NodePlace, hca: str, state: str) -> None:
    """Make an HCA show another state (``1: DOWN``); the file is bound into the node, so it shows at once."""
    (node.folder / "sysclass" / "infiniband" / hca / "ports" / "1" / "state").write_text(state + "\n")
