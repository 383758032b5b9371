"""Errors that do not depend on the data come before it is read: the device, the output folder, the processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from samples import training_command
from tiny import tiny_bert

import firth
from firth.core import registry
from firth.core.errors import FirthError

METHODS = sorted(registry.method_classes())
FINE_TUNED = [name for name in METHODS if registry.method(name).needs_start]
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


def code(result: Any) -> str:
    assert result.exit_code == 1 and result.stdout == "", result.output
    return str(json.loads(result.stderr.splitlines()[-1])["error"]["code"])


class Unread:
    """Data that must not be read."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the data was read: {name}")

    def __iter__(self) -> Any:
        raise AssertionError("the data was read")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert().save(tmp_path_factory.mktemp("base") / "bert")


@without_gpu
@pytest.mark.parametrize("name", METHODS)
def test_the_device_is_checked_first(call, base, tmp_path, name):
    """The data does not exist either, so reading it first would give another error."""
    command = training_command(name, "no-such.csv", base)
    result = call(*command, "-o", tmp_path / "m", "--device", "cuda", "--json")
    assert code(result) in ("no_gpu", "unsupported_device")
    assert not (tmp_path / "m").exists()


@without_gpu
@pytest.mark.parametrize("name", METHODS)
def test_the_device_is_checked_first_in_python_too(base, name):
    start = firth.load(base) if name in FINE_TUNED else None
    with pytest.raises(FirthError) as caught:
        registry.method(name)().fit(Unread(), firth.Run(device="cuda"), start)
    assert caught.value.code in ("no_gpu", "unsupported_device")


@pytest.mark.parametrize("name", METHODS)
def test_the_output_folder_is_checked_before_the_data(call, base, tmp_path, name):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for output, expected in (("file", "unsafe_output"), ("full", "unsafe_output"), ("file/m", "unwritable_file")):
        result = call(*training_command(name, "no-such.csv", base), "-o", tmp_path / output, "--json")
        assert code(result) == expected


def test_a_sweep_checks_device_and_folder_before_the_data(call, tmp_path):
    command = ("sweep", "gpt", "no-such.txt", "--similarity", "no-such.tsv", "--json", "-o")
    if not torch.cuda.is_available():
        assert code(call(*command, tmp_path / "m", "--device", "cuda")) == "no_gpu"
    (tmp_path / "file").write_text("mine")
    assert code(call(*command, tmp_path / "file")) in ("unsafe_output", "unwritable_file")


@without_gpu
@pytest.mark.parametrize("verb", [("embed",), ("index", "build")])
def test_embedding_checks_device_and_precision_before_the_data(call, base, tmp_path, verb):
    command = (*verb, base, "no-such.txt", "-o", tmp_path / "out", "--json")
    assert code(call(*command, "--device", "cuda")) == "no_gpu"
    assert code(call(*command, "--precision", "bf16", "--device", "cpu")) == "invalid_value"
    assert not (tmp_path / "out").exists()


def test_embedding_checks_its_folder_before_the_data(call, base, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("one\n")
    monkeypatch.setattr("firth.data.corpus.Corpus.fingerprint", lambda self: next(iter(Unread())))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for output, expected in (("full", "unsafe_output"), ("file", "unwritable_file"), ("file/m", "unwritable_file")):
        assert code(call("embed", base, tmp_path / "texts.txt", "-o", tmp_path / output, "--json")) == expected


@pytest.mark.parametrize("name", METHODS)
def test_processes_are_checked_before_the_data(call, base, tmp_path, monkeypatch, name):
    """Networks distribute their work (`test_processes.py`); the other methods would repeat it in each process."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    if registry.method(name).in_processes:
        return
    result = call(*training_command(name, "no-such.csv", base), "-o", tmp_path / "m", "--json")
    assert code(result) == "conflicting_options"
    with pytest.raises(FirthError) as caught:
        firth.train(registry.method(name)(), Unread(), tmp_path / "m")
    assert caught.value.code == "conflicting_options"


def test_only_networks_distribute_their_work():
    distributed = {name for name in METHODS if registry.method(name).in_processes}
    networks = {
        "gpt",
        "bert",
        "seq2seq",
        "autoencoder",
        "vae",
        "multdae",
        "multvae",
        "two_tower",
        "sequence_recommender",
    }
    assert distributed == networks | {
        "text_classifier",
        "text_regressor",
        "token_classifier",
        "question_answerer",
        "sentence_encoder",
    }
