"""--json: the result is JSON, and so is every line of standard error: errors, notes and progress."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import firth
from firth.cli.main import cli
from firth.core.errors import CODES


def leaves(command: click.Command, *words: str) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command that is not a group, by its words; only a few of the methods, whose commands are generated."""
    if not isinstance(command, click.Group):
        return [(words, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    if words in (("train",), ("sweep",)):
        names = ["skipgram", "als", "gpt"]
    inner_commands = [(name, command.get_command(context, name)) for name in names]
    return [leaf for name, inner in inner_commands if inner is not None for leaf in leaves(inner, *words, name)]


LEAVES = leaves(cli)
#: Wrong arguments of commands that take no path.
WRONG: dict[tuple[str, ...], list[str]] = {
    ("methods",): ["surplus"],
    ("demo",): ["-o", "file.txt"],
    ("completion",): ["no-such-shell"],
    ("studio",): ["--root", "no-such"],
    ("corpus", "python"): ["--package", "json", "-o", "out.odd"],
    ("corpus", "world"): ["-o", "out.odd"],
    ("plot", "positions"): ["-o", "out.odd"],
}


def bad_input(command: click.Command) -> list[str]:
    """Every required argument and option, none of which exists."""
    arguments = list[str]()
    for param in command.params:
        if isinstance(param, click.Option) and param.required:
            choices = getattr(param.type, "choices", ())
            arguments += [param.opts[0], choices[0] if choices else "out"]
        elif isinstance(param, click.Argument) and param.required:
            arguments += ["no-such:word"] if param.name == "pairs" else ["no-such"]
    return arguments


def last_error(stderr: str) -> dict[str, Any]:
    """Each line of standard error is JSON, and the last one is the error."""
    lines = [json.loads(line) for line in stderr.splitlines()]
    assert set(lines[-1]) == {"error"}
    error = lines[-1]["error"]
    assert set(error) == {"code", "message", "values"} and error["code"] in CODES and error["message"]
    assert isinstance(error["values"], dict)
    return dict(error)


def test_every_command_has_the_flag():
    without = [words for words, command in LEAVES if all("--json" not in param.opts for param in command.params)]
    assert len(LEAVES) > 50 and without == []


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=lambda each: " ".join(each) if type(each) is tuple else "")
def test_bad_input_is_an_object(call, tmp_path, monkeypatch, words, command):
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("a file where a folder should be")
    result = call(*words, *WRONG.get(words, bad_input(command)), "--json")
    assert result.exit_code in (1, 2), result.output
    assert last_error(result.stderr)["code"] != "fault"
    assert result.stdout == ""


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=lambda each: " ".join(each) if type(each) is tuple else "")
def test_a_wrong_flag_is_an_object(call, words, command):
    result = call(*words, "--no-such-flag", "--json")
    assert result.exit_code == 2 and last_error(result.stderr)["code"] == "usage"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--bogus --json", "usage"),
        ("--json", "usage"),
        ("no-such-verb --json", "usage"),
        ("neighbours m w --json", "usage"),  # similar to a command
        ("corpus --json", "usage"),
        ("corpus no-such --json", "usage"),
        ("tokenizer --json", "usage"),
        ("plot no-such --json", "usage"),
        ("train no-such text.txt -o m --json", "unknown_method"),
        ("train skipgram --json", "usage"),
        ("train skipgram text.txt -o m --window 0 --json", "invalid_value"),
        ("finetune no-such --json", "usage"),
        ("query neighbors --json no-such word -k many", "usage"),
        ("neighbors no-such word --json", "usage"),  # moved
        ("train text-classifier no-such -o m --json", "usage"),
        ("evaluate no-such --json", "usage"),
        ("embed no-such no-such --json", "usage"),  # needs -o
        ("tokenizer decode no-such no-such --json", "unreadable_file"),
    ],
)
def test_errors_of_groups_are_objects(call, tmp_path, monkeypatch, line, code):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a b c\n")
    result = call(*line.split())
    assert result.exit_code in (1, 2) and result.stdout == ""
    assert last_error(result.stderr)["code"] == code


def test_the_flag_after_two_dashes_is_a_word(call, model):
    assert call("query", "neighbors", model, "--", "--json").stderr.startswith("firth: ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError("1 TB"), "out_of_memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 8 bytes"), "out_of_memory"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory.\nmore"), "out_of_memory"),
        (OSError(28, "No space left on device", "model"), "operating_system"),
        (ZeroDivisionError("by zero"), "fault"),
        (KeyboardInterrupt(), "interrupted"),
        (click.Abort(), "interrupted"),
        (click.FileError("words.txt", "gone"), "unreadable_file"),
        (firth.FirthError("diverged", "{loss} is no number", loss=float("nan")), "diverged"),
    ],
)
def test_every_exception_is_an_object(call, monkeypatch, error, code):
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("firth.core.registry.method_classes", fail)
    result = call("methods", "--json")
    error_object = last_error(result.stderr)
    assert error_object["code"] == code and "\n" not in error_object["message"]
    assert result.exit_code == (130 if code == "interrupted" else 1)
    traced = call("--debug", "methods", "--json")
    assert ("trace" in last_error(traced.stderr)["values"]) == (code in ("out_of_memory", "operating_system", "fault"))


def test_an_interrupt_of_a_real_process_is_an_object(start, text, tmp_path):
    process = start("train", "skipgram", text, "-o", tmp_path / "m", "--epochs", 10_000, "--json", "--progress", "json")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    while "loss" not in next(lines):
        pass
    process.send_signal(signal.SIGINT)
    last = list(lines)[-1]
    assert process.wait() == 130 and last_error(last)["code"] == "interrupted"


def test_a_closed_pipe_is_not_an_error(start):
    process = start("methods", "--json")
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait() == 0


def test_notes_are_objects(call, model, tmp_path):
    (tmp_path / "texts.txt").write_bytes(b"the king zzzyx\nzzzyx\n\xff\n")
    result = call("embed", model, tmp_path / "texts.txt", "-o", tmp_path / "rows", "--json")
    again = call("embed", model, tmp_path / "texts.txt", "-o", tmp_path / "rows", "--json")
    assert result.exit_code == again.exit_code == 0
    first, second = ([json.loads(line) for line in each.stderr.splitlines()] for each in (result, again))
    assert {event["event"] for event in [*first, *second]} == {"note"}
    assert {event["code"] for event in first} == {"unknown_words", "invalid_utf8"}
    assert {event["code"] for event in second} == {"unknown_words", "invalid_utf8", "already_finished"}


@pytest.mark.parametrize("terminal", [False, True])
def test_the_report_fits_where_standard_error_goes(monkeypatch, terminal):
    from firth.cli.common import choose_report
    from firth.core.report import JsonLines, JsonLog, LogLines, TerminalBar

    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    reports = {}
    for as_json in (False, True):
        with click.Context(cli) as context:
            context.meta["json"] = as_json
            for progress in ("auto", "none", "json"):
                report = choose_report(progress)
                reports[as_json, progress] = type(report), getattr(report, "progress", None)
            monkeypatch.setenv("FIRTH_PROGRESS", "json")
            assert type(choose_report()) is JsonLines
            monkeypatch.delenv("FIRTH_PROGRESS")
    assert reports == {
        (False, "auto"): (TerminalBar, None) if terminal else (LogLines, True),
        (False, "none"): (LogLines, False),
        (False, "json"): (JsonLines, None),
        (True, "auto"): (JsonLog, True),
        (True, "none"): (JsonLog, False),
        (True, "json"): (JsonLines, None),
    }


def test_a_log_of_a_long_run_is_written_while_it_runs(tmp_path):
    """Without the minimum time between lines, and with standard error not a terminal."""
    (tmp_path / "text.txt").write_text("a b c\nd e f\n" * 400)
    program = (
        "from firth.core.report import LogLines\n"
        "LogLines.FIRST = LogLines.EVERY = 0.0\n"
        "from firth.cli.main import main\n"
        "main()\n"
    )
    words = ["train", "skipgram", "text.txt", "--dim", "4", "--epochs", "100"]
    path = {"PYTHONPATH": str(Path(firth.__file__).parents[1])}
    for more in ([], ["--json"], ["--progress", "none"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words, "-o", f"m{len(more)}{more[:1]}", *more],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **path},
        )
        assert done.returncode == 0
        lines = done.stderr.splitlines()
        if more == ["--json"]:
            events = [json.loads(line) for line in lines]
            assert {"step", "end"} <= {event["event"] for event in events}
            assert any("loss" in event and event["task"] == "training skipgram" for event in events)
        elif more:
            assert lines == []
        else:
            assert any(line.startswith("training skipgram  ") and "loss" in line for line in lines)
