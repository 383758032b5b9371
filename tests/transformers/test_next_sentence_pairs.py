"""Pairs of sentences by construction: B follows A in its document, or comes from another one; packing loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

from firth.data.sentences import Sentences
from firth.transformers.next_sentence_pairs import ALONE, FOLLOWS, FOREIGN, make_pairs, segments_of, short_sentences
from firth.transformers.packing import batch_ends


def sentences(seed: int, documents: int, longest: int = 30, most: int = 12) -> Sentences:
    """A text in which every token is another one: its place."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, most, documents)
    lengths = random.integers(1, longest, counts.sum(), endpoint=True)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Sentences(np.arange(starts[-1], dtype=np.int32), starts, np.concatenate([[0], np.cumsum(counts)]))


def document_of(text: Sentences, position: np.ndarray) -> np.ndarray:
    return np.searchsorted(text.starts[text.documents], position, side="right") - 1


@pytest.mark.parametrize("documents", [2, 3, 40, 400])
@pytest.mark.parametrize("max_tokens", [5, 29, 125])
def test_b_follows_a_or_comes_from_another_document(documents, max_tokens):
    whole = sentences(documents, documents)
    text, _ = short_sentences(whole, max(1, max_tokens // 2))
    pairs = make_pairs(text, max_tokens, np.random.default_rng(0))
    begin, length, label = pairs
    assert (length[:, 0] >= 1).all() and (length.sum(axis=1) <= max_tokens).all()
    real = length[:, 1] > 0
    assert ((label == ALONE) == ~real).all()
    a, b = document_of(text, begin[:, 0]), document_of(text, begin[:, 1])
    follows, foreign = label == FOLLOWS, label == FOREIGN
    np.testing.assert_array_equal(begin[follows, 0] + length[follows, 0], begin[follows, 1])
    for side in (0, 1):  # neither reaches over a document's end
        ends = text.starts[text.documents][document_of(text, begin[real, side]) + 1]
        assert (begin[real, side] + length[real, side] <= ends).all()
    assert (a[follows] == b[follows]).all() and (a[foreign] != b[foreign]).all()
    if documents >= 40:
        assert 0.4 < foreign.mean() < 0.6 and real.mean() > 0.95
    # B begins where a sentence does, but in stretches of a single one.
    at_start = np.isin(begin[real, 1], text.starts)
    assert at_start.mean() > 0.5 or max_tokens < 10


def test_lengths_do_not_tell_the_answer():
    """Given the length of A, a B that follows is as long as one that does not."""
    text, _ = short_sentences(sentences(1, 2000), 31)
    begin, length, label = make_pairs(text, 62, np.random.default_rng(3))
    for low, high in ((1, 15), (15, 30), (30, 45)):
        here = (length[:, 0] >= low) & (length[:, 0] < high)
        means = [length[here & (label == kind), 1].mean() for kind in (FOLLOWS, FOREIGN)]
        assert abs(means[0] - means[1]) < 2.5
    assert begin.shape == length.shape


def test_every_token_is_used_once_and_cuts_move():
    text, _ = short_sentences(sentences(2, 50), 31)
    one, two = (segments_of(text, 62, np.random.default_rng(seed)) for seed in (1, 2))
    for segments in (one, two):
        assert segments[0, 0] == 0 and segments[-1, 1] == len(text.starts) - 1
        np.testing.assert_array_equal(segments[1:, 0], segments[:-1, 1])
    assert one.tolist() != two.tolist()
    alone = make_pairs(text, 62, np.random.default_rng(1), next_sentence=False)
    assert alone.length[:, 0].sum() == text.starts[-1] and not alone.length[:, 1].any()
    assert (alone.label == ALONE).all()
    pairs = make_pairs(text, 62, np.random.default_rng(1))
    covered = np.zeros(text.starts[-1], bool)
    for side in (0, 1):
        for begin, length in zip(pairs.begin[:, side], pairs.length[:, side], strict=True):
            covered[begin : begin + length] = True
    assert covered.mean() > 0.95  # a B that nobody took is missing


def test_long_sentences_are_cut_into_parts_and_counted():
    text = Sentences(np.arange(25, dtype=np.int32), np.array([0, 4, 20, 25]), np.array([0, 2, 3]))
    cut, count = short_sentences(text, 5)
    assert cut.starts.tolist() == [0, 4, 9, 14, 19, 20, 25] and cut.documents.tolist() == [0, 5, 6] and count == 1


def test_documents_of_one_sentence_are_cut_within_it_and_of_one_token_take_a_stranger():
    text = Sentences(np.arange(41, dtype=np.int32), np.array([0, 10, 20, 30, 40, 41]), np.arange(6))
    seen = set()
    for seed in range(20):
        begin, length, label = make_pairs(text, 30, np.random.default_rng(seed))
        assert (label[:4] != ALONE).all() and (length[:, 0] >= 1).all()
        follows = label == FOLLOWS
        np.testing.assert_array_equal(begin[follows].sum(1) * 0 + length[follows].sum(1), 10)
        assert not follows[4]
        seen.add(int(label[4]))
    assert FOREIGN in seen  # ALONE where nobody has a B to give


def test_one_document_has_no_stranger():
    text = Sentences(np.arange(100, dtype=np.int32), np.arange(0, 101, 10), np.array([0, 10]))
    pairs = make_pairs(text, 40, np.random.default_rng(0))
    assert (pairs.label == FOLLOWS).all()


def test_batches_take_what_fits():
    tokens = np.random.default_rng(0).integers(4, 64, 500)
    ends = batch_ends(tokens, 300, 12)
    sums = [tokens[begin:end].sum() for begin, end in zip([0, *ends], ends, strict=False)]
    counts = np.diff([0, *ends])
    assert ends[-1] == 500 and max(sums) <= 300 and max(counts) <= 12
    full = [
        total + tokens[end] > 300 or count == 12
        for total, end, count in zip(sums[:-1], ends[:-1], counts[:-1], strict=True)
    ]
    assert all(full)
