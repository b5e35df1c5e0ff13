"""Views: JSON lines against their schema, words for people at 80 columns, the record of a run."""

import io
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from sparkyard.errors import ConfigError, Fault, Unreachable
from sparkyard.events import Event, EventType
from sparkyard.report import JsonView, MultiView, RecordView, error_events, human_view
from sparkyard.reporting import amounts
from sparkyard.reporting.console import RichPaper
from sparkyard.reporting.human import HumanView
from sparkyard.reporting.lines import clean
from sparkyard.reporting.live import fitting
from sparkyard.reporting.plain import PlainPaper, is_plain
from tests.unit import happenings

WHEN = datetime(2026, 11, 29, 12, 0, 0, 5000, tzinfo=UTC)
SCHEMA = json.loads(files("sparkyard").joinpath("schemas/events.schema.json").read_text())
ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "transcript-80.txt"


def json_lines(events):
    stream = io.StringIO()
    view = JsonView(stream, lambda: WHEN)
    for event in events:
        view.handle(event)
    view.close()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def human(events, *, width=80, live=False, clock=lambda: 0.0, **console):
    stream = io.StringIO()
    view = HumanView(RichPaper(Console(file=stream, width=width, **console)), live=live, clock=clock)
    for event in events:
        view.handle(event)
    view.close()
    return stream.getvalue()


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


def test_every_event_type_is_valid_for_the_schema():
    lines = json_lines(happenings.checked() + happenings.ran())
    for line in lines:
        Draft202012Validator(SCHEMA).validate(line)
    assert {line["type"] for line in lines} == set(get_args(EventType))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("v", 2),
        ("type", "step-maybe"),
        ("status", "fine"),
        ("time", "2026-11-29"),
        ("node", None),
        ("extra", 1),
    ],
)
def test_the_schema_refuses_what_is_not_in_the_contract(key, value):
    line = json_lines([happenings.started()])[0] | {key: value}
    assert not Draft202012Validator(SCHEMA).is_valid(line)


@pytest.mark.parametrize(
    "type_", ["step-ok", "step-changed", "step-skipped", "step-failed", "node-unreachable", "recap"]
)
def test_the_schema_ties_the_status_to_the_type(type_):
    line = next(line for line in json_lines(happenings.ran()) if line["type"] == type_)
    assert not Draft202012Validator(SCHEMA).is_valid(line | {"status": None})


def test_json_lines_have_the_keys_in_order_and_the_lane_of_the_run():
    first, second = json_lines(
        [happenings.started(), Event("finding", "é\u2028", "n", data={"x": float("nan")})]
    )
    assert list(first) == ["v", "type", "time", "lane", "node", "step", "status", "message", "data"]
    assert (second["time"], second["lane"], second["message"]) == ("2026-11-29T12:00:00.005Z", "A", "é\u2028")
    assert second["data"] == {"x": None}


@pytest.mark.parametrize(
    ("exit_status", "word"),
    [(0, "ok"), (1, "failed"), (3, "failed"), (4, "unreachable"), (6, "would-change")],
)
def test_the_recap_says_how_it_ended(exit_status, word):
    assert json_lines([happenings.recap([], status=exit_status)])[0]["status"] == word


def test_progress_is_told_once_a_second_and_at_the_end():
    times = iter([10.0, 10.4, 11.0, 11.1])
    stream = io.StringIO()
    view = JsonView(stream, lambda: WHEN, lambda: next(times))
    for done in (1, 2, 3, 9):
        view.handle(happenings.progress(done, 9))
    assert [json.loads(line)["data"]["progress"]["done"] for line in stream.getvalue().splitlines()] == [
        1,
        3,
        9,
    ]


def test_an_error_becomes_findings_and_a_recap():
    config = error_events(
        ConfigError([Fault("a.yml", 3, "lane", "no such lane"), Fault("a.yml", 1, "all", "missing")])
    )
    assert [event.type for event in config] == ["finding", "finding", "recap"]
    assert config[1].data == {"file": "a.yml", "lineno": 3, "key": "lane", "message": "no such lane"}
    (refused, _recap) = error_events(
        ConfigError([Fault("a.yml", 3, "lane", "no key")], next_step="invoke build")
    )
    assert refused.data["next"] == "invoke build"
    gone = error_events(Unreachable("no answer", node="spark-2", next_step="ssh spark-2"))
    assert (gone[0].node, gone[0].data["next"], gone[1].data["status"]) == ("spark-2", "ssh spark-2", 4)
    for line in json_lines([*config, *gone]):
        Draft202012Validator(SCHEMA).validate(line)


def test_the_transcript_at_80_columns():
    assert human(happenings.checked() + happenings.ran()) == GOLDEN.read_text()


def test_prose_stays_within_80_columns_and_commands_stay_whole():
    text = human(happenings.checked() + happenings.ran())
    command = happenings.checked()[3].data["actions"][0]
    assert f"             {command}\n" in text
    assert [line for line in text.splitlines() if len(line) > 80] == [f"             {command}"]


def test_colour_only_where_it_is_wanted(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    events = happenings.ran()
    assert "\x1b" not in human(events)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = human(events)
    assert "\x1b[32mok\x1b[0m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in human(events)


def test_colour_changes_no_word(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stripped = "".join(
        part.partition("m")[2] if number else part
        for number, part in enumerate(human(happenings.ran()).split("\x1b["))
    )
    assert stripped == human(happenings.ran(), force_terminal=False, color_system=None)


def test_escape_sequences_of_a_node_do_not_reach_the_terminal():
    event = Event("step-output", node="spark-1", data={"line": "a\x1b]0;title\x07b\x1b[2Jc\rd\x9b"})
    assert human([event]) == "spark-1 | abcd\n"


def test_markup_is_taken_literally():
    assert "[bold]x[/bold] :warning:" in human([Event("finding", "[bold]x[/bold] :warning:")])


def test_output_of_a_step_needs_vv_and_output_of_no_step_is_always_shown():
    line = {"line": "compiling"}
    assert human([Event("step-output", node="n", step="image:x@n", data=line)]) == ""
    stream = io.StringIO()
    HumanView(RichPaper(Console(file=stream, width=80)), verbose=2, live=False).handle(
        Event("step-output", node="n", step="image:x@n", data=line)
    )
    assert "compiling" in stream.getvalue()
    assert human([Event("step-output", node="n", data=line)]) == "n | compiling\n"
    assert human([Event("finding", "n | compiling", "n", data=line)]) == "n | compiling\n"
    assert human([Event("finding", "n agent | compiling", "n", data=line)]) == "n agent | compiling\n"


def test_plain_progress_every_ten_seconds_and_at_the_end():
    times = iter([0.0, 4.0, 10.0, 12.0, 12.0])
    events = [
        happenings.progress(done, 40_000_000) for done in (0, 8_000_000, 20_000_000, 40_000_000, 40_000_000)
    ]
    assert human(events, clock=lambda: next(times)).splitlines() == [
        "             spark-1  model.gguf: 20.0 MB of 40.0 MB, 2.0 MB/s, 10.0 s left",
        "             spark-1  model.gguf: 40.0 MB of 40.0 MB, 3.3 MB/s",
    ]


def test_a_long_thing_is_told_less_and_less_often():
    """Ten minutes, reported every second: each ten seconds at first, each minute in the end."""
    events = [happenings.progress(second, 4000) for second in range(1200)]
    times = iter(float(second) for second in range(1200))
    told = human(events, clock=lambda: next(times)).splitlines()
    seconds = [int(line.split(" of ")[0].split()[-2]) for line in told if " B of " in line]
    gaps = [after - before for before, after in pairwise(seconds)]
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (10, 60)


def test_what_may_be_less_is_told_as_that():
    times = iter([0.0, 10.0, 20.0])
    more: dict[str, Any] = {"rate": 1_000_000.0, "at_most": True}
    events = [
        happenings.progress(0, 40_000_000, **more),
        happenings.progress(20_000_000, 40_000_000, **more),
        happenings.progress(50_000_000, 0, rate=1_000_000.0),
    ]
    assert human(events, width=120, clock=lambda: next(times)).splitlines() == [
        "             spark-1  model.gguf: 20.0 MB of at most 40.0 MB, 1.0 MB/s, at most 20.0 s left",
        "             spark-1  model.gguf: 50.0 MB, 1.0 MB/s",
    ]


def test_on_a_terminal_the_bars_are_gone_at_the_end():
    events = [*happenings.ran()[:3], *happenings.ran()[5:]]
    text = human(events, live=True, force_terminal=True, legacy_windows=False, _environ={"TERM": "xterm"})
    assert "500 MB of 1.0 GB" in text
    assert "\x1b[2K" in text  # the live area was wiped
    assert "\x1b[?25h" in text  # and the cursor given back
    assert text.index("500 MB of 1.0 GB") < text.rindex("\x1b[2K") < text.index("exit status 1")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_rows_of_the_live_area_are_cut_at_their_own_ends_alone(width):
    """A row that is wider than the terminal lost its time, and letters of every column."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, _environ={"TERM": "xterm"})
    view = HumanView(RichPaper(console), live=True, clock=iter(range(100)).__next__)
    title = "checkpoint weights-1017: copy from spark-1, with a long name behind it"
    view.handle(Event("step-start", "", "spark-1", happenings.STEP, {"title": title}))
    for done in (1_000_000, 12_800_000, 25_000_000):
        view.handle(happenings.progress(done, 151_000_000, "deepseek-ai/DeepSeek-V4.1-Flash-1017"))
        assert view._area is not None
        view._area._progress.refresh()
    view.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    rows = [row for row in text.splitlines() if "spark-1" in row]
    assert all(len(row) <= width for row in rows)
    last = rows[-1].rstrip()
    assert "25.0 MB of 151 MB" in last
    assert width < 80 or last.endswith(" left"), last
    step = next(row for row in rows if "spark-1 che" in row)
    assert re.search(r"… ━+ +\d:\d\d:\d\d$", step.rstrip()), step


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (61, "200 MB of at most 476 GB, 199 MB/s, at most 39 min 51 s left"),
        (50, "200 MB of at most 476 GB, at most 39 min 51 s left"),
        (41, "200 MB of at most 476 GB, at most 39 min…"),
        (10, "200 MB of…"),
    ],
)
def test_a_narrow_row_leaves_out_the_rate_before_the_time(room, words):
    assert fitting("200 MB of at most 476 GB, 199 MB/s, at most 39 min 51 s left", room) == words
    assert fitting("200 MB", room) == "200 MB"


def test_a_row_never_outlives_its_step():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "xterm"})
    view = HumanView(RichPaper(console), live=True)
    for event in happenings.ran()[:6]:
        view.handle(event)
    assert view._area is not None
    assert view._area._rows == {}


@pytest.mark.parametrize("happened", [happenings.ran, happenings.checked])
def test_plain_paper_gets_the_characters_that_rich_would_write(happened):
    events = [*happened(), Event("step-output", "", "spark-1", happenings.STEP, {"line": "a\tb \n c\td  "})]
    stream = io.StringIO()
    view = HumanView(PlainPaper(stream, {"COLUMNS": "80"}), verbose=2, clock=lambda: 0.0)
    rich = io.StringIO()
    other = HumanView(RichPaper(Console(file=rich, width=80)), verbose=2, clock=lambda: 0.0)
    for event in events:
        view.handle(event)
        other.handle(event)
    view.close()
    other.close()
    assert stream.getvalue() == rich.getvalue() != ""


@pytest.mark.parametrize(
    ("environ", "plain"), [({}, True), ({"FORCE_COLOR": ""}, True), ({"FORCE_COLOR": "1"}, False)]
)
def test_only_a_terminal_or_a_person_who_wants_it_gets_rich(environ, plain):
    assert is_plain(io.StringIO(), environ) is plain


def test_human_view_writes_to_its_stream_and_knows_a_file_from_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        view = human_view(stream)
        view.handle(happenings.started())
        view.handle(Event("step-start", "", "spark-1", happenings.STEP, {"title": "checkpoint"}))
        view.close()
    text = (tmp_path / "out").read_text()
    assert "download ? lane A" in text  # a C locale has no middle dot
    assert "\x1b[?25l" not in text  # no live area in a file, even with colour forced


class GoneView:
    def handle(self, event):
        raise BrokenPipeError

    def close(self):
        raise BrokenPipeError


def test_a_reader_who_goes_does_not_stop_the_others():
    gone = []
    stream = io.StringIO()
    views = MultiView([GoneView(), JsonView(stream)], on_gone=lambda error: gone.append(type(error)))
    views.handle(happenings.started())
    views.handle(Event("finding", "still here"))
    views.close()
    assert gone == [BrokenPipeError]
    assert len(stream.getvalue().splitlines()) == 2


def test_nothing_is_said_of_a_reader_who_goes_at_the_end():
    gone: list[type] = []
    MultiView([GoneView()], on_gone=lambda error: gone.append(type(error))).close()
    assert gone == []


PIPE = """
import sys
from sparkyard.events import Event
from sparkyard.report import JsonView, MultiView, human_view
view = MultiView([JsonView(sys.stdout) if sys.argv[1] == "json" else human_view(sys.stdout)])
for number in range(20000):
    view.handle(Event("finding", f"line {number}"))
view.close()
"""


@pytest.mark.parametrize("kind", ["json", "human"])
def test_a_closed_pipe_ends_without_a_word(kind):
    """As in ``invoke status | head``."""
    words = [sys.executable, "-c", PIPE, kind]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "line 0" in process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=60)) == ("", 0)


def test_the_record_has_every_event_and_a_log_for_each_node_without_secrets(tmp_path):
    token = 'hf_planted"token'
    view = RecordView(tmp_path, now=lambda: WHEN)
    view.add_secrets([token])
    view.handle(
        Event("step-start", "", "spark-1", "file:x@spark-1", {"actions": [f"curl {token}"], token: token})
    )
    view.handle(Event("step-output", f"got {token}", "spark-2", data={"line": f"export {token}"}))
    view.handle(happenings.progress(1, 2))
    view.close()
    view.handle(Event("recap"))
    view.close()
    view.close()
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(texts) == {"events.jsonl", "spark-1.log", "spark-2.log"}
    assert all("planted" not in text for text in texts.values())
    assert [json.loads(line)["type"] for line in texts["events.jsonl"].splitlines()] == [
        "step-start",
        "step-output",
        "recap",
    ]
    assert texts["spark-2.log"] == "2026-11-29T12:00:00.005Z step-output: export ********\n"
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_950, "1.0 MB"),
        (120_000_000, "120 MB"),
        (5e15, "5000 TB"),
    ],
)
def test_sizes(count, words):
    assert amounts.size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.416, "0.42 s"),
        (14.24, "14.2 s"),
        (59.96, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (7800, "2 h 10 min"),
    ],
)
def test_spans(seconds, words):
    assert amounts.span(seconds) == words


def test_nothing_that_a_program_prints_steers_the_terminal():
    text = "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \u202eback\u2066\u2069 \r\x00tab\tend\u00e9"
    assert clean(text) == "red back tab\tend\u00e9"
