"""What a node says of itself: the answer of ``ask_system``, parsed. Pure.

Sizes are bytes. A section that a node could not answer is kept by name in ``System.failed``; whoever needs it asks
``System.need`` first, so that "could not check" is never taken for a pass.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparkyard.errors import CouldNotCheck
from sparkyard.model import Node
from sparkyard.network import Hca, Interface, Listener, parse_hcas, parse_interfaces, parse_listening
from sparkyard.plan import Answers, Question
from sparkyard.sections import Section, sections

SYSTEM = Question("ask_system")
"""The question whose answer is a ``System``."""

HEADERS = 28
"""Bytes of a frame that are no ping payload: 20 of IPv4 header and 8 of ICMP."""


@dataclass(frozen=True, slots=True)
class Docker:
    """The Docker engine as this user sees it; ``version`` is empty when there is no access, and ``error`` says why."""

    version: str = ""
    runtimes: tuple[str, ...] = ()
    driver: str = ""
    root: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on the GPU; ``container`` is the 64-hex id of the one it runs in, empty outside of Docker."""

    pid: int
    name: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class System:
    """A node's own facts.

    Attributes:
        memory: every line of ``/proc/meminfo`` in bytes, by its name there.
        failed: sections that could not be answered, with the reason.
        grub: lines of the boot loader's configuration, for changes that wait for a reboot.
        files: the other small files that were read, by path.
    """

    hostname: str
    kernel: str
    architecture: str
    boot_id: str
    uptime: float
    processors: str
    cmdline: str
    uid: int
    user: str
    groups: tuple[str, ...]
    memory: Mapping[str, int]
    interfaces: tuple[Interface, ...]
    listening: tuple[Listener, ...]
    gpus: tuple[str, ...]
    docker: Docker
    hcas: tuple[Hca, ...]
    tools: tuple[str, ...]
    compute: tuple[GpuProcess, ...] = ()
    grub: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory_total(self) -> int:
        return self._memory("MemTotal")

    @property
    def memory_available(self) -> int:
        return self._memory("MemAvailable")

    def _memory(self, name: str) -> int:
        if name not in self.memory:
            raise CouldNotCheck(f"/proc/meminfo has no {name}", node=self.hostname)
        return self.memory[name]

    def need(self, section: str) -> None:
        """Raises CouldNotCheck when the section could not be answered."""
        if section in self.failed:
            raise CouldNotCheck(f"{section}: {self.failed[section]}", node=self.hostname)

    def interface(self, name: str) -> Interface | None:
        return next((i for i in self.interfaces if i.name == name), None)

    def holder(self, address: str) -> Interface | None:
        """The interface that has this address."""
        return next((i for i in self.interfaces if address in {a.split("/")[0] for a in i.addresses}), None)

    def hca(self, name: str) -> Hca | None:
        return next((h for h in self.hcas if h.name == name), None)

    def has_tool(self, name: str) -> bool:
        return any(path.rsplit("/", 1)[-1] == name for path in self.tools)


def system(answers: Answers) -> System:
    """The node's facts. Raises CouldNotCheck when it was not asked, or when the answer is cut short or incomplete."""
    answer = answers.of(SYSTEM)
    return parse_system(answer.out, answer.err, answers.node)


@functools.lru_cache(maxsize=16)  # every step of a node reads the same answer
def parse_system(text: str, errors: str, node: str) -> System:
    """The facts from the text of ``ask_system`` and its errors. Raises CouldNotCheck as ``system`` does."""
    parts = sections(text, node)
    missing = [name for name in ("files", "machine", "user", "docker") if name not in parts]
    if missing:
        raise CouldNotCheck(f"the answer lacks {', '.join(missing)}", node=node)
    try:
        return _system(parts, errors.strip())
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise CouldNotCheck(f"the node's facts cannot be read: {error!r}", node=node) from error


def _system(parts: Mapping[str, Section], errors: str) -> System:
    files = dict(_paths(parts["files"].lines))
    uid, user, groups = _identity(parts["user"].lines[0])
    return System(
        hostname=files["/proc/sys/kernel/hostname"],
        kernel=files["/proc/sys/kernel/osrelease"],
        architecture=parts["machine"].lines[0],
        boot_id=files["/proc/sys/kernel/random/boot_id"],
        uptime=float(files["/proc/uptime"].split()[0]),
        processors=files.get("/sys/devices/system/cpu/online", ""),
        cmdline=files.get("/proc/cmdline", ""),
        uid=uid,
        user=user,
        groups=groups,
        memory=_meminfo(parts["files"].lines),
        interfaces=parse_interfaces(parts.get("addresses"), files),
        listening=parse_listening(parts.get("listening")),
        gpus=tuple(line for line in _lines(parts, "gpus") if line.startswith("GPU ")),
        docker=_docker(parts["docker"], errors),
        hcas=parse_hcas(files, _lines(parts, "netdevs")),
        tools=_lines(parts, "tools"),
        compute=_compute(_lines(parts, "compute")),
        grub=_lines(parts, "grub"),
        files=files,
        failed=dict(_failed(parts, errors)),
    )


def _lines(parts: Mapping[str, Section], name: str) -> tuple[str, ...]:
    return parts[name].lines if name in parts else ()


def _failed(parts: Mapping[str, Section], errors: str) -> Iterator[tuple[str, str]]:
    for name in ("addresses", "listening", "gpus", "compute"):
        part = parts.get(name)
        if part is None:
            yield name, "not asked"
        elif part.status == 124:
            yield name, "no answer within its time limit"
        elif part.status == 127:
            yield name, "the program is not installed"
        elif part.status > (name == "listening"):  # grep says 1 when nobody listens
            yield name, " ".join(part.lines)[:200] or errors[:200] or f"status {part.status}"


def _compute(lines: Sequence[str]) -> tuple[GpuProcess, ...]:
    groups = re.compile(r"/proc/(\d+)/cgroup:.*?([0-9a-f]{64})")
    containers = {found[1]: found[2] for line in lines if (found := groups.match(line))}
    processes = [line.split(", ") for line in lines if re.match(r"\d+, ", line)]
    return tuple(GpuProcess(int(words[0]), words[1], containers.get(words[0], "")) for words in processes)


def _paths(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The first line of each file; meminfo, which has many, is read by ``_meminfo``."""
    seen: set[str] = set()
    for line in lines:
        path, colon, value = line.partition(":")
        if colon and path not in seen:
            seen.add(path)
            yield path, value


def _meminfo(lines: Sequence[str]) -> dict[str, int]:
    pattern = re.compile(r"/proc/meminfo:([^:]+):\s+(\d+) kB")
    return {found[1]: int(found[2]) * 1024 for line in lines if (found := pattern.match(line))}


def _identity(line: str) -> tuple[int, str, tuple[str, ...]]:
    user = re.match(r"uid=(\d+)(?:\(([^)]*)\))?", line)
    if user is None:
        raise ValueError(line)
    groups = line.partition("groups=")[2].split(" context=")[0]
    names = re.findall(r"\d+(?:\(([^)]*)\))?", groups)
    return int(user[1]), user[2] or user[1], tuple(name for name in names if name)


def _docker(part: Section, errors: str) -> Docker:
    if part.status == 124:
        return Docker(error="Docker did not answer within its time limit")
    try:
        told = json.loads("".join(part.lines))
    except ValueError:
        return Docker(error=errors or f"docker info ended with status {part.status}")
    said = "; ".join(told.get("errors") or ()) or errors
    if not told.get("version"):
        return Docker(error=said or f"docker info ended with status {part.status}")
    return Docker(told["version"], tuple(sorted(told.get("runtimes") or ())), told["driver"], told["root"])


def discovered(facts: System, node: Node) -> dict[str, str]:
    """Values known only on the node: ``gid.<hca>`` for each HCA of its link, and ``gid`` when they all agree."""
    indexes = {
        name: hca.gid(node.link.address, node.link.interface)
        for name in node.link.hcas
        if (hca := facts.hca(name))
    }
    found = {f"gid.{name}": str(index) for name, index in indexes.items() if index is not None}
    if len(found) == len(node.link.hcas) and len(set(found.values())) == 1:
        found["gid"] = next(iter(found.values()))
    return found
