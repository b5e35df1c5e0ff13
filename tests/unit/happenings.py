"""Events of an imagined run, for the tests of views: one of every type, with everything an event can carry."""

from sparkyard import tables
from sparkyard.events import Event
from sparkyard.recap import count

STEP = "checkpoint:gemma@spark-1"
NODES = ["spark-1", "spark-2"]


def progress(done: int, total: int, label: str = "model.gguf", **more) -> Event:
    data = {"progress": {"done": done, "total": total, "unit": "bytes", "label": label, **more}}
    return Event("step-output", node="spark-1", step=STEP, data=data)


def recap(events, **data) -> Event:
    nodes = {node: counts.data() for node, counts in count(events, NODES).items()}
    return Event(
        "recap", data={"nodes": nodes, "status": 0, "seconds": 14.2, "record": "/state/runs/r", **data}
    )


def started(verb: str = "download", **more) -> Event:
    return Event("run-start", data={"verb": verb, "lane": "A", "nodes": NODES, "check": False, **more})


def checked() -> list[Event]:
    """A ``--check`` that finds work."""
    docker = "docker run --detach --name sparkyard-A-0 --network host --restart no --env 'GREETING=it is' engine:1 serve"
    events = [
        started("start", check=True),
        Event("step-ok", "12 files proven", "spark-1", STEP, {"title": "checkpoint gemma: download"}),
        Event(
            "step-would-change",
            "the file differs from what the recipe and the inventory would make today",
            "spark-2",
            "file:engine-env@spark-2",
            {
                "title": "file engine-env",
                "actions": ["write /home/spark/engine.env (24 bytes, mode 0600)"],
                "diff": [["/home/spark/engine.env", "PORT=8000\nHOST=a\n", "PORT=8001\nHOST=a\n"]],
            },
        ),
        Event(
            "step-would-change",
            "no container runs; will run after file:engine-env@spark-2",
            "spark-1",
            "service:engine@spark-1",
            {"title": "service engine: start", "actions": [docker]},
        ),
    ]
    return [*events, recap(events, status=6, check=True)]


def ran() -> list[Event]:
    """A run with one of everything else, which ends badly."""
    events = [
        started(stand_in=True),
        Event(
            "step-start",
            "",
            "spark-1",
            STEP,
            {"title": "checkpoint gemma: download", "actions": ["download 2 files"]},
        ),
        progress(500_000_000, 1_000_000_000),
        progress(1_000_000_000, 1_000_000_000),
        Event("step-output", node="spark-1", step=STEP, data={"line": "resolving"}),
        Event("step-changed", "", "spark-1", STEP, {"title": "checkpoint gemma: download", "seconds": 11.25}),
        Event(
            "step-skipped", "rank 1 has no files of its own", "spark-2", "file:x@spark-2", {"title": "file x"}
        ),
        Event(
            "step-ok",
            "",
            "spark-1",
            "verify:chat@spark-1",
            {
                "title": "verify chat",
                "asked": 'POST http://127.0.0.1:8000/v1/chat/completions {"messages": [{"role": "user", "content": "2+2?"}]}',
                "answered": {"status": 200, "text": "4"},
                "result": "pass",
            },
        ),
        Event(
            "step-failed",
            "the container ended with status 1; it was expected to run",
            "spark-2",
            "service:engine@spark-2",
            {
                "title": "service engine: start",
                "details": ["\x1b[31mRuntimeError: no HCA\x1b[0m", "last line"],
                "next": "invoke logs --lane=A --node=spark-2",
            },
        ),
        Event(
            "node-unreachable",
            "no answer on port 22 in 10 s",
            "spark-2",
            data={"next": "ssh spark@spark-2.local"},
        ),
        Event("finding", "lane A keeps running"),
        tables.finding(
            "config", {"node": "spark-1", "key": "lane", "value": "A", "origin": "inventory/my/hosts.yml:3"}
        ),
        tables.finding(
            "config", {"node": "spark-1", "key": "lanes.A.words", "value": "w" * 70, "origin": "--set"}
        ),
    ]
    return [*events, recap(events, status=1, stand_in=True)]
