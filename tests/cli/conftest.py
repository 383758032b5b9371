"""The command line as tests use it: in this process, or as a real one."""

from __future__ import annotations

import os
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


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """world.txt, questions.txt and the model trained on it, made once."""
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
    """call("neighbors", "model", …) in this process."""

    def invoke(*arguments: Any, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)

    return invoke


@pytest.fixture
def start(place: Path) -> Process:
    """start("train", …): a process of its own, with pipes."""

    def popen(*arguments: Any, environment: Mapping[str, str] = {}, **settings: Any) -> subprocess.Popen[str]:
        paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "firth", *(str(argument) for argument in arguments)]
        pipes = {name: settings.pop(name, subprocess.PIPE) for name in ("stdin", "stdout", "stderr")}
        everything = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
        return subprocess.Popen(command, env=everything, text=True, **pipes, **settings)

    return popen


@pytest.fixture
def model(place: Path) -> Path:
    return place / "model"


@pytest.fixture
def text(place: Path) -> Path:
    return place / "world.txt"
