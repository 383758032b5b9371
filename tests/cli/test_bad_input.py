"""Wrong commands and damaged files: one line, the right code, exit code 1 or 2, and no partial output."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import firth
from firth.cli.groups import MOVED

CORPORA = {
    "empty": (b"", "empty_data", {}),
    "only separators": (b"... !!!\n\n", "empty_data", {}),
    "one word": (b"word " * 50, "empty_vocabulary", {"words": 1}),
    "binary": (b"\x7fELF\0\0\0\1" * 100, "malformed_data", {}),
    "utf-16": (("hello world\n" * 50).encode("utf-16"), "invalid_encoding", {}),
}


def test_a_text_of_six_words_is_noted(call, tmp_path):
    (tmp_path / "rare.txt").write_bytes(b"all these words occur just once\n")
    result = call("train", "skipgram", tmp_path / "rare.txt", "-o", tmp_path / "m", "--json")
    codes = [json.loads(line).get("code") for line in result.stderr.splitlines()]
    assert result.exit_code == 0 and "nothing_learned" in codes


def test_inputs_are_not_overwritten(refused, model, tmp_path):
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
        ("compare", "spaces", copy, tmp_path / "vectors.txt", "-o", tmp_path / "vectors.txt"),
    ):
        refused("output_is_input", *line)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("name", CORPORA)
def test_unusable_corpora(refused, tmp_path, name):
    content, code, values = CORPORA[name]
    (tmp_path / "bad.txt").write_bytes(content)
    refused(code, "train", "skipgram", tmp_path / "bad.txt", "-o", tmp_path / "m", **values)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_wrong_training_options(refused, text, model, tmp_path):
    def train(code, *rest, data=text, **values):
        refused(code, "train", "skipgram", data, "-o", tmp_path / "m", *rest, **values)

    train("not_found", data=tmp_path / "missing.txt", path=tmp_path / "missing.txt")
    train("wrong_input", data=tmp_path, path=tmp_path)
    train("not_found", data=tmp_path / "*.csv", pattern=tmp_path / "*.csv")
    train("invalid_value", "--window", 0, got=0)
    train("invalid_value", "--learning-rate", "nan", got="nan")
    train("invalid_value", "--memory", "many", option="memory", got="many")
    train("unsupported_device", "--device", "cuda", "--deterministic")
    train("unsupported_device", "--device", "cuda", "--loss", "softmax")
    train("not_found", "--start", tmp_path / "no-model", folder=tmp_path / "no-model")
    train("incompatible_start", "--start", model, dim=100)
    refused("unknown_method", "train", "word3vec", text, "-o", tmp_path / "m", name="word3vec")
    assert list(tmp_path.iterdir()) == []


def test_wrong_names_and_values(refused, text, model, tmp_path):
    nothing = tmp_path / "nothing"
    refused("unknown_key", "query", "neighbors", model, "zeppelin", key="zeppelin")
    assert "'king'" in refused("unknown_key", "query", "neighbors", model, "kinf", key="kinf")
    refused("invalid_value", "query", "neighbors", model, "king", "-k", 0, option="k", got=0)
    refused("not_found", "query", "neighbors", nothing, "king", path=nothing)
    refused("not_found", "query", "neighbors", tmp_path, "king", folder=tmp_path)
    refused("unknown_key", "query", "analogy", model, "king", "queen", "zeppelin", key="zeppelin")
    refused("too_few", "query", "odd-one-out", model, "king", "queen", got=2)
    refused("wrong_input", "embed", text, text, "-o", tmp_path / "x.npy", path=text)
    refused("unknown_format", "embed", model, text, "-o", tmp_path / "x.csv", got=tmp_path / "x.csv")
    refused("not_found", "embed", model, tmp_path / "no.txt", "-o", tmp_path / "x.npy", path=tmp_path / "no.txt")
    refused("unknown_format", "convert", model, tmp_path / "x.doc", name="x.doc")
    refused("conflicting_options", "convert", model, tmp_path / "x.bin", "--dtype", "float16", format="word2vec-binary")
    refused("invalid_value", "corpus", "world", "--size", 1, "-o", tmp_path / "x.txt", got=1)
    package = ("corpus", "python", "--package", "no_such_package", "-o", tmp_path / "x.txt")
    refused("not_found", *package, package="no_such_package")
    refused("unknown_format", "plot", "map", model, "-o", tmp_path / "x.doc", got=tmp_path / "x.doc")
    refused("unknown_key", "plot", "map", model, "zeppelin", "king", "-o", tmp_path / "x.svg", key="zeppelin")
    refused("malformed_data", "evaluate", "analogies", model, text, path=text, number=1)
    refused("not_found", "verify", nothing, folder=nothing)
    refused("not_found", "info", nothing, path=nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "skipgram", "text.txt"],
        ["train", "skipgram", "text.txt", "-o", "m", "--windw", "3"],
        ["train", "skipgram", "text.txt", "-o", "m", "--dim", "many"],
        ["train", "skipgram", "text.txt", "-o", "m", "--loss", "hinge"],
        ["query", "neighbors", "model"],
        ["query", "similarity", "model", "one"],
        ["neighbours", "model", "king"],
        ["train", "text-classifier", "text.csv", "-o", "m"],
        ["plot", "analogies", "model", "king-queen", "-o", "x.svg"],
    ],
)
def test_usage_mistakes_have_exit_code_2(call, arguments):
    result = call(*arguments)
    assert result.exit_code == 2 and result.stderr.startswith("Usage: ") and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["qury", "neighbors", "model", "king"], "Did you mean 'firth query'?"),
        (["query", "neighbours", "model", "king"], "Did you mean 'firth query neighbors'?"),
        (["neighbours", "model", "king"], "Did you mean 'firth query neighbors'?"),
        (["index", "my-model", "text.txt"], "The commands of 'firth index' are build."),
        (["zzzz"], "'firth --help' lists the commands."),
        (["train", "text_classifier", "a.csv"], "'firth finetune text-classifier BASE DATA -o MODEL'"),
    ],
)
def test_unknown_commands_are_explained(refused, arguments, advice):
    assert advice in refused("usage", *arguments)


@pytest.mark.parametrize("old", MOVED)
def test_moved_commands_name_the_new_command(refused, old):
    new = MOVED[old]
    assert refused("usage", *old.split(), "a", "b") == f"There is no command {old!r}. It is 'firth {new}' now."
    assert refused("usage", *new.partition(" …")[0].split(), "--no-such-option").startswith("No such option")


VECTOR_FILES = {
    "NaN": (b"2 2\na 1 2\nb nan 1\n", "non_finite", {}),
    "more rows than said": (b"1 2\na 1 2\nb 3 4\n", "damaged_file", {"rows": 1, "got": 2}),
    "fewer rows than said": (b"3 2\na 1 2\nb 3 4\n", "damaged_file", {"rows": 3, "got": 2}),
    "other width than said": (b"2 3\na 1 2\nb 3 4\n", "damaged_file", {"got": 2, "dims": 3}),
    "2^60 rows": (b"%d 2\na 1 2\n" % 2**60, "damaged_file", {"rows": 2**60}),
    "2^60 dimensions": (b"2 %d\na 1 2\n" % 2**60, "damaged_file", {"dims": 2**60}),
    "cut binary": (b"2 4\na " + struct.pack("<4f", 1, 2, 3, 4) + b"\nb \0\0", "damaged_file", {"rows": 2}),
    "empty": (b"", "damaged_file", {}),
    "text that is no table": (b"once upon a time\nthere was\n", "damaged_file", {}),
    "fastText model": ((793712314).to_bytes(4, "little") + b"\0" * 64, "damaged_file", {"got": 0}),
}


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_damaged_vector_files(refused, tmp_path, name):
    content, code, values = VECTOR_FILES[name]
    path = tmp_path / "bad.vec"
    path.write_bytes(content)
    refused(code, "query", "neighbors", path, "a", path=path, **values)
    refused(code, "convert", path, tmp_path / "out.npy", path=path, **values)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.vec"]


def test_unusual_but_usable_vectors(call, refused, tmp_path):
    (tmp_path / "v.txt").write_bytes(b"4 2\na 1 0\nb 1 1\na 0 1\nzero 0 0\n")
    result = call("query", "neighbors", tmp_path / "v.txt", "a", "zero", "--json")
    notes = [json.loads(line) for line in result.stderr.splitlines()]
    assert json.loads(result.stdout)["a"][0]["score"] == pytest.approx(0.5**0.5)
    assert [note["code"] for note in notes][-1] == "zero_vector" and "'zero'" in notes[-1]["text"]
    assert len(notes) == 2 and "'a'" in notes[0]["text"]  # the repeated word
    assert call("query", "neighbors", tmp_path / "v.txt", "a").stderr.startswith("note: ")
    firth.write_vectors(firth.Vectors(["new york", "b"], [[1, 0], [0, 1]]), tmp_path / "v.safetensors")
    message = refused("invalid_value", "convert", tmp_path / "v.safetensors", tmp_path / "out.txt")
    assert "'new york'" in message
    assert not (tmp_path / "out.txt").exists()


def test_invalid_utf8_is_counted(call, text, tmp_path):
    (tmp_path / "latin.txt").write_bytes(text.read_bytes() + "café olé\n".encode("latin-1"))
    small = ("--dim", 4, "--epochs", 1, "--json")
    result = call("train", "skipgram", tmp_path / "latin.txt", "-o", tmp_path / "m", *small)
    notes = {line["code"]: line["text"] for line in map(json.loads, result.stderr.splitlines()) if "code" in line}
    assert result.exit_code == 0 and any(text.startswith("2 byte sequences") for text in notes.values())


@pytest.mark.parametrize("broken", ["config.json", "vocabulary.json", "vectors.safetensors", "training.json"])
def test_damaged_models(refused, model, tmp_path, broken):
    copy = firth.load(model).save(tmp_path / "m")
    (copy / broken).write_bytes((copy / broken).read_bytes()[:-20])
    refused("damaged_model", "query", "neighbors", copy, "king", path=copy / broken)
    (copy / broken).unlink()
    assert broken in refused("incomplete_model", "query", "neighbors", copy, "king", folder=copy)


def test_an_unexpected_error_is_one_line(call, refused, model, monkeypatch):
    def broken(path: str, table: str | None) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("firth.cli.query.neighbors.open_vectors", broken)
    message = refused("fault", "query", "neighbors", model, "king")
    assert "ZeroDivisionError: division by zero" in message and "--debug" in message
    assert isinstance(call("--debug", "query", "neighbors", model, "king").exception, ZeroDivisionError)


def test_a_closed_pipe_is_not_an_error(start, model, text):
    process = start("embed", model, text)
    assert process.stdout.readline().startswith('{"key": "1"')
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(timeout=60) == 0


def test_a_full_disk_is_reported(start, model):
    with Path("/dev/full").open("w") as full:
        process = start("query", "neighbors", model, "king", stdout=full)
    assert process.stderr.read() == "firth: No space left on device.\n" and process.wait(timeout=60) == 1


def test_any_locale_prints_any_language(start, tmp_path):
    firth.write_vectors(firth.Vectors(["king", "国王"], [[1, 0], [1, 1]]), tmp_path / "v.txt")
    process = start(
        "query", "neighbors", tmp_path / "v.txt", "king", environment={"PYTHONIOENCODING": "ascii"}, encoding="utf-8"
    )
    assert "国王" in process.communicate()[0]


def test_empty_standard_input(start, tmp_path):
    process = start("train", "skipgram", "-", "-o", tmp_path / "m", "--json", stdin=subprocess.DEVNULL)
    error = json.loads(process.stderr.read().splitlines()[-1])["error"]
    assert error["code"] == "empty_data" and process.wait(timeout=60) == 1
    assert list(tmp_path.iterdir()) == []
