"""Word pairs on a cluster: the same bytes as in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from firth.core.report import Nothing
from firth.core.run import Run
from firth.data import cache, shard_pairs
from firth.data.cooccurrence import Cooccurrence
from firth.data.corpus import Corpus
from firth.data.tokens import Tokens, read_tokens

TWO = Run(seed=5, cluster="processes", workers=2, report=Nothing())


@pytest.fixture
def tokens(monkeypatch, tmp_path) -> Tokens:
    """Tokens in the cache, of documents that are shorter and longer than a shard."""
    monkeypatch.setattr(shard_pairs, "LEAST_TOKENS", 700)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(4)
    lengths = [3, 0, 900, 40, 1, 2100, 7, 300]
    lines = [" ".join(f"w{word}" for word in rng.zipf(1.5, length) % 90) for length in lengths]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return read_tokens(Corpus(tmp_path / "text.txt"), min_count=2, run=Run(report=Nothing()))


def arrays(pairs: Cooccurrence) -> list[bytes]:
    return [array.tobytes() for array in (pairs.indptr, pairs.indices, pairs.weights)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"side": "left", "window": 3, "weighting": "dynamic"},
        {"side": "right", "weighting": "flat", "window": 30},
        {"subsample": 0.01},
    ],
    ids=str,
)
def test_pairs_are_the_same(tokens, settings: dict[str, Any]):
    one = Cooccurrence.count(tokens, run=Run(seed=5, report=Nothing()), **settings)
    two = Cooccurrence.count(tokens, run=TWO, **settings)
    assert arrays(two) == arrays(one) and len(one) > 200
    assert not list(cache.cache_folder().glob(f"{cache.JOB}*"))


def test_tokens_outside_of_the_cache(tokens):
    """They are written to the folder of the job."""
    copy = Tokens(np.array(tokens.ids), np.array(tokens.starts), tokens.vocabulary, tokens.raw_tokens)
    got = Cooccurrence.count(copy, run=TWO)
    assert arrays(got) == arrays(Cooccurrence.count(tokens, run=Run(report=Nothing())))


def test_an_interrupted_merge_continues(tokens, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(shard_pairs, "merge_runs", None)
        with pytest.raises(TypeError):
            Cooccurrence.count(tokens, run=TWO)
    [folder] = cache.cache_folder().glob(f"{cache.JOB}*")
    assert len(list(folder.glob("*.pairs"))) == 5
    monkeypatch.setattr("firth.work.job.compute", None)  # all shards are finished
    got = Cooccurrence.count(tokens, run=TWO)
    assert arrays(got) == arrays(Cooccurrence.count(tokens, run=Run(report=Nothing())))
