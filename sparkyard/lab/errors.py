"""The lab's own kind of failure."""

from __future__ import annotations

import os
import shutil
import sys

from sparkyard.errors import SparkyardError

PACKAGES = {
    "dockerd": "docker.io",
    "runc": "docker.io",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "rsync": "rsync",
    "ping": "iputils-ping",
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setsid": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "busybox": "busybox-static",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
"""Every program the lab runs, and the Debian or Ubuntu package that holds it."""


class LabError(SparkyardError):
    """The lab could not do what was asked; says what was seen and what to type next."""


def search_path() -> str:
    """PATH with the system folders that a person's shell may lack."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def program(name: str) -> str:
    """Where a program is."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise LabError(f"{name} is not installed", next_step=f"apt-get install -y {PACKAGES.get(name, name)}")
    return found


def require_root(verb: str) -> None:
    """The lab makes namespaces, so it needs root; without it, say the line to type."""
    if os.geteuid() != 0:
        raise LabError(
            f"lab.{verb} makes network and mount namespaces, which needs root; nothing was changed",
            next_step=f"sudo --preserve-env=SPARKYARD_LAB,SPARKYARD_LAB_CACHE {sys.executable} -m invoke lab.{verb}",
        )


def require_programs() -> None:
    """Refuse, with the one line that installs everything missing."""
    missing = [name for name in PACKAGES if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[name] for name in missing}))
        raise LabError(
            f"programs the lab needs are missing: {', '.join(missing)}",
            next_step=f"apt-get update && apt-get install -y --no-install-recommends {packages}",
        )
