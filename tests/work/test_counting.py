"""Counting on a Ray cluster, whose nodes come and go: the same bytes as in one process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from losing import Losing

from firth.core.report import Nothing
from firth.core.run import Run
from firth.data import cache, corpus_shards, shard_pairs
from firth.data.cooccurrence import Cooccurrence
from firth.data.corpus import Corpus
from firth.data.shard_jobs import same_workers
from firth.data.subwords import BPE
from firth.data.tokens import read_tokens
from firth.documents import shard_rows
from firth.documents.document_matrix import weighted_rows
from firth.documents.tfidf import TfIdf

ONE = Run(report=Nothing())


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Iterator[Corpus]:
    monkeypatch.setattr(corpus_shards, "LEAST_BYTES", 2000)
    monkeypatch.setattr(shard_pairs, "LEAST_TOKENS", 500)
    monkeypatch.setattr(shard_rows, "LEAST_TOKENS", 500)
    rng = random.Random(2)
    lines = [" ".join(f"w{int(rng.paretovariate(1))}" for _ in range(10)) for _ in range(300)]
    Path(tmp_path, "text.txt").write_text("\n".join(lines))
    yield Corpus(tmp_path / "text.txt")


def test_counting_survives_the_loss_of_a_node(ray_cluster, corpus, tmp_path, monkeypatch):
    found = {}
    for name, run in (("one", ONE), ("ray", Run(cluster="ray", report=Losing(ray_cluster)))):
        monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / name))
        with same_workers(run):
            tokens = read_tokens(corpus, min_count=2, phrases=1, run=run)
            pairs = Cooccurrence.count(tokens, run=run)
            lengths = np.diff(tokens.starts).astype(np.float64)
            rows, _ = weighted_rows(tokens, lengths, TfIdf().weights(), run)
            tokenizer = BPE(size=300).train(corpus, run)
        [entry] = (tmp_path / name).glob(f"*/{cache.ENTRY}")
        arrays = [array.tobytes() for array in (pairs.indptr, pairs.indices, pairs.weights, *rows)]
        files = {path.name: path.read_bytes() for path in entry.parent.iterdir()}
        found[name] = [files, arrays, tokenizer.to_json()]
    assert found["ray"] == found["one"] and len(corpus_shards.shards_of(corpus)) > 4
