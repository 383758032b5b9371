"""Co-occurrence: the weights by distance, and the native counts against their NumPy twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firth
from firth.data import cooccurrence
from firth.data.cooccurrence import Cooccurrence
from firth.kernels import cooccur as kernel
from firth.kernels.predict import keep_thresholds


def make_tokens(seed: int, words: int = 30, tokens: int = 400, documents: int = 9) -> firth.Tokens:
    rng = np.random.default_rng(seed)
    ids = (rng.zipf(1.5, tokens) % words).astype(np.int32)
    cuts = np.sort(rng.integers(0, tokens + 1, documents - 1))  # some documents are empty
    starts = np.concatenate([[0], cuts, [tokens]]).astype(np.int64)
    counts = np.bincount(ids, minlength=words)
    return firth.Tokens(ids, starts, firth.Vocabulary([f"w{i}" for i in range(words)], counts), tokens)


def test_weights_by_hand():
    assert kernel.weights("flat", 3, 100).integers[1:].tolist() == [1, 1, 1]
    harmonic = kernel.weights("harmonic", 4, 100)
    assert (harmonic.scale, harmonic.integers[1:].tolist()) == (12, [12, 6, 4, 3])
    dynamic = kernel.weights("dynamic", 4, 100)
    assert (dynamic.integers[1:] / dynamic.scale).tolist() == [1, 0.75, 0.5, 0.25]


@pytest.mark.parametrize("window", [2, 10, 22, 23, 60, 256])
@pytest.mark.parametrize("tokens", [1000, 10**8, 10**11])
def test_harmonic_weights_are_accurate_and_cannot_overflow(window, tokens):
    integers, scale = kernel.weights("harmonic", window, tokens)
    np.testing.assert_allclose(
        integers[1:] / scale, 1 / np.arange(1, window + 1), rtol=1e-3 if tokens > 10**9 else 1e-6
    )
    assert 2 * int(integers[1:].sum()) * tokens < 2**63
    if window <= 10:
        assert scale == math.lcm(*range(1, window + 1))  # exact


@pytest.mark.parametrize("side", kernel.SIDES)
@pytest.mark.parametrize("weighting", kernel.WEIGHTINGS)
@pytest.mark.parametrize("window", [1, 4, 40])
@pytest.mark.parametrize("subsample", [0.0, 0.05])
def test_native_equals_twin(side, weighting, window, subsample):
    tokens = make_tokens(window)
    keep = keep_thresholds(tokens.vocabulary.counts, subsample) if subsample else None
    expected = kernel.count_twin(
        tokens.ids, tokens.starts, 30, kernel.weights(weighting, window, 400), side, keep, seed=1
    )
    counted = Cooccurrence.count(tokens, window=window, side=side, weighting=weighting, subsample=subsample)
    assert np.array_equal(counted.matrix.toarray(), expected)
    assert all(
        (np.diff(counted.indices[a:b]) > 0).all() for a, b in zip(counted.indptr, counted.indptr[1:], strict=False)
    )


@settings(deadline=None, max_examples=40)
@given(
    documents=st.lists(st.lists(st.integers(0, 70), max_size=12), min_size=1, max_size=8),
    window=st.integers(1, 5),
    shard=st.integers(1, 20),
    threads=st.integers(1, 4),
)
def test_counts_are_independent_of_shards_and_threads(documents, window, shard, threads):
    ids = np.array([id for document in documents for id in document], dtype=np.int32)
    starts = np.cumsum([0, *map(len, documents)])
    vocabulary = firth.Vocabulary([str(i) for i in range(71)], np.bincount(ids, minlength=71))
    tokens = firth.Tokens(ids, starts, vocabulary, len(ids))
    plan = cooccurrence.make_plan(tokens, 2 * window, firth.Run(threads=threads))
    results = []
    for variant in (plan, plan._replace(shard=shard, spare=1)):  # one shard; many shards with the smallest buffers
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cooccurrence, "make_plan", lambda *_, variant=variant: variant)
            results.append(Cooccurrence.count(tokens, window=window, run=firth.Run(threads=threads)))
    twin = kernel.count_twin(ids, starts, 71, kernel.weights("harmonic", window, len(ids)))
    for result in results:
        assert np.array_equal(result.matrix.toarray(), twin)
        assert result.fingerprint == results[0].fingerprint
