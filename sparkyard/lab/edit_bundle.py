"""Takes out of an OCI bundle what this machine cannot grant; copied into each lab and run by `lab-runc`.

A virtual machine or container may lack CAP_SYS_RESOURCE, which `--ulimit memlock=-1` and `--privileged` need. What was asked
for still shows in `docker inspect`.
"""

from __future__ import annotations

import json
import os
import sys

NAMES = """
    CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
    NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
    SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
    MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
"""In the order of their bits."""


def bounding() -> set[str]:
    """Capabilities that this machine has at all."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 (starts per container: no pathlib)
        mask = next(int(line.split()[1], 16) for line in status if line.startswith("CapBnd"))
    return {f"CAP_{name}" for bit, name in enumerate(NAMES.split()) if mask >> bit & 1}


def process_file(words: list[str]) -> tuple[str, bool]:
    """The file that describes the process, and whether it is a whole bundle."""
    for index, word in enumerate(words[:-1]):
        if word in {"--bundle", "-b"}:
            return os.path.join(words[index + 1], "config.json"), True  # noqa: PTH118
        if word in {"--process", "-p"}:
            return words[index + 1], False
    return "config.json", True


def main() -> None:
    """Edit the file in place."""
    path, whole = process_file(sys.argv[1:])
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        data = json.load(file)
    process = data.get("process") if whole else data
    if not process:
        return
    process.pop("rlimits", None)
    have = bounding()
    sets = process.get("capabilities") or {}
    process["capabilities"] = {kind: [cap for cap in caps if cap in have] for kind, caps in sets.items()}
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(data, file)


if __name__ == "__main__":
    main()
