"""What a node must have before a lane is started there: one step a question, each blocked with what was seen. Pure.

These steps never act. What needs sudo is printed for the person, never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from sparkyard.errors import CouldNotCheck
from sparkyard.facts import CONTAINERS, ContainerFact, containers, ping, ping_question
from sparkyard.kept import Kept, Room, left_beside, parse_room, to_come
from sparkyard.model import Lane, Node
from sparkyard.network import Listener
from sparkyard.plan import Answers, Question, Step, Verdict
from sparkyard.rendered import RenderedLane
from sparkyard.reporting.amounts import gigabytes
from sparkyard.steps import fabric
from sparkyard.steps.host import host_steps
from sparkyard.system import HEADERS, SYSTEM, system
from sparkyard.trees import Disk, parse_disk

ENGINES = re.compile(
    r"vllm|sglang|tensorfold|flare|tensorrt|trtllm|ollama|llama[._-]?cpp|lmdeploy|text-generation", re.I
)
"""Names and images of containers that are likely to be an engine."""

Check = Callable[[Answers], Verdict]
Names = Collection[str]


def preflight_steps(lane: Lane, rendered: RenderedLane) -> tuple[Step, ...]:
    """The steps of every node of the lane."""
    own = tuple(step for node in lane.nodes for step in _steps(lane, rendered, node))
    return (*own, *host_steps(rendered))


def _steps(lane: Lane, rendered: RenderedLane, node: Node) -> list[Step]:
    ports = rendered.ports.get(node.name, {})
    kit = tuple(c.name for c in rendered.containers_of(node.name)) if rendered.scripts else ()
    freeing = next((job.name for job in rendered.jobs if job.frees_memory and node.name in job.nodes), "")
    found = [
        _step(node, "docker", "Docker can be used", docker_access),
        _step(node, "link", "the link address is here", lambda a: fabric.link(a, node, lane.rank(node) == 0)),
        _step(node, "ports", "ports are free", lambda a: free_ports(a, ports, kit), CONTAINERS),
        _step(
            node,
            "memory",
            "enough memory",
            lambda a: memory(a, lane.recipe.limits.memory, kit, freeing),
            CONTAINERS,
        ),
        _disk(node, lane.recipe.limits.disk, rendered.kept.get(node.name, ())),
        _step(
            node,
            "engines",
            "no other engine",
            lambda a: no_other_engine(a, gpu=lane.recipe.gpu, kit=kit, lane=lane.name),
            CONTAINERS,
        ),
    ]
    if lane.recipe.gpu:
        found.append(_step(node, "gpu", "Docker sees the GPU", gpu))
    if lane.recipe.rdma:
        found.append(
            _step(node, "rdma", "HCAs are active with an IPv4 RoCE v2 GID", lambda a: fabric.rdma(a, node))
        )
        found.append(_step(node, "kernel", "the kernel lets RDMA pin memory", fabric.kernel))
    return [*found, *(_jumbo(node, peer) for peer in lane.nodes if peer is not node)]


def _step(node: Node, name: str, title: str, judge: Check, *questions: Question) -> Step:
    return Step("preflight", name, node.name, f"preflight: {title}", judge, (SYSTEM, *questions))


def _disk(node: Node, least: int, folders: tuple[Kept, ...]) -> Step:
    """Room for ``least`` bytes and for what the kept folders still grow by."""
    asked = Question("ask_disk", (node.root,))

    def judge(answers: Answers) -> Verdict:
        disk = parse_disk(answers.of(asked), answers.node, "free disk")
        growing = to_come(answers, folders)
        disks: dict[str, Disk | Room] = {room.fs: room for room in (parse_room(answers, k) for k in folders)}
        disks[disk.fs] = disk
        for fs, at in disks.items():
            wanted = growing.get(fs, 0) + (least if fs == disk.fs else 0)
            if at.available < wanted:
                return Verdict(
                    "blocked",
                    f"{gigabytes(at.available)} of disk are free on {at.at}; expected {gigabytes(wanted)}",
                    next_step="free some, or set `root` of the node to another disk",
                )
        free = f"{gigabytes(disk.available)} are free on {disk.at}"
        return Verdict("ok", free, details=left_beside(answers, folders))

    return _step(node, "disk", "enough disk", judge, asked, *(kept.asked for kept in folders))


def _jumbo(node: Node, peer: Node) -> Step:
    asked = ping_question(peer.link.address, min(node.link.mtu, peer.link.mtu) - HEADERS)

    def judge(answers: Answers) -> Verdict:
        return fabric.jumbo(ping(answers, asked), system(answers), node, peer)

    return _step(node, f"jumbo-{peer.name}", f"jumbo frames reach {peer.name}", judge, asked)


def docker_access(answers: Answers) -> Verdict:
    facts = system(answers)
    if facts.docker.version:
        return Verdict("ok", f"Docker {facts.docker.version} as {facts.user}")
    if "permission denied" in facts.docker.error.lower():
        return Verdict(
            "blocked",
            f"Docker refuses {facts.user}, who is not in the group docker",
            next_step=f"sudo usermod -aG docker {facts.user}, then log in again",
            details=(facts.docker.error,),
        )
    return Verdict(
        "blocked",
        "Docker does not answer; expected its engine to run",
        next_step="sudo systemctl start docker",
        details=(facts.docker.error,),
    )


def gpu(answers: Answers) -> Verdict:
    facts = system(answers)
    if "gpus" in facts.failed or not facts.gpus:
        seen = facts.failed.get("gpus", "nvidia-smi lists none")
        return Verdict("blocked", f"no GPU is seen ({seen}); expected one", next_step="nvidia-smi")
    ways = [name for name in ("nvidia-container-runtime-hook", "nvidia-ctk") if facts.has_tool(name)]
    if "nvidia" not in facts.docker.runtimes and not ways:
        return Verdict(
            "blocked",
            f"the GPU is there ({facts.gpus[0]}), and Docker has no NVIDIA runtime to hand it to containers",
            next_step="install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker",
        )
    return Verdict("ok", facts.gpus[0].split(" (UUID")[0])


def _running_lanes(answers: Answers, kit: Names = ()) -> tuple[str, ...]:
    """The lanes that run here; none when Docker cannot be asked, which the docker step says.

    ``kit`` are the exact names of containers that the lane's own scripts start: one that was started by hand counts too.
    """
    try:
        running = [c for c in containers(answers) if c.running and not c.job]
        return tuple(sorted({c.lane or c.name for c in running if c.lane or c.name in kit}))
    except CouldNotCheck:
        return ()


def free_ports(
    answers: Answers, ports: Mapping[str, int], kit: Names = (), *, excuse: bool = True
) -> Verdict:
    """Nobody listens on the ports; while a lane runs here they may be its own (``excuse``), which a start finds out later."""
    facts = system(answers)
    facts.need("listening")
    taken = [(name, port, by) for name, port in ports.items() for by in facts.listening if by.port == port]
    lanes = _running_lanes(answers, kit) if excuse else ()
    if not ports:
        return Verdict("ok", "this rank listens on no port of its own")
    if not taken or lanes:
        held = f" (lane {', '.join(lanes)} runs)" if taken else f" {'is' if len(ports) == 1 else 'are'} free"
        return Verdict(
            "ok", f"port{'' if len(ports) == 1 else 's'} {', '.join(map(str, ports.values()))}{held}"
        )
    seen = "; ".join(f"port {port} ({name}) is held by {_holder(by)}" for name, port, by in taken)
    port = taken[0][1]
    return Verdict(
        "blocked",
        f"{seen}; expected it free",
        next_step=f"find and end it, or set another port: sudo ss -Hltnp 'sport = :{port}'",
    )


def _holder(by: Listener) -> str:
    return f"{by.process or 'a process of another user'} on {by.address}"


def memory(answers: Answers, wanted: int, kit: Names = (), freeing: str = "") -> Verdict:
    """So much is free; ``freeing`` is a job that comes first and gives some back, after which it is asked again."""
    facts = system(answers)
    lanes = _running_lanes(answers, kit)
    free = facts.memory_available
    if lanes:
        return Verdict("ok", f"{gigabytes(free)} are free beside lane {', '.join(lanes)}")
    if free < wanted and freeing:
        words = f"{gigabytes(free)} are free of {gigabytes(wanted)}; asked again after job {freeing}"
        return Verdict("ok", words)
    if free < wanted:
        return Verdict(
            "blocked",
            f"{gigabytes(free)} of memory are free; expected {gigabytes(wanted)}",
            next_step="end what holds it: ps -eo rss,pid,args --sort=-rss | head",
        )
    return Verdict("ok", f"{gigabytes(free)} are free")


def no_other_engine(answers: Answers, *, gpu: bool, kit: Names = (), lane: str = "") -> Verdict:
    """No container that looks like an engine and is not ours; on GPU lanes no other process on the GPU either, and no job of another ``lane``."""
    facts, found = system(answers), containers(answers)
    others = [
        c
        for c in found
        if c.running
        and not c.lane
        and c.name not in kit
        and (ENGINES.search(c.name) or ENGINES.search(c.image))
    ]
    if others and gpu:
        return _engine(
            f"container {others[0].name} ({others[0].image}) is running", f"docker stop {others[0].name}"
        )
    jobs = [c for c in found if c.running and c.job and c.lane != lane]
    if jobs and gpu:
        return _left_job(jobs[0])
    ours = {c.id for c in found if c.lane or c.name in kit}
    strangers = [p for p in facts.compute if p.container not in ours]
    if gpu and strangers:
        first = strangers[0]
        where = next((c for c in found if c.id == first.container), None)
        if where is not None:
            return _engine(
                f"container {where.name} holds the GPU ({first.name})", f"docker stop {where.name}"
            )
        return _engine(
            f"{first.name} (pid {first.pid}) holds the GPU", f"end it, if it is yours: kill {first.pid}"
        )
    if gpu and "compute" in facts.failed and "gpus" not in facts.failed:
        facts.need("compute")
    return Verdict("ok", "no other engine runs", details=_noted(others))


def _left_job(left: ContainerFact) -> Verdict:
    """A job goes on when sparkyard is killed; what runs it is found again by its own lane alone."""
    return Verdict(
        "blocked",
        f"container {left.name} still runs: job {left.job} of lane {left.lane}, whose sparkyard was killed",
        next_step=f"invoke build --lane={left.lane} waits for it, invoke stop --lane={left.lane} ends it",
    )


def _engine(seen: str, next_step: str) -> Verdict:
    return Verdict(
        "blocked", f"{seen}, and is not sparkyard's; expected no other engine", next_step=next_step
    )


def _noted(others: list[ContainerFact]) -> tuple[str, ...]:
    return tuple(f"container {c.name} ({c.image}) runs beside" for c in others)
