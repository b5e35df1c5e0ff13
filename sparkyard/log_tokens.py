"""What known words in an engine's log mean. Data only; matched as plain substrings, on every rank.

``rows`` are the ids of the failure modes that it belongs to. ``peer``: the rank suffers from another rank's end, which is looked for first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogToken:
    """One known substring: what it means and the one thing to do or type next."""

    token: str
    meaning: str
    next_step: str
    rows: tuple[str, ...]
    peer: bool = False


LOG_TOKENS = (
    LogToken(
        "ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "RDMA memory could not be registered: kernel hand-over (KHO) is on, or the memlock limit is low",
        "look for kho=on in /proc/cmdline of that node, then at --ulimit memlock=-1",
        ("HOST-01", "NET-21"),
    ),
    LogToken(
        "Unable to find address for:",
        "the interface named in the settings does not exist on that node",
        "correct link.interface of that node in the inventory",
        ("NET-01", "NET-15"),
    ),
    LogToken(
        "errno 61",
        "the RoCE GID index is wrong on that node",
        "invoke start again: GIDs are looked up anew",
        ("NET-03",),
    ),
    LogToken(
        "unhandled system error",
        "a collective's transport could not be set up",
        "invoke status, and look at the link and GID findings before blaming NCCL",
        ("NET-03", "NET-12"),
    ),
    LogToken(
        "IBV_WC_RETRY_EXC_ERR",
        "packets are lost on the RoCE path: MTU differs, or the path is wrong",
        "compare the MTU of both ends and of the switch (9000)",
        ("NET-08",),
    ),
    LogToken(
        "NET/IB : No device found",
        "the container sees no HCA and would fall back to slow sockets",
        "look at the hcas of that node in the inventory and at /dev/infiniband",
        ("NET-14",),
    ),
    LogToken(
        "Gloo connectFullMesh failed",
        "a rank announced a loopback address to the others",
        "look at /etc/hosts of that node: its own name must not mean 127.x",
        ("NET-16",),
    ),
    LogToken(
        "Duplicate NCCL runtime found",
        "two NCCL libraries are loaded",
        "rebuild the image from the lock",
        ("NET-11",),
    ),
    LogToken(
        "incompatible transport geometry",
        "the ranks differ in image or settings",
        "invoke build start: the image is compared and shipped again",
        ("ENV-04", "IMG-06"),
    ),
    LogToken(
        "DistStoreError",
        "a rank waited for others that never joined",
        "look at the other ranks first",
        ("ORD-01", "ORD-02"),
        peer=True,
    ),
    LogToken(
        "NCCL error 6",
        "the rank began before the first rank listened",
        "look at the first rank's log",
        ("ORD-02",),
        peer=True,
    ),
    LogToken(
        "SemLock._rebuild",
        "shared memory was removed under the engine when a login session ended",
        "loginctl enable-linger for the account that runs it, or RemoveIPC=no in logind.conf",
        ("HOST-16",),
    ),
    LogToken(
        "Engine core initialization failed",
        "the engine's core did not come up in time, often because a first compile took longer than its limit",
        "read the lines before it; with an empty {} start again, caches make the second start quicker",
        ("BOOT-01",),
        peer=True,
    ),
    LogToken(
        "unrecognized arguments",
        "this image's engine does not know one of the words",
        "compare the words in invoke render with the engine's --help in that image",
        ("ENV-08",),
    ),
    LogToken(
        "exec format error", "the image is for another processor", "build or pull it for arm64", ("IMG-01",)
    ),
    LogToken(
        "ptxas fatal",
        "the image's ptxas is too old for this GPU",
        "rebuild the image from the lock",
        ("IMG-19",),
    ),
    LogToken(
        "no kernel image is available",
        "a library in the image has no kernels for this GPU (sm_121)",
        "rebuild the image from the lock",
        ("IMG-14",),
    ),
    LogToken(
        "ThrMma",
        "the image has another nvidia-cutlass-dsl than was tested",
        "rebuild the image from the lock",
        ("IMG-02",),
    ),
    LogToken(
        "Free memory on device cuda:0",
        "less memory is free than the engine was told to take",
        "invoke status: something else holds memory on that node",
        ("MEM-01", "MEM-09"),
    ),
    LogToken(
        "memory capacity is unbalanced",
        "one node has less free memory than the others, often left over from an earlier run",
        "compare MemAvailable of the nodes; a reboot of the low one gives it back",
        ("MEM-07",),
    ),
    LogToken(
        "NV_ERR_NO_MEMORY",
        "the GPU driver got no memory: used up or fragmented",
        "reboot that node, or lower the lane's memory setting",
        ("MEM-02", "MEM-03"),
    ),
    LogToken(
        "NVRM: Xid",
        "the GPU reported a fault",
        "note the number after Xid; 79 needs a reboot of that node",
        ("RUN-09",),
    ),
    LogToken("mlx5_pci_slot_reset", "the network card was reset", "reboot that node", ("HOST-13",)),
    LogToken(
        "AER: Uncorrectable", "a PCIe error that could not be corrected", "reboot that node", ("HOST-13",)
    ),
    LogToken(
        "RPC call to sample_tokens timed out",
        "a step took longer than its limit, often a compile in service",
        "invoke restart",
        ("RUN-01",),
        peer=True,
    ),
    LogToken(
        "EngineDeadError",
        "the engine's core ended earlier",
        "read the lines before it, then invoke restart",
        ("RUN-01", "RUN-03"),
        peer=True,
    ),
    LogToken(
        "default chat template is no longer allowed",
        "the checkpoint has no chat template",
        "invoke download --deep",
        ("TPL-01",),
    ),
    LogToken(
        "cannot find snapshot",
        "the engine looked for the model on the Hub instead of on disk",
        "invoke download",
        ("DL-03", "DL-09"),
    ),
    LogToken("No space left on device", "a disk is full", "df -h on that node", ("DISK-01", "RSY-10")),
    LogToken(
        "could not select device driver",
        "Docker has no NVIDIA runtime on that node",
        "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        ("HOST-09",),
    ),
    LogToken(
        "Driver/library version mismatch",
        "the NVIDIA driver was updated and not yet loaded",
        "reboot that node",
        ("HOST-08",),
    ),
)
