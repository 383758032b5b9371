"""PMI and its variants: a worked example, and properties that hold for any counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from firth.words import association_measures as associations
from firth.words.association_measures import VARIANTS, association_matrix, drop_rare_pairs, marginal_counts, pair_scores

# Co-occurrence counts, words (rows) by contexts:
#            hell  the  world | n(w)
# heaven       6    2      0  |   8
# hell         0    8      0  |   8
# the          2   38      8  |  48
# n(c)         8   48      8  |  64
COUNTS = csr_matrix([[6.0, 2, 0], [0, 8, 0], [2, 38, 8]])


def test_worked_example():
    sums = marginal_counts(COUNTS)
    assert (sums.words.tolist(), sums.contexts.tolist(), sums.total) == ([8, 8, 48], [8, 48, 8], 64)
    pmi = association_matrix(COUNTS, sums, "pmi").toarray()
    # heaven, hell: log₂ (6/64) / (8/64 · 8/64) = log₂ 6 = 2.585; heaven, the: log₂ (2/64) / (8/64 · 48/64) = log₂ 1/3
    np.testing.assert_allclose(pmi[0], [np.log2(6), np.log2(1 / 3), 0], rtol=1e-6)
    # the, world: log₂ (8/64) / (48/64 · 8/64) = log₂ 4/3
    assert pmi[2, 2] == pytest.approx(np.log2(4 / 3))
    ppmi = association_matrix(COUNTS, sums, "ppmi")
    np.testing.assert_allclose(ppmi.toarray()[0], [np.log2(6), 0, 0], rtol=1e-6)
    assert ppmi.nnz == 4  # entries that are not positive are not stored
    npmi = association_matrix(COUNTS, sums, "npmi").toarray()
    # −log₂ 6/64 = 3.415: NPMI of heaven, hell = 2.585 / 3.415 = 0.757
    assert npmi[0, 0] == pytest.approx(np.log2(6) / np.log2(64 / 6))
    shifted = association_matrix(COUNTS, sums, "shifted", shift=2).toarray()
    np.testing.assert_allclose(shifted[0], [np.log2(6) - 1, 0, 0], rtol=1e-6)
    # smoothing 0.5: p(hell) = √8 / (√8 + √48 + √8)
    smooth = association_matrix(COUNTS, sums, "pmi", smoothing=0.5).toarray()
    share = np.sqrt(8) / (2 * np.sqrt(8) + np.sqrt(48))
    assert smooth[0, 0] == pytest.approx(np.log2(6 / 64 / (8 / 64 * share)))


def test_npmi_of_inseparable_pairs_is_one():
    together = csr_matrix([[0, 7.0, 0, 0], [7.0, 0, 0, 0], [0, 0, 3.0, 1.0], [0, 0, 1.0, 1 / 3]])
    npmi = association_matrix(together, marginal_counts(together), "npmi").toarray()
    assert npmi[0, 1] == npmi[1, 0] == 1.0
    only = csr_matrix([[0, 5.0], [0, 0]])
    assert (
        association_matrix(only, marginal_counts(only), "npmi")[0, 1] == 1.0
    )  # one pair and nothing else: 0/0 by the formula
    assert association_matrix(only, marginal_counts(only), "pmi")[0, 1] == 0.0


weights = arrays(np.float64, (5, 5), elements=st.sampled_from([0, 0, 0, 1, 2, 1 / 3, 7.5, 1e6]))


@settings(deadline=None, max_examples=150)
@given(weights, st.sampled_from([0.0, 0.75, 1.0]), st.integers(1, 9))
def test_properties_of_all_variants(dense, smoothing, chunk):
    counts = csr_matrix(dense + dense.T)  # as symmetric windows give
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(associations, "CHUNK", chunk)
        sums = marginal_counts(counts)
        matrices = {v: association_matrix(counts, sums, v, smoothing, 5).toarray() for v in VARIANTS}
        plain = association_matrix(counts, sums, "pmi", 1.0).toarray()
    np.testing.assert_allclose(sums.words, counts.toarray().sum(axis=1))
    assert all(np.isfinite(matrix).all() for matrix in matrices.values())
    assert (matrices["ppmi"] >= 0).all() and (matrices["shifted"] >= 0).all()
    assert (np.abs(matrices["npmi"]) <= 1).all()
    assert (matrices["shifted"] <= matrices["ppmi"]).all()
    np.testing.assert_allclose(plain, plain.T, atol=1e-5)
    np.testing.assert_allclose(matrices["npmi"], matrices["npmi"].T, atol=1e-6)
    np.testing.assert_allclose(matrices["ppmi"], np.maximum(matrices["pmi"], 0))
    assert (np.sign(matrices["npmi"]) == np.sign(np.where(np.abs(plain) < 1e-6, matrices["npmi"], plain))).all()
    if counts.nnz:
        expected = np.log2(counts.data * sums.total / (sums.words[counts.nonzero()[0]] * sums.contexts[counts.indices]))
        np.testing.assert_allclose(plain[counts.nonzero()], expected, atol=1e-5)


def test_pair_scores_equal_the_matrix():
    sums = marginal_counts(COUNTS)
    row, column = COUNTS.nonzero()
    scores = pair_scores(COUNTS.data, sums.words[row], sums.contexts[column], sums.total)
    np.testing.assert_allclose(scores.pmi, association_matrix(COUNTS, sums, "pmi").data, rtol=1e-6)
    np.testing.assert_allclose(scores.npmi, association_matrix(COUNTS, sums, "npmi").data, rtol=1e-6)


def test_rare_pairs_are_dropped():
    assert drop_rare_pairs(COUNTS, 6).toarray().tolist() == [[6, 0, 0], [0, 8, 0], [0, 38, 8]]
    assert drop_rare_pairs(COUNTS, 1) is COUNTS
