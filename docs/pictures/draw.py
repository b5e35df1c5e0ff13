"""Draws the pictures of the guides: ``python docs/pictures/draw.py`` writes the SVG files beside itself.

Addresses, interfaces and HCAs are read from the example inventories; the terminal shows the events of a recorded run (``demo.jsonl``). Nothing is fetched, and the
pictures name no font and no host of others.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from sparkyard.events import Event
from sparkyard.load import load_inventory
from sparkyard.model import Node
from sparkyard.reporting.human import HumanView
from sparkyard.reporting.lines import Line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
STYLE = f"""
  svg {{ color-scheme: light dark; }}
  text {{ font: 13px {FONTS}; fill: #1f2328; }}
  .name {{ font-weight: bold; font-size: 15px; }}
  .soft {{ fill: #57606a; }}
  .page {{ fill: #ffffff; }}
  .box {{ fill: #f3f5f7; stroke: #8c959f; }}
  .done {{ fill: #ddf4e4; stroke: #2da44e; }}
  .line {{ stroke: #0969da; stroke-width: 3; fill: none; }}
  .tip {{ fill: #0969da; }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3; }}
    .soft {{ fill: #9da7b1; }}
    .page {{ fill: #0d1117; }}
    .box {{ fill: #1b222b; stroke: #6e7681; }}
    .done {{ fill: #12361f; stroke: #3fb950; }}
    .line {{ stroke: #58a6ff; }}
    .tip {{ fill: #58a6ff; }}
  }}
"""
LINE = 19
"""Pixels between two lines of text."""
BOX = 232
"""Pixels across a node: the names of two HCAs fit."""


def words(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{style}>{escape(text, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"/>'


def cable(*points: tuple[float, float]) -> str:
    return f'<polyline class="line" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"/>'


def arrow(x: float, y: float, to: float) -> str:
    """From left to right."""
    tip = f"{to:g},{y:g} {to - 9:g},{y - 5:g} {to - 9:g},{y + 5:g}"
    return cable((x, y), (to - 8, y)) + f'<polygon class="tip" points="{tip}"/>'


def picture(width: float, height: float, title: str, about: str, parts: Sequence[str]) -> str:
    """A whole file: title and description for those who cannot see it."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title about">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(about)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width:g}" height="{height:g}"/>',
            *parts,
            "</svg>\n",
        )
    )


# --- cables ----------------------------------------------------------------------------------------------------------


def nodes_of(name: str) -> tuple[Node, ...]:
    """The nodes of an example inventory, in rank order."""
    inventory = load_inventory(ROOT / "inventory" / name, environ={}, sets=())
    return tuple(sorted(inventory.nodes, key=lambda node: node.rank))


def role(node: Node) -> str:
    return f"rank {node.rank}, " + ("head: type here" if node.local else "worker")


def spark(node: Node, x: float, y: float, lines: Sequence[str]) -> list[str]:
    """A node: its name, what it is, and its lines."""
    height = LINE * (len(lines) + 3)
    told = [
        words(x + 14, y + LINE * 1.3, node.name, "name"),
        words(x + 14, y + LINE * 2.3, role(node), "soft"),
    ]
    told += [words(x + 14, y + LINE * (n + 3.3), line) for n, line in enumerate(lines)]
    return [box(x, y, BOX, height), *told]


def link(node: Node) -> tuple[str, ...]:
    return (node.link.interface, node.link.address, ", ".join(node.link.hcas))


def said(node: Node) -> str:
    return f"{node.name}: {node.link.interface}, {node.link.address}, {' and '.join(node.link.hcas)}"


def two() -> str:
    first, second = nodes_of("two-spark")
    left, right, top = 20, 548, 40
    height = LINE * 6
    middle = top + height / 2
    parts = [
        cable((left + BOX, middle), (right, middle)),
        words(400, middle - 12, "one QSFP cable", anchor="middle"),
        words(400, middle + 24, f"MTU {first.link.mtu}", "soft", "middle"),
        *spark(first, left, top, link(first)),
        *spark(second, right, top, link(second)),
        words(
            400,
            top + height + 40,
            "one port shows as two interfaces and two RDMA devices (HCAs); one interface has the address",
            "soft",
            "middle",
        ),
    ]
    about = f"One cable joins the ConnectX-7 ports of two Sparks. {said(first)}. {said(second)}."
    return picture(800, 220, "Two Sparks, one cable", about, parts)


def switch() -> str:
    nodes = nodes_of("four-spark")
    gap, top, bar = 16, 30, 240
    width = len(nodes) * (BOX + gap) + gap
    parts = [
        box(gap, bar, width - 2 * gap, 52),
        words(width / 2, bar + 32, f"RoCE switch, one network, MTU {nodes[0].link.mtu}", "name", "middle"),
    ]
    for number, node in enumerate(nodes):
        x = gap + number * (BOX + gap)
        parts += [cable((x + BOX / 2, top + LINE * 6), (x + BOX / 2, bar)), *spark(node, x, top, link(node))]
    about = "Each of four Sparks has one cable to a switch. " + ". ".join(map(said, nodes)) + "."
    return picture(width, 320, "Four Sparks on a switch", about, parts)


def ring() -> str:
    nodes = nodes_of("four-spark-ring")
    left, right, top, low = 20, 468, 30, 290
    places = ((left, top), (right, top), (right, low), (left, low))  # the way round: 1-2-3-4
    height = LINE * 9
    across, down = (left + BOX / 2, right + BOX / 2), (top + height / 2, low + height / 2)
    parts = [cable((across[0], y), (across[1], y)) for y in down]
    parts += [cable((x, down[0]), (x, down[1])) for x in across]
    for node, (x, y) in zip(nodes, places, strict=True):
        parts += spark(node, x, y, (node.link.interface, node.link.address, *ends(node, nodes)))
    note = f"the addresses are of the office network (MTU {nodes[0].link.mtu}); each cable has networks of its own"
    parts.append(words(360, low + height + 30, note, "soft", "middle"))
    about = "Four cables join four Sparks in a ring, in the order of the ranks. "
    about += " ".join(f"{node.name}: {', '.join(ends(node, nodes))}." for node in nodes)
    return picture(720, 510, "Four Sparks in a ring", about, parts)


def ends(node: Node, nodes: Sequence[Node]) -> tuple[str, ...]:
    """Of each cable of a node: to whom, and its HCAs here."""
    peers = node.vars["peer_hcas"]
    told: list[str] = []
    for rank, hcas in sorted(peers.items()):
        told += [f"to {nodes[int(rank)].name}:", f"  {', '.join(hcas)}"]
    return tuple(told)


# --- what happens ----------------------------------------------------------------------------------------------------

STEPS: tuple[tuple[str, str, str], ...] = (
    ("download", "from the Hub, every byte proven", "copied over the link, proven again"),
    ("build", "the engine's image is built or pulled", "the image is shipped"),
    ("", "*the lane's jobs: each node makes its own part, and seals it", ""),
    ("start", "*asked on every node: Docker, GPU, HCAs, jumbo frames, ports, memory, disk", ""),
    ("", "", "ranks 1, 2, 3 start"),
    ("", "rank 0 starts", ""),
    ("", "a real request is answered", ""),
    ("verify", "real requests, shown with their answers", ""),
)
"""(verb, on the head, on the workers) of each step; with a star it is on all nodes. The order is that of a lane whose workers start first."""
SENT = ("download", "build")
"""Verbs whose first step sends something from the head to the workers."""


def steps() -> str:
    names = [node.name for node in nodes_of("four-spark")]
    left, head, gap, high = 110, 330, 40, 44
    columns = [left + head + gap + n * 116 for n in range(3)]
    wide = columns[-1] + 106 - columns[0]
    parts = [words(left + head / 2, 34, f"{names[0]} (head)", "name", "middle")]
    parts += [words(x + 53, 34, name, "name", "middle") for x, name in zip(columns, names[1:], strict=True)]
    for number, (verb, first, others) in enumerate(STEPS):
        y = 52 + number * (high + 10)
        parts += [words(14, y + 27, verb, "name")] if verb else []
        if first.startswith("*"):
            whole = columns[0] + wide - left
            parts += [
                box(left, y, whole, high, "done"),
                words(left + whole / 2, y + 27, first[1:], anchor="middle"),
            ]
            continue
        if first:
            parts += [
                box(left, y, head, high, "done"),
                words(left + head / 2, y + 27, first, anchor="middle"),
            ]
        if others:
            parts += [
                box(columns[0], y, wide, high, "done"),
                words(columns[0] + wide / 2, y + 27, others, anchor="middle"),
            ]
        if verb in SENT:
            parts.append(arrow(left + head + 2, y + high / 2, columns[0] - 2))
    low = 52 + len(STEPS) * (high + 10) + 18
    note = "every step asks its node first: a second run finds it all there, and changes nothing"
    width = columns[-1] + 120
    parts.append(words(width / 2, low, note, "soft", "middle"))
    told = "; ".join(
        f"{verb}: " * bool(verb) + ", ".join(filter(None, (a.lstrip("*"), b))) for verb, a, b in STEPS
    )
    return picture(width, low + 22, "What invoke download build start verify does", told, parts)


# --- a terminal ------------------------------------------------------------------------------------------------------

CELL = 12.2
"""Pixels across a character of rich's terminal."""
CLIPPED = re.compile(r' clip-path="url\(#demo-line-\d+\)"')
BLANKS = re.compile(
    r'x="(?P<x>[\d.]+)" (?P<y>y="[\d.]+") textLength="(?P<length>[\d.]+)">(?P<blanks>(?:&#160;)+)(?=[^&<]|&[^#])'
)
SCREEN = 22
"""Lines of the run that are shown: its end."""
TERMINAL = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title about">
<title id="title">The end of a run in the lab</title>
<desc id="about">A terminal: verify asks and shows each answer with its result, then the recap has a line for each node.</desc>
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 18px FONTS; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath></defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONTS", FONTS)


class Page:
    """Keeps the lines of the view, in their styles."""

    width = 80
    live = False

    def __init__(self) -> None:
        self.lines: list[Text] = []

    def write(self, line: Line = ()) -> None:
        self.lines.append(Text.assemble(*line))

    def area(self) -> NoReturn:
        raise NotImplementedError("a page has no bars")


def terminal() -> str:
    """The end of the recorded run, as the view shows it today."""
    page = Page()
    view = HumanView(page)
    for text in (HERE / "demo.jsonl").read_text(encoding="utf-8").splitlines():
        told = json.loads(text)
        view.handle(Event(told["type"], told["message"], told["node"], told["step"], told["data"]))
    view.close()
    console = Console(
        record=True,
        width=92,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        _environ={},
    )
    for line in page.lines[-SCREEN:]:
        console.print(line)
    drawn = console.export_svg(title="sparkyard", code_format=TERMINAL, unique_id="demo")
    return BLANKS.sub(_moved, CLIPPED.sub("", drawn))


def _moved(found: re.Match[str]) -> str:
    """A text without its leading blanks, which not every program keeps, where it stands with them."""
    blanks = found["blanks"].count("&#160;")
    x, length = (float(found[name]) for name in ("x", "length"))
    return f'x="{x + blanks * CELL:g}" {found["y"]} textLength="{length - blanks * CELL:g}">'


PICTURES = {
    "two-sparks.svg": two,
    "four-sparks-switch.svg": switch,
    "four-sparks-ring.svg": ring,
    "steps.svg": steps,
    "demo.svg": terminal,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
