"""Count matrices, tf-idf and LSA on a cluster: the same bytes as in one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firth
from firth.core.report import Nothing
from firth.data import corpus_shards
from firth.documents import shard_rows
from firth.training import sparse_products, truncated_svd

ONE = firth.Run(report=Nothing())
TWO = firth.Run(cluster="processes", workers=2, report=Nothing())
METHODS = [
    firth.Counts(tf="log"),
    firth.TfIdf(min_count=2),
    firth.TfIdf(tf="bm25", idf="bm25", norm="none"),
    firth.TfIdf(tf="sublinear", idf="smooth"),
]


@pytest.fixture
def path(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus_shards, "LEAST_BYTES", 3000)
    monkeypatch.setattr(shard_rows, "LEAST_TOKENS", 500)
    monkeypatch.setattr(sparse_products, "LEAST_ENTRIES", 700)
    rng = np.random.default_rng(3)
    lines = [" ".join(f"w{word}" for word in rng.zipf(1.4, rng.integers(0, 25)) % 300) for _ in range(200)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return Path(tmp_path, "text.txt")


def saved(method: firth.Method, path: Path, folder: Path, run: firth.Run) -> dict[str, bytes]:
    """The arrays and documents of the saved model, without speed and time."""
    model = method.fit(firth.Corpus(path), run)
    model.save(folder)
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.suffix == ".safetensors"}


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_weights_are_the_same(path, tmp_path, method):
    one, two = (saved(method, path, tmp_path / name, run) for name, run in (("one", ONE), ("two", TWO)))
    assert one == two and len(one["vectors.safetensors"]) > 10_000


@pytest.mark.parametrize("turned", [False, True])
def test_lsa_is_the_same(path, tmp_path, monkeypatch, turned):
    """The solver for large matrices, with more words than documents and fewer."""
    monkeypatch.setattr(truncated_svd, "MAX_EXACT_CELLS", 0)
    method = firth.LSA(dim=6, oversample=4, min_count=1 if turned else 6)
    one, two = (saved(method, path, tmp_path / name, run) for name, run in (("one", ONE), ("two", TWO)))
    assert one == two
