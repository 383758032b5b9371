"""FastText and fastText's files from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import fasttext
import numpy as np
import pytest

import firth


def output(result) -> str:
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def refused(result, *parts: str) -> None:
    message = result.stderr
    assert result.exit_code == 1 and message.startswith("firth: ") and message.count("\n") == 1, message
    assert all(part in message for part in parts), message


@pytest.fixture(scope="module")
def folder(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("fasttext") / "model"
    method = firth.FastText(dim=20, epochs=3, buckets=20_000)
    method.fit(firth.Corpus(place / "world.txt")).save(target)
    return target


def test_trained_asked_and_embedded(call, text, tmp_path):
    options = ["--dim", "12", "--epochs", "1", "--buckets", "9000", "--objective", "cbow", "--minn", "2"]
    assert "Next: firth query neighbors" in output(call("train", "fasttext", text, "-o", tmp_path / "m", *options))
    assert "kingish" in output(call("query", "neighbors", tmp_path / "m", "kingish", "-k", "3", "--json"))
    output(call("query", "similarity", tmp_path / "m", "kingish", "king"))
    (tmp_path / "t.txt").write_text("the kingish one\n")
    row = json.loads(output(call("embed", tmp_path / "m", tmp_path / "t.txt", "--smoothing", "0.001")))
    assert row["unknown"] == 0 and len(row["vector"]) == 12


@pytest.mark.parametrize("suffix", ["bin", "ftz"])
def test_a_model_becomes_a_file_and_a_folder_again(call, folder, tmp_path, suffix):
    file, back = tmp_path / f"m.{suffix}", tmp_path / "back"
    said = output(call("convert", folder, file))
    assert said.startswith("a fastText model of ") and ("relative squared error" in said) == (suffix == "ftz")
    model = firth.load(folder)
    word = model.vocabulary.tokens[3]
    theirs = fasttext.load_model(str(file)).get_word_vector(word)
    assert np.dot(theirs, model.vectors[word]) / np.linalg.norm(theirs) / np.linalg.norm(model.vectors[word]) > 0.99
    assert f"a model folder in {back}" in output(call("convert", file, back))
    output(call("verify", back))
    for path in (file, back):
        assert output(call("query", "neighbors", path, "kingish", "-k", "4"))
    output(call("convert", file, tmp_path / "v.vec"))
    assert len(firth.read_vectors(tmp_path / "v.vec")) == len(model.vocabulary)
    facts = json.loads(output(call("info", file, "--json")))
    assert facts["kind"] == "fastText model of words" and facts["words"] == model.words and facts["labels"] is None
    assert facts["rows"] == ("in codes" if suffix == "ftz" else "float32") and facts["options"]["model"] == "sg"


def test_a_file_of_zeros_is_told(call, folder, tmp_path, monkeypatch):
    assert "zeros" not in call("convert", folder, tmp_path / "m.bin").stderr
    monkeypatch.setattr("firth.model_files.MANY_ZEROS", 100_000)
    told = call("convert", folder, tmp_path / "m.bin").stderr
    used = len(firth.load(folder).subwords.bucket_ids)
    assert f"{80 * (20_000 - used) / 1e6:.0f} MB of {tmp_path / 'm.bin'} are zeros" in told
    assert f"each of buckets=20,000, and n-grams use {used:,}. Train with fewer buckets, or write a .ftz" in told
    assert call("convert", folder, tmp_path / "m.ftz").stderr == ""


def test_settings_of_quantising(call, folder, tmp_path):
    output(call("convert", folder, tmp_path / "whole.ftz"))
    output(call("convert", folder, tmp_path / "small.ftz", "--cutoff", "1500", "--norms"))
    assert (tmp_path / "small.ftz").stat().st_size < (tmp_path / "whole.ftz").stat().st_size
    facts = json.loads(output(call("info", tmp_path / "small.ftz", "--json")))
    assert facts["pruned"] and facts["words"] + facts["ngram_rows"] == 1500
    refused(call("convert", folder, tmp_path / "x.bin", "--norms"), "norms are for .ftz")
    refused(call("convert", folder, tmp_path / "x.vec", "--cutoff", "9"), "for fastText's models in .ftz")
    refused(call("convert", folder, tmp_path / "x.ftz", "--cutoff", "0"), "cutoff must be at least 1")
    refused(call("convert", folder, tmp_path / "x.bin", "--storage", "half"), "needs .safetensors")


def test_word2vec_binary_when_asked_for(call, folder, tmp_path):
    said = output(call("convert", folder, tmp_path / "v.bin", "--format", "word2vec-binary"))
    assert "vectors of 20" in said and len(firth.read_vectors(tmp_path / "v.bin")) == firth.load(folder).words


def test_files_of_fasttext_are_opened_as_they_are(call, fasttext_files, tmp_path, place):
    file = fasttext_files["skipgram"]
    assert output(call("query", "neighbors", file, "king", "unkingly", "-k", "3"))
    (tmp_path / "three.txt").write_text("the king\nthe queen\n🙂 naïve\n", encoding="utf-8")
    assert "3 rows" in output(call("embed", file, tmp_path / "three.txt", "-o", tmp_path / "rows.npy"))
    output(call("evaluate", file, "--analogies", place / "questions.txt"))
    facts = json.loads(output(call("info", fasttext_files["codes_pruned"], "--json")))
    assert facts["kind"] == "fastText classifier" and facts["labels"] == 4 and facts["pruned"]
    assert facts["first"][0].startswith("__label__")
    refused(call("convert", file, tmp_path / "x.doc"), "does not say its format")


def test_damaged_files_are_one_line(call, fasttext_files, tmp_path):
    (tmp_path / "cut.bin").write_bytes(fasttext_files["skipgram"].read_bytes()[:5000])
    for verb in (
        ["info"],
        ["query", "neighbors", "king"],
        ["convert", tmp_path / "x.vec"],
        ["embed", tmp_path / "cut.bin"],
    ):
        refused(call(verb[0], tmp_path / "cut.bin", *verb[1:]), "cut.bin", "cut or damaged")
    (tmp_path / "not.ftz").write_bytes(b"nothing")
    refused(call("embed", tmp_path / "not.ftz", tmp_path / "cut.bin"), "not.ftz is a file")
    refused(call("convert", tmp_path / "nowhere.bin", tmp_path / "x.vec"), "No file at")


def test_a_model_without_subwords_gives_no_ftz(call, model, tmp_path):
    refused(call("convert", model, tmp_path / "x.ftz"), "skipgram gives none")
