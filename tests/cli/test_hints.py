"""The command that training proposes next works, for every method."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from samples import sample_of, small, training_command, write_samples

from firth.core import registry

METHODS = sorted(registry.method_classes())
#: Values for the placeholders of a proposed command.
PLACEHOLDERS = {"WORD": "the", "DOCUMENT": "1", "NODE": "p1", "USER": "u1", "FILE": "text.txt", "TABLE": "table.csv"}
PLACEHOLDERS |= {"PROMPT": "the king", "TEXT": "the king"}
CAPITALS = re.compile(r"(?<!\[)\b[A-Z]{3,}\b")  # not [MASK]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_samples(tmp_path_factory.mktemp("hints"))


def proposed(output: str) -> list[str]:
    """The lines after "Next:"."""
    return [line.strip() for line in output.partition("\nNext:")[2].splitlines() if line.strip()]


@pytest.mark.parametrize("name", METHODS)
def test_the_next_command_works(call, folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(folder)
    command = training_command(name, sample_of(registry.method(name)).file, "base")
    trained = call(*command, "-o", tmp_path / "model", *small(name))
    assert trained.exit_code == 0, trained.output
    lines = proposed(trained.stdout)
    assert lines
    for line in lines:
        words = [CAPITALS.sub(lambda match: PLACEHOLDERS[match[0]], word) for word in shlex.split(line)[1:]]
        done = call(*(tmp_path / word if word == "codes.npy" else word for word in words))
        assert done.exit_code == 0, f"{line}\n{done.output}"


def test_proposals_for_text_pairs_and_distilled_models(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    quick = ("--epochs", 1, "--threads", 1, "--dropout", 0)
    pairs = ("base", "examples.csv", "--other", "other", "-o", tmp_path / "same")
    trained = call("finetune", "text-classifier", *pairs, *quick)
    assert proposed(trained.stdout) == [f"firth predict {tmp_path / 'same'} FILE --column NAME --other NAME"]
    done = call("predict", tmp_path / "same", "examples.csv", "--column", "text", "--other", "other")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 60
    trained = call("train", "distil", "base", "text.txt", "-o", tmp_path / "small", "--dim", 8)
    assert proposed(trained.stdout) == [f"firth embed {tmp_path / 'small'} FILE"]
    assert call("embed", tmp_path / "small", "text.txt").exit_code == 0


def test_proposals_for_a_bert(call, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    trained = call("train", "bert", "text.txt", "-o", "my bert", *small("bert"))
    assert proposed(trained.stdout) == [
        "firth generate fill 'my bert' \"TEXT with a [MASK]\"",
        "firth embed 'my bert' FILE",
    ]
