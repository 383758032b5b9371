"""What `firth train` proposes next is a command that works, for every method."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from samples import FILES, small, write_samples

from firth.core import registry

METHODS = sorted(registry.method_classes())
#: What stands for the capitals of a hint.
GIVEN = {"WORD": "the", "KEY": "1", "NODE": "p1", "USER": "u1", "FILE": "text.txt", "TABLE": "table.csv"}
GIVEN |= {"PROMPT": "the king", "TEXT": "the king"}
CAPITALS = re.compile(r"(?<!\[)\b[A-Z]{3,}\b")  # [MASK] stays


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_samples(tmp_path_factory.mktemp("hints"))


def proposed(told: str) -> list[str]:
    """The lines behind "Next:"."""
    return [line.strip() for line in told.partition("\nNext:")[2].splitlines() if line.strip()]


@pytest.mark.parametrize("name", METHODS)
def test_the_next_command_works(call, folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(folder)
    method = registry.method(name)
    start = ["--start", "base"] if method.needs_start else []
    told = call("train", name, FILES[method.kind], "-o", tmp_path / "model", *start, *small(name))
    assert told.exit_code == 0, told.output
    lines = proposed(told.stdout)
    assert lines
    for line in lines:
        words = [CAPITALS.sub(lambda found: GIVEN[found[0]], word) for word in shlex.split(line)[1:]]
        done = call(*(tmp_path / word if word == "codes.npy" else word for word in words))
        assert done.exit_code == 0, f"{line}\n{done.output}"


def test_pairs_and_tables_of_tokens_have_hints_of_their_own(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    quick = ("--epochs", 1, "--threads", 1, "--dropout", 0)
    told = call("finetune", "pairs", "base", "examples.csv", "--other", "other", "-o", tmp_path / "same", *quick)
    assert proposed(told.stdout) == [f"firth predict {tmp_path / 'same'} FILE --column NAME --other NAME"]
    done = call("predict", tmp_path / "same", "examples.csv", "--column", "text", "--other", "other")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 60
    told = call("distil", "base", "-o", tmp_path / "small", "--text", "text.txt", "--dim", 8)
    assert proposed(told.stdout) == [f"firth embed {tmp_path / 'small'} FILE"]
    assert call("embed", tmp_path / "small", "text.txt").exit_code == 0


def test_a_bert_fills_blanks_and_embeds(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    told = call("train", "bert", "text.txt", "-o", "my bert", *small("bert"))
    assert proposed(told.stdout) == ["firth fill 'my bert' \"TEXT with a [MASK]\"", "firth embed 'my bert' FILE"]
