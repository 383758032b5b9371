"""The command line as tests use it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import firth
from firth.cli.main import cli
from firth.data.world import World, write_analogies

Call = Callable[..., Result]
Process = Callable[..., "subprocess.Popen[str]"]
Refused = Callable[..., str]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with world.txt, questions.txt and a model trained on the text, made once per session."""
    folder = tmp_path_factory.mktemp("world")
    world = World(seed=5)
    (folder / "world.txt").write_text("\n".join(world.sentences(12_000)) + "\n")
    write_analogies(folder / "questions.txt", world.analogies(most=50))
    command = ["train", "skipgram", str(folder / "world.txt"), "-o", str(folder / "model"), "--dim", "30"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRTH_CACHE", str(folder / "cache"))
        result = CliRunner().invoke(cli, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        yield folder


@pytest.fixture
def call(place: Path) -> Call:
    """call("query", "neighbors", "model", …) in this process."""

    def invoke(*arguments: Any, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)

    return invoke


@pytest.fixture
def refused(call: Call) -> Refused:
    """refused("unknown_key", "query", "neighbors", model, "kinf", key="kinf"): the command fails with this error.

    The exit code is 1, or 2 for the code usage. Nothing is on standard output. The error is one line, and its values
    contain the given ones, compared as text where they are not equal. Returns the message. The fixture `call` is
    requested because modules may define their own, which changes the working directory.
    """

    def check(code: str, *arguments: Any, input: str | bytes | None = None, **values: Any) -> str:
        result = CliRunner().invoke(cli, [*map(str, arguments), "--json"], input=input)
        assert result.exit_code == (2 if code == "usage" else 1), result.output
        assert result.stdout == "", result.stdout
        error = json.loads(result.stderr.splitlines()[-1])["error"]
        assert error["code"] == code, error
        for name, value in values.items():
            assert name in error["values"], f"{code} has the values {sorted(error['values'])}; expected {name!r}"
            actual = error["values"][name]
            assert actual == value or str(actual) == str(value), f"{name}: expected {value!r}, got {actual!r}"
        return str(error["message"])

    return check


@pytest.fixture
def start(place: Path) -> Process:
    """start("train", …): a process of its own, with pipes."""

    def popen(*arguments: Any, environment: Mapping[str, str] = {}, **settings: Any) -> subprocess.Popen[str]:
        paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "firth", *(str(argument) for argument in arguments)]
        pipes = {name: settings.pop(name, subprocess.PIPE) for name in ("stdin", "stdout", "stderr")}
        everything = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
        try:
            return subprocess.Popen(command, env=everything, text=True, **pipes, **settings)
        finally:
            signal.signal(signal.SIGINT, usual)

    return popen


@pytest.fixture
def model(place: Path) -> Path:
    return place / "model"


@pytest.fixture
def text(place: Path) -> Path:
    return place / "world.txt"
