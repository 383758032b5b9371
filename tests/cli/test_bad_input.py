"""Mistakes and broken files: one line that says what to do, exit code 1, nothing half-written."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import firth


def refused(result, *parts):
    """One line on standard error, nothing on standard output."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("firth: "), result.stderr
    for part in parts:
        assert part in lines[0]
    return lines[0]


CORPORA = {
    "empty": (b"", "no words"),
    "only separators": (b"... !!!\n\n", "no words"),
    "one word": (b"word " * 50, "two different words"),
    "binary": (b"\x7fELF\0\0\0\1" * 100, "binary"),
    "utf-16": (("hello world\n" * 50).encode("utf-16"), "UTF-16"),
}


def test_a_text_of_six_words_teaches_nothing_and_that_is_noted(call, tmp_path):
    (tmp_path / "rare.txt").write_bytes(b"all these words occur just once\n")
    result = call("train", "skipgram", tmp_path / "rare.txt", "-o", tmp_path / "m")
    assert result.exit_code == 0 and "Nothing was learned" in result.output


def test_what_is_read_is_not_written_over(call, model, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "the king"}\n')
    (tmp_path / "vectors.txt").write_text("2 2\na 1 0\nb 0 1\n")
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for line in (
        ("embed", model, tmp_path / "texts.jsonl", "-o", tmp_path / "texts.jsonl"),
        ("embed", model, tmp_path / "*.jsonl", "-o", tmp_path / "texts.jsonl"),
        ("embed", model, tmp_path, "-o", tmp_path / "texts.jsonl"),
        ("convert", tmp_path / "vectors.txt", tmp_path / ".." / tmp_path.name / "vectors.txt"),
        ("convert", copy, copy / "vectors.safetensors"),
        ("align", copy, tmp_path / "vectors.txt", "-o", tmp_path / "vectors.txt"),
    ):
        refused(call(*line), "is what is read; choose another place")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("name", CORPORA)
def test_corpora_that_teach_nothing(call, tmp_path, name):
    content, rule = CORPORA[name]
    (tmp_path / "bad.txt").write_bytes(content)
    refused(call("train", "skipgram", tmp_path / "bad.txt", "-o", tmp_path / "m"), rule)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_wrong_names_and_values(call, text, model, tmp_path):
    def train(*rest, data=text):
        return call("train", "skipgram", data, "-o", tmp_path / "m", *rest)

    refused(train(data=tmp_path / "missing.txt"), "There is no file", "missing.txt")
    refused(train(data=tmp_path), "is a folder")
    refused(train(data=tmp_path / "*.csv"), "No file matches")
    refused(train("--window", 0), "SkipGram.window must be at least 1; got 0.")
    refused(train("--learning-rate", "nan"), "SkipGram.learning_rate must be a finite number; got nan.")
    refused(train("--memory", "many"), "memory must be a size")
    refused(train("--device", "cuda", "--deterministic"), "deterministic=True is not available on CUDA")
    refused(train("--device", "cuda", "--loss", "softmax"), "SkipGram with loss=softmax does not run on a GPU")
    refused(train("--start", tmp_path / "no-model"), "No model folder")
    refused(train("--start", model), "dim=100")
    refused(call("train", "word3vec", text, "-o", tmp_path / "m"), "no method 'word3vec'", "skipgram")
    refused(call("neighbors", model, "zeppelin"), "No vector for 'zeppelin'", "min_count=2")
    refused(call("neighbors", model, "kinf"), "Did you mean 'king'")
    refused(call("neighbors", model, "king", "-k", 0), "k must be at least 1")
    refused(call("neighbors", tmp_path / "nothing", "king"), "There is no file")
    refused(call("neighbors", tmp_path, "king"), "not a model")
    refused(call("analogy", model, "king", "queen", "zeppelin"), "zeppelin")
    refused(call("similarity", model, "--odd", "king", "queen"), "at least 3")
    refused(call("embed", text, text, "-o", tmp_path / "x.npy"), "is a file")
    refused(call("embed", model, text, "-o", tmp_path / "x.csv"), ".npy, .parquet, .jsonl")
    refused(call("embed", model, tmp_path / "no.txt", "-o", tmp_path / "x.npy"), "no file")
    refused(call("convert", model, tmp_path / "x.doc"), "The suffix of x.doc is not that of a format")
    refused(call("convert", model, tmp_path / "x.bin", "--storage", "half"), "safetensors")
    refused(call("corpus", "world", "--size", 1, "-o", tmp_path / "x.txt"), "World.size")
    refused(call("corpus", "python", "--package", "no_such_package", "-o", tmp_path / "x.txt"), "no_such_package")
    refused(call("plot", "map", model, "-o", tmp_path / "x.doc"), ".png")
    refused(call("plot", "map", model, "zeppelin", "king", "-o", tmp_path / "x.svg"), "zeppelin")
    refused(call("evaluate", model, "--analogies", text), "line 1")
    refused(call("verify", tmp_path / "nothing"), "No model folder")
    refused(call("info", tmp_path / "nothing"), "There is no file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "skipgram", "text.txt"],
        ["train", "skipgram", "text.txt", "-o", "m", "--windw", "3"],
        ["train", "skipgram", "text.txt", "-o", "m", "--dim", "many"],
        ["train", "skipgram", "text.txt", "-o", "m", "--loss", "hinge"],
        ["neighbors", "model"],
        ["similarity", "model", "one"],
        ["neighbours", "model", "king"],
        ["plot", "analogies", "model", "king-queen", "-o", "x.svg"],
    ],
)
def test_usage_mistakes_have_exit_code_2(call, arguments):
    result = call(*arguments)
    assert result.exit_code == 2 and result.stderr.startswith("Usage: ") and "Traceback" not in result.stderr


def test_a_near_miss_is_named(call):
    assert "Did you mean 'neighbors'?" in call("neighbours", "model", "king").stderr


VECTOR_FILES = {
    "NaN": (b"2 2\na 1 2\nb nan 1\n", "NaN"),
    "more rows than said": (b"1 2\na 1 2\nb 3 4\n", "row"),
    "fewer rows than said": (b"3 2\na 1 2\nb 3 4\n", "row"),
    "other width than said": (b"2 3\na 1 2\nb 3 4\n", "3"),
    "2^60 rows": (b"%d 2\na 1 2\n" % 2**60, ""),
    "2^60 dimensions": (b"2 %d\na 1 2\n" % 2**60, ""),
    "cut binary": (b"2 4\na " + struct.pack("<4f", 1, 2, 3, 4) + b"\nb \0\0", "truncated"),
    "empty": (b"", "empty"),
    "text that is no table": (b"once upon a time\nthere was\n", "rows and dimensions"),
    "fastText model": ((793712314).to_bytes(4, "little") + b"\0" * 64, ".vec"),
}


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_vector_files_that_lie(call, tmp_path, name):
    content, rule = VECTOR_FILES[name]
    (tmp_path / "bad.vec").write_bytes(content)
    refused(call("neighbors", tmp_path / "bad.vec", "a"), "bad.vec", rule)
    refused(call("convert", tmp_path / "bad.vec", tmp_path / "out.npy"), "bad.vec", rule)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.vec"]


def test_odd_but_usable_vectors(call, tmp_path):
    (tmp_path / "v.txt").write_bytes(b"4 2\na 1 0\nb 1 1\na 0 1\nzero 0 0\n")
    result = call("neighbors", tmp_path / "v.txt", "a", "zero")
    assert result.exit_code == 0 and "b    0.71" in result.stdout
    assert result.stderr.startswith("note: ") and "1 rows repeat an earlier word" in result.stderr
    assert "The vector of 'zero' is zero: nothing is near it." in result.stderr
    firth.write_vectors(firth.Vectors(["new york", "b"], [[1, 0], [0, 1]]), tmp_path / "v.safetensors")
    refused(call("convert", tmp_path / "v.safetensors", tmp_path / "out.txt"), "'new york'", ".safetensors")
    assert not (tmp_path / "out.txt").exists()


def test_text_that_is_not_utf8_is_used_and_counted(call, text, tmp_path):
    (tmp_path / "latin.txt").write_bytes(text.read_bytes() + "café olé\n".encode("latin-1"))
    result = call("train", "skipgram", tmp_path / "latin.txt", "-o", tmp_path / "m", "--dim", 4, "--epochs", 1)
    assert result.exit_code == 0 and "note: 2 byte sequences were not valid UTF-8" in result.stderr


@pytest.mark.parametrize("broken", ["config.json", "vocabulary.json", "vectors.safetensors", "training.json"])
def test_damaged_models(call, model, tmp_path, broken):
    copy = firth.load(model).save(tmp_path / "m")
    (copy / broken).write_bytes((copy / broken).read_bytes()[:-20])
    refused(call("neighbors", copy, "king"), broken)
    (copy / broken).unlink()
    refused(call("neighbors", copy, "king"), broken)


def test_an_unexpected_error_is_one_line_too(call, model, monkeypatch):
    def broken(path: str, table: str | None) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("firth.cli.neighbors.open_vectors", broken)
    refused(call("neighbors", model, "king"), "ZeroDivisionError: division by zero", "--debug")
    assert isinstance(call("--debug", "neighbors", model, "king").exception, ZeroDivisionError)


def test_output_that_is_closed_early_is_no_error(start, model, text):
    process = start("embed", model, text)
    assert process.stdout.readline().startswith('{"key": "1"')
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(timeout=60) == 0


def test_output_that_is_full_is_told(start, model):
    with Path("/dev/full").open("w") as full:
        process = start("neighbors", model, "king", stdout=full)
    assert process.stderr.read() == "firth: No space left on device.\n" and process.wait(timeout=60) == 1


def test_any_locale_prints_any_language(start, tmp_path):
    firth.write_vectors(firth.Vectors(["king", "国王"], [[1, 0], [1, 1]]), tmp_path / "v.txt")
    process = start(
        "neighbors", tmp_path / "v.txt", "king", environment={"PYTHONIOENCODING": "ascii"}, encoding="utf-8"
    )
    assert "国王" in process.communicate()[0]


def test_standard_input_may_be_empty(start, tmp_path):
    process = start("train", "skipgram", "-", "-o", tmp_path / "m", stdin=subprocess.DEVNULL)
    assert process.stderr.read().startswith("firth: The corpus has no words") and process.wait(timeout=60) == 1
    assert list(tmp_path.iterdir()) == []
