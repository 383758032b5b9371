"""FastText models and files of fastText on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import fasttext
import numpy as np
import pytest
from click.testing import Result

import firth


def output(result: Result) -> str:
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


@pytest.fixture(scope="module")
def folder(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("fasttext") / "model"
    method = firth.FastText(dim=20, epochs=3, buckets=20_000)
    method.fit(firth.Corpus(place / "world.txt")).save(target)
    return target


def test_train_query_and_embed(call, text, tmp_path):
    options = ["--dim", "12", "--epochs", "1", "--buckets", "9000", "--objective", "cbow", "--minn", "2"]
    assert "Next: firth query neighbors" in output(call("train", "fasttext", text, "-o", tmp_path / "m", *options))
    assert "kingish" in output(call("query", "neighbors", tmp_path / "m", "kingish", "-k", "3", "--json"))
    output(call("query", "similarity", tmp_path / "m", "kingish", "king"))
    (tmp_path / "t.txt").write_text("the kingish one\n")
    row = json.loads(output(call("embed", tmp_path / "m", tmp_path / "t.txt", "--smoothing", "0.001")))
    assert row["unknown"] == 0 and len(row["vector"]) == 12


@pytest.mark.parametrize("suffix", ["bin", "ftz"])
def test_convert_to_a_file_and_back(call, folder, tmp_path, suffix):
    file, back = tmp_path / f"m.{suffix}", tmp_path / "back"
    printed = output(call("convert", folder, file))
    assert printed.startswith("a fastText model of ") and ("relative squared error" in printed) == (suffix == "ftz")
    model = firth.load(folder, firth.FastText)
    word = model.vocabulary.tokens[3]
    theirs = fasttext.load_model(str(file)).get_word_vector(word)
    assert np.dot(theirs, model.vectors[word]) / np.linalg.norm(theirs) / np.linalg.norm(model.vectors[word]) > 0.99
    assert f"a model folder in {back}" in output(call("convert", file, back))
    output(call("verify", back))
    for path in (file, back):
        assert output(call("query", "neighbors", path, "kingish", "-k", "4"))
    output(call("convert", file, tmp_path / "v.vec"))
    assert len(firth.read_vectors(tmp_path / "v.vec")) == len(model.vocabulary)
    fields = json.loads(output(call("info", file, "--json")))
    assert fields["kind"] == "fastText word model" and fields["words"] == model.n_words and fields["labels"] is None
    assert fields["rows"] == ("quantized" if suffix == "ftz" else "float32") and fields["options"]["model"] == "sg"


def test_a_file_of_zeros_is_noted(call, folder, tmp_path, monkeypatch):
    assert "zeros" not in call("convert", folder, tmp_path / "m.bin").stderr
    monkeypatch.setattr("firth.model_files.MANY_ZEROS", 100_000)
    printed = call("convert", folder, tmp_path / "m.bin").stderr
    bucket_ids = firth.load(folder, firth.FastText).subwords.bucket_ids
    assert bucket_ids is not None
    used = len(bucket_ids)
    assert printed.startswith(f"note: {80 * (20_000 - used) / 1e6:.0f} MB of {tmp_path / 'm.bin'} ")
    assert f"{used:,}" in printed and "20,000" in printed
    assert call("convert", folder, tmp_path / "m.ftz").stderr == ""


def test_quantization_options(call, refused, folder, tmp_path):
    output(call("convert", folder, tmp_path / "whole.ftz"))
    output(call("convert", folder, tmp_path / "small.ftz", "--cutoff", "1500", "--norms"))
    assert (tmp_path / "small.ftz").stat().st_size < (tmp_path / "whole.ftz").stat().st_size
    fields = json.loads(output(call("info", tmp_path / "small.ftz", "--json")))
    assert fields["pruned"] and fields["words"] + fields["ngram_rows"] == 1500
    refused("conflicting_options", "convert", folder, tmp_path / "x.bin", "--norms")
    refused("conflicting_options", "convert", folder, tmp_path / "x.vec", "--cutoff", "9")
    refused("invalid_value", "convert", folder, tmp_path / "x.ftz", "--cutoff", "0", got=0)
    refused("conflicting_options", "convert", folder, tmp_path / "x.bin", "--dtype", "float16", dtype="float16")


def test_word2vec_binary_format(call, folder, tmp_path):
    printed = output(call("convert", folder, tmp_path / "v.bin", "--format", "word2vec-binary"))
    assert (
        "vectors of 20" in printed
        and len(firth.read_vectors(tmp_path / "v.bin")) == firth.load(folder, firth.FastText).n_words
    )


def test_files_of_fasttext(call, refused, fasttext_files, tmp_path, place):
    file = fasttext_files["skipgram"]
    assert output(call("query", "neighbors", file, "king", "unkingly", "-k", "3"))
    (tmp_path / "three.txt").write_text("the king\nthe queen\n🙂 naïve\n", encoding="utf-8")
    assert "3 rows" in output(call("embed", file, tmp_path / "three.txt", "-o", tmp_path / "rows.npy"))
    output(call("evaluate", "analogies", file, place / "questions.txt"))
    fields = json.loads(output(call("info", fasttext_files["codes_pruned"], "--json")))
    assert fields["kind"] == "fastText classifier" and fields["labels"] == 4 and fields["pruned"]
    assert fields["first"][0].startswith("__label__")
    refused("unknown_format", "convert", file, tmp_path / "x.doc", name="x.doc")


def test_damaged_files(refused, fasttext_files, tmp_path):
    cut = tmp_path / "cut.bin"
    cut.write_bytes(fasttext_files["skipgram"].read_bytes()[:5000])
    for command in (
        ("info", cut),
        ("query", "neighbors", cut, "king"),
        ("convert", cut, tmp_path / "x.vec"),
        ("embed", cut, cut, "-o", tmp_path / "x.npy"),
    ):
        refused("damaged_file", *command, path=cut)
    (tmp_path / "not.ftz").write_bytes(b"nothing")
    refused("wrong_input", "embed", tmp_path / "not.ftz", cut, "-o", tmp_path / "x.npy", path=tmp_path / "not.ftz")
    refused("not_found", "convert", tmp_path / "nowhere.bin", tmp_path / "x.vec", path=tmp_path / "nowhere.bin")


def test_a_model_without_subwords_cannot_become_ftz(refused, model, tmp_path):
    refused("unsupported_model", "convert", model, tmp_path / "x.ftz")
