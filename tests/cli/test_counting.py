"""Counts, tf-idf and LSA from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

import firth

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
def test_words_have_neighbours(method, options, train, call):
    folder = train(method, *options)
    found = call("query", "neighbors", folder, "sat", "-k", "2", "--json")
    assert found.exit_code == 0, found.output
    assert {hit.key for hit in firth.load(folder).words.neighbors("sat", 2)} == {"the", "on"}
    assert '"the"' in found.output and '"on"' in found.output
    assert firth.load(folder).documents.keys == list(TEXTS)
    facts = json.loads(call("info", folder, "--json").output)
    assert facts["tables"]["documents"]["rows"] == 3 and facts["tables"]["words"]["rows"] == 10


def test_sparse_rows_go_to_npz(train, call, data, tmp_path):
    folder, rows = train("tfidf"), tmp_path / "rows.npz"
    result = call("embed", folder, data, "--key", "id", "-o", rows)
    assert result.exit_code == 0 and "3 rows" in result.output
    model = firth.load(folder)
    np.testing.assert_array_equal(sparse.load_npz(rows).toarray(), model.matrix.toarray())
    dense = tmp_path / "rows.npy"
    assert call("embed", folder, data, "--key", "id", "-o", dense).exit_code == 0
    np.testing.assert_array_equal(np.load(dense), model.matrix.toarray())


def test_what_is_refused(train, call, data, tmp_path):
    lsa, tfidf = train("lsa", "--dim", "2"), train("tfidf")
    found = call("embed", lsa, data, "-o", tmp_path / "rows.npz")
    assert found.exit_code != 0 and not (tmp_path / "rows.npz").exists()
    assert "gives no sparse rows (lsa); choose .npy" in found.output + str(found.exception)
    for output in ("rows.npz", "rows.npy"):
        found = call("embed", tfidf, data, "--smoothing", "0.001", "-o", tmp_path / output)
        assert found.exit_code != 0 and "does not average any" in found.output + str(found.exception)


def test_pictures_of_matrices(train, call, tmp_path):
    for method, rows, options in [("tfidf", ["a", "c"], []), ("pmi", ["cat", "sat"], ["--min-count", "1"])]:
        done = call("plot", "heatmap", train(method, *options), *rows, "-o", tmp_path / "block.png")
        assert done.exit_code == 0, done.output
        assert (tmp_path / "block.png").read_bytes()[:4] == b"\x89PNG"
    met = call("plot", "heatmap", tmp_path / "pmi", "cat", "--counts", "-o", tmp_path / "counts.svg")
    assert met.exit_code == 0 and "Counts of 1 rows" in (tmp_path / "counts.svg").read_text()
    none = call("plot", "heatmap", tmp_path / "tfidf", "--counts", "-o", tmp_path / "no.png")
    assert none.exit_code == 1 and "no counts of words that met (tfidf)" in none.output
    lsa = train("lsa", "--dim", "2")
    assert call("plot", "variance", lsa, "-o", tmp_path / "curve.svg").exit_code == 0
    refused = call("plot", "heatmap", lsa, "-o", tmp_path / "no.png")
    assert refused.exit_code == 1 and "keeps no matrix" in refused.output
    missing = call("plot", "heatmap", tmp_path / "tfidf", "zzz", "-o", tmp_path / "no.png")
    assert missing.exit_code == 1 and "no row 'zzz'" in missing.output
    assert not (tmp_path / "no.png").exists()
