"""Counts, tf-idf and LSA on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

import firth
from firth.core.model import HasVectors

TEXTS = {"a": "the cat sat on the mat", "b": "the dog sat on the log", "c": "cats and dogs"}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in TEXTS.items()))
    return path


@pytest.fixture
def train(call, data, tmp_path):
    def trained(method, *options):
        result = call("train", method, data, "--key", "id", "-o", tmp_path / method, *options)
        assert result.exit_code == 0, result.output
        return tmp_path / method

    return trained


@pytest.mark.parametrize("method, options", [("counts", []), ("tfidf", ["--idf", "smooth"]), ("lsa", ["--dim", "2"])])
def test_neighbors_of_words(method, options, train, call):
    folder = train(method, *options)
    result = call("query", "neighbors", folder, "sat", "-k", "2", "--json")
    assert result.exit_code == 0, result.output
    model = firth.load(folder)
    assert isinstance(model, HasVectors)
    assert {hit.key for hit in model.tables["words"].neighbors("sat", 2)} == {"the", "on"}
    assert '"the"' in result.output and '"on"' in result.output
    assert model.tables["documents"].keys == list(TEXTS)
    fields = json.loads(call("info", folder, "--json").output)
    assert fields["tables"]["documents"]["rows"] == 3 and fields["tables"]["words"]["rows"] == 10


def test_a_cluster_gives_the_same_model(call, data, tmp_path, monkeypatch):
    monkeypatch.setattr("firth.data.corpus_shards.LEAST_BYTES", 40)
    for name, flags in (("one", []), ("two", ["--cluster", "processes", "--workers", "2"])):
        monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / f"cache-{name}"))
        result = call("train", "tfidf", data, "--key", "id", "-o", tmp_path / name, *flags)
        assert result.exit_code == 0, result.output
    one, two = ((tmp_path / name / "vectors.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two and firth.load(tmp_path / "two", firth.TfIdf).tables["documents"].keys == list(TEXTS)


def test_workers_train_word_vectors(call, tmp_path, monkeypatch):
    """In local processes; the number of workers is recorded with the model."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("the cat sat on the mat\nthe dog sat on the cat\n" * 100)
    command = ["train", "skipgram", tmp_path / "text.txt", "-o", tmp_path / "model", "--dim", 8, "--epochs", 1]
    result = call(*command, "--workers", 2, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["workers"] == 2


def test_a_cluster_is_refused_by_a_method_that_does_not_use_it(refused, data, tmp_path):
    command = ["train", "fasttext_classifier", data, "-o", tmp_path / "model"]
    refused("unsupported_cluster", *command, "--cluster", "ray", cluster="ray", method="FastTextClassifier")


def test_sparse_rows_go_to_npz(train, call, data, tmp_path):
    folder, rows = train("tfidf"), tmp_path / "rows.npz"
    result = call("embed", folder, data, "--key", "id", "-o", rows)
    assert result.exit_code == 0 and "3 rows" in result.output
    model = firth.load(folder, firth.TfIdf)
    np.testing.assert_array_equal(sparse.load_npz(rows).toarray(), model.matrix.toarray())
    dense = tmp_path / "rows.npy"
    assert call("embed", folder, data, "--key", "id", "-o", dense).exit_code == 0
    np.testing.assert_array_equal(np.load(dense), model.matrix.toarray())


def test_errors(refused, train, data, tmp_path):
    lsa, tfidf = train("lsa", "--dim", "2"), train("tfidf")
    refused("unsupported_model", "embed", lsa, data, "-o", tmp_path / "rows.npz", path=lsa, method="lsa")
    for output in ("rows.npz", "rows.npy"):
        smoothing = ("--smoothing", "0.001", "-o", tmp_path / output)
        refused("unsupported_model", "embed", tfidf, data, *smoothing, path=tfidf, method="tfidf")
        assert not (tmp_path / output).exists()


def test_plot_heatmap_and_variance(refused, train, call, tmp_path):
    for method, rows, options in [("tfidf", ["a", "c"], []), ("pmi", ["cat", "sat"], ["--min-count", "1"])]:
        done = call("plot", "heatmap", train(method, *options), *rows, "-o", tmp_path / "block.png")
        assert done.exit_code == 0, done.output
        assert (tmp_path / "block.png").read_bytes()[:4] == b"\x89PNG"
    counts = call("plot", "heatmap", tmp_path / "pmi", "cat", "--counts", "-o", tmp_path / "counts.svg")
    assert counts.exit_code == 0 and "Counts of 1 rows" in (tmp_path / "counts.svg").read_text()
    output = ("-o", tmp_path / "no.png")
    refused("unsupported_model", "plot", "heatmap", tmp_path / "tfidf", "--counts", *output, method="tfidf")
    lsa = train("lsa", "--dim", "2")
    assert call("plot", "variance", lsa, "-o", tmp_path / "curve.svg").exit_code == 0
    refused("unsupported_model", "plot", "heatmap", lsa, *output, method="lsa")
    refused("unknown_key", "plot", "heatmap", tmp_path / "tfidf", "zzz", *output, unknown="zzz")
    assert not (tmp_path / "no.png").exists()
