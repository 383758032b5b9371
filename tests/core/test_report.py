"""What long work tells while it runs."""

import io
import json

import pytest

from firth import FirthWarning
from firth.core import report as reports
from firth.core.report import JsonLines, PlainNotes, Silence, TerminalBar, clock, human


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.1234, "0.123"),
        (12, "12"),
        (999, "999"),
        (999.7, "1k"),
        (1234, "1.23k"),
        (999_999, "1M"),
        (1_234_567, "1.23M"),
        (5e9, "5G"),
        (2.5e12, "2.5T"),
        (-4321, "-4.32k"),
    ],
)
def test_human(number: float, text: str) -> None:
    assert human(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (3725, "1:02:05"), (-3, "0:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_json_lines_are_json_one_event_a_line() -> None:
    stream = io.StringIO()
    report = JsonLines(stream)
    report.begin("train", 100, "words")
    report.step(50, loss=2.5)
    report.step(60, loss=float("nan"))
    report.note("3 words dropped\nreally")
    report.end()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    events = [json.loads(line, parse_constant=refuse) for line in stream.getvalue().splitlines()]
    assert events == [
        {"event": "begin", "task": "train", "total": 100, "unit": "words"},
        {"event": "step", "task": "train", "done": 50, "loss": 2.5},
        {"event": "step", "task": "train", "done": 60, "loss": None},
        {"event": "note", "code": "note", "text": "3 words dropped\nreally"},
        {"event": "end", "task": "train"},
    ]


def test_silence_turns_notes_into_warnings() -> None:
    with pytest.warns(FirthWarning, match="3 words dropped"):
        Silence().note("3 words dropped")


def test_plain_notes_are_lines_and_nothing_else_is_written() -> None:
    stream = io.StringIO()
    report = PlainNotes(stream)
    report.begin("train", 10, "words")
    report.step(10, loss=1)
    report.note("cut")
    report.end()
    assert stream.getvalue() == "note: cut\n"


def drawn(stream: io.StringIO) -> list[str]:
    return [line for line in stream.getvalue().split("\r\x1b[2K") if line]


def test_terminal_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = TerminalBar(stream)
    bar.begin("train", 10_000, "words")
    now[0] += 1
    bar.step(0)
    now[0] += 1
    bar.step(2_000, loss=2.5)
    now[0] += 0.01
    bar.step(2_001, loss=2.4)  # too soon to draw again
    now[0] += 7.99
    bar.step(10_000, loss=2.25)
    bar.note("done")
    bar.end()
    lines = drawn(stream)
    assert lines[0] == "train    0%  0 words/s"
    assert lines[1] == "train   20%  1k words/s  loss 2.5  0:08 left"
    assert lines[2] == "train  100%  1k words/s  loss 2.25  0:00 left"
    assert lines[3:] == ["note: done\n"]


def test_terminal_bar_of_a_resumed_task_shows_the_speed_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = TerminalBar(stream)
    bar.begin("train", 10_000, "words")
    bar.step(8_000)
    now[0] += 1
    bar.step(9_000)
    assert drawn(stream)[-1] == "train   90%  1k words/s  0:01 left"


def test_terminal_bar_without_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = TerminalBar(stream)
    bar.begin("count", 0, "words")
    now[0] += 2
    bar.step(3_000)
    assert drawn(stream) == ["count  1.5k words/s"]
