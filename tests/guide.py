"""The commands of docs/two-sparks.md and docs/four-sparks.md: how the lab runs each, or why it does not. Order and words are the guides' own.

A typed line gets ``--inventory`` of the lab's stand-ins; an inside line runs in the head's own shell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """How a command is run in the lab.

    Attributes:
        how: ``typed``, ``inside`` the head, or ``not here``.
        more: flags that the lab needs beside (``--yes`` where a person would be asked).
        status: what it must end with.
        says: a text that it must print.
        why: for what is not run here.
    """

    how: str
    more: tuple[str, ...] = ()
    status: int = 0
    says: str = ""
    why: str = ""


OWN_INVENTORY = "the lab brings its inventory and its host keys; tests of init and trust are their own"
CHAT = Run("inside", says='"choices"')
WALKED = ("B", "C")
"""Lanes whose whole life the walk through the four-Spark guide types; that of the others is typed in a file of its own."""
ELSEWHERE = {
    "D": "tests/machine/test_lane_d.py",
    "A4": "tests/machine/test_lane_a4.py",
    "boot10": "tests/machine/test_lane_boot10.py",
}

SETTING_UP: dict[str, Run] = {
    "git clone REPOSITORY sparkyard && cd sparkyard": Run("not here", why="needs the network"),
    "scripts/setup": Run("not here", why="it has made the environment that the tests run in"),
    "source .venv/bin/activate": Run("not here", why="the tests run in it"),
    "invoke init": Run("not here", why=OWN_INVENTORY),
    "invoke trust": Run("not here", why=OWN_INVENTORY),
}

TWO: dict[str, Run] = {
    **SETTING_UP,
    "invoke config --lane=A": Run("typed", says="context"),
    "invoke show --lane=A": Run("typed", says="what runs where"),
    "invoke show --lane=A --sources": Run("typed", says="published: the two-Spark guide"),
    "invoke render --lane=A": Run("typed", says="docker run"),
    "invoke lock --lane=A": Run("typed", ("--yes",)),
    "invoke download build start --lane=A --check": Run("typed", status=6),
    "invoke download --lane=A": Run("typed"),
    "invoke build --lane=A": Run("typed"),
    "invoke start --lane=A": Run("typed"),
    "invoke verify --lane=A": Run("typed", says="pass"),
    "curl -s http://127.0.0.1:8888/v1/models": Run("inside", says="DeepSeek-V4.1-Flash-1017"),
    "invoke status": Run("typed"),
    "invoke logs --lines=50": Run("typed"),
    "invoke restart --lane=A": Run("typed", ("--yes",)),
    "invoke stop": Run("typed", ("--yes",)),
    "invoke start --lane=A --set context=524288 --check": Run("typed", status=6),
    "invoke show --lane=A --set weights=mia --set model_name=DeepSeek-V4.1-Flash": Run(
        "typed", says="Mia-AiLab"
    ),
    "invoke download --lane=A --deep": Run("typed"),
    "invoke revert --check": Run("typed", status=6),
    "invoke revert": Run("typed", ("--yes",)),
    "invoke switch --lane=A": Run("typed", ("--yes",)),
}

FOUR: dict[str, Run] = {
    **SETTING_UP,
    "invoke config": Run("typed", says="lane A"),
    "invoke lanes": Run("typed", says="boot10"),
    "invoke diff --lane=B --with=C": Run("typed", says="kv_bytes"),
    "invoke template --lane=D --diff": Run("typed", says="SamplingRange"),
    "invoke show --lane=B": Run("typed", says="what runs where"),
    "invoke render --lane=B": Run("typed", says="spark-4/rank.docker.sh"),
    "invoke download build start --lane=B --check": Run("typed", status=6),
    "invoke status": Run("typed", says="serves as wanted"),
    "invoke stop": Run("typed", ("--yes",)),
    "invoke start --lane=B": Run("typed"),
    "invoke switch --lane=C --check": Run("typed", status=6),
    "invoke switch --lane=C": Run("typed", ("--yes",), says="verify · lane C"),
    "invoke switch --lane=B": Run("typed", ("--yes",), says="verify · lane B"),
    "invoke switch --lane=boot10": Run("not here", why="as the switches to C and B"),
    "invoke logs --lines=20": Run("typed"),
    "invoke revert --check": Run("typed", status=6),
    "invoke revert": Run("typed", ("--yes",), says="forward again: invoke switch --lane=B"),
    "invoke download --lane=C --deep": Run("typed"),
    **{f"invoke lock --lane={lane}": Run("typed", ("--yes",)) for lane in (*WALKED, *ELSEWHERE)},
    **{f"invoke download build --lane={lane}": Run("typed", ("--yes",)) for lane in WALKED},
    **{f"invoke start verify --lane={lane}": Run("typed", says="pass") for lane in WALKED},
    **{f"invoke download build --lane={lane}": Run("not here", why=file) for lane, file in ELSEWHERE.items()},
    **{f"invoke start verify --lane={lane}": Run("not here", why=file) for lane, file in ELSEWHERE.items()},
}


@dataclass(frozen=True)
class Guide:
    """A page with commands, and how the lab runs each.

    Chats by curl are not listed one by one: each is ``CHAT``.
    """

    page: Path
    table: dict[str, Run]

    def commands(self) -> list[str]:
        """Every command of the page's shell blocks, in order."""
        blocks = BLOCK.findall(self.page.read_text(encoding="utf-8"))
        return [line for block in blocks for line in block.splitlines() if line.strip()]

    def run_of(self, command: str) -> Run:
        """How a command is run. Raises KeyError for one that is in no table."""
        return CHAT if command.startswith("curl -s http://127.0.0.1:8888/v1/chat/") else self.table[command]


TWO_SPARKS = Guide(DOCS / "two-sparks.md", TWO)
FOUR_SPARKS = Guide(DOCS / "four-sparks.md", FOUR)
