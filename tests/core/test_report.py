"""What long work tells while it runs."""

import io
import json

import pytest
from refusing import warns_code

from firth.core.report import JsonLines, JsonLog, LogLines, Silence, TerminalBar, clock, human


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
    with warns_code("dropped_words") as issued:
        Silence().note("3 words dropped", code="dropped_words")
    assert str(issued[0]) == "3 words dropped"


class Clock:
    """Seconds that pass when a test says so, and a little whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        self.seconds += 1e-6
        return self.seconds


def worked(report: LogLines, clock: Clock) -> None:
    """A short task, then one of a minute with a step every second; a note in between."""
    report.begin("read", 50, "lines")
    clock.seconds += 2
    report.step(50)
    report.end()
    report.begin("train", 6_000, "words")
    report.step(0)
    for second in range(1, 61):
        clock.seconds += 1
        report.step(100 * second, loss=3 - second / 60)
        if second == 20:
            report.note("cut", code="cut_words")
    report.end()


def test_a_log_has_a_line_after_ten_seconds_and_then_every_thirty() -> None:
    stream, clock = io.StringIO(), Clock()
    worked(LogLines(stream, now=clock), clock)
    assert stream.getvalue().splitlines() == [
        "train   13%  100 words/s  loss 2.867  0:52 left",  # 10 s after the start of the command, 8 of the task
        "note: cut",
        "train   63%  100 words/s  loss 2.367  0:22 left",
        "train  100%  100 words/s  loss 2  after 1:00",
    ]


def test_a_log_of_short_tasks_is_not_silent() -> None:
    stream, clock = io.StringIO(), Clock()
    report = LogLines(stream, now=clock)
    for number in range(1, 21):
        report.begin(f"Trial {number}", 100, "words")
        clock.seconds += 4
        report.step(50)
        report.end()
    assert [line.partition("  ")[0] for line in stream.getvalue().splitlines()] == ["Trial 3", "Trial 11", "Trial 19"]


def test_the_first_step_has_no_speed() -> None:
    stream, clock = io.StringIO(), Clock()
    report = LogLines(stream, now=clock)
    report.begin("train", 100, "words")
    clock.seconds += 11
    report.step(8, loss=2)
    assert stream.getvalue() == "train    8%  loss 2\n"


def test_without_progress_a_log_has_notes_only() -> None:
    stream, clock = io.StringIO(), Clock()
    worked(LogLines(stream, progress=False, now=clock), clock)
    assert stream.getvalue() == "note: cut\n"


def test_the_same_log_as_json() -> None:
    stream, clock = io.StringIO(), Clock()
    worked(JsonLog(stream, now=clock), clock)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    about = {"task": "train", "total": 6000, "unit": "words"}
    assert [event["event"] for event in events] == ["step", "note", "step", "end"]
    assert events[0] == {
        "event": "step",
        **about,
        "done": 800,
        "seconds": 8.0,
        "per_second": 100.0,
        "seconds_left": 52.0,
        "loss": pytest.approx(2.8667, abs=1e-4),
    }
    assert events[1] == {"event": "note", "code": "cut_words", "text": "cut"}
    assert events[3] == {"event": "end", **about, "done": 6000, "seconds": 60.0, "per_second": 100.0, "loss": 2.0}


def test_json_of_a_loss_that_ran_away_is_null() -> None:
    stream, clock = io.StringIO(), Clock()
    report = JsonLog(stream, now=clock)
    report.begin("train", 0, "words")
    clock.seconds += 11
    report.step(5, loss=float("inf"))
    event = json.loads(stream.getvalue())
    assert event["loss"] is None and event["total"] == 0 and "seconds_left" not in event


@pytest.mark.parametrize("kind", [TerminalBar, LogLines, JsonLog, JsonLines])
def test_work_goes_on_when_nobody_reads_its_progress(kind) -> None:
    """`firth train … 2>&1 | head -1` must not end the training."""
    import os

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", closefd=False) as stream:
        report = kind(stream)
        for _ in range(3):
            report.begin("train", 10, "words")
            report.step(10)
            report.note("cut")
            report.end()
    os.close(writing)


def drawn(stream: io.StringIO) -> list[str]:
    return [line for line in stream.getvalue().split("\r\x1b[2K") if line]


def test_terminal_bar() -> None:
    now = [100.0]
    stream = io.StringIO()
    bar = TerminalBar(stream, now=lambda: now[0])
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
    assert lines[0] == "train    0%"
    assert lines[1] == "train   20%  2k words/s  loss 2.5  0:04 left"
    assert lines[2] == "train  100%  1.11k words/s  loss 2.25  0:00 left"
    assert lines[3:] == ["note: done\n"]


def test_terminal_bar_of_a_resumed_task_shows_the_speed_of_this_run() -> None:
    now = [0.0]
    stream = io.StringIO()
    bar = TerminalBar(stream, now=lambda: now[0])
    bar.begin("train", 10_000, "words")
    bar.step(8_000)
    now[0] += 1
    bar.step(9_000)
    assert drawn(stream)[-1] == "train   90%  1k words/s  0:01 left"


def test_terminal_bar_without_a_total() -> None:
    now = [0.0]
    stream = io.StringIO()
    bar = TerminalBar(stream, now=lambda: now[0])
    bar.begin("count", 0, "words")
    now[0] += 2
    bar.step(3_000)
    assert drawn(stream) == ["count  1.5k words/s"]
