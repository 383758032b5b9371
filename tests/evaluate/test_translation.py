"""ROUGE by hand; BLEU is computed by sacrebleu."""

from __future__ import annotations

import pytest
from refusing import refuses

from firth.evaluate.translation import bleu, longest_common, rouge


def test_rouge_by_hand():
    """The example of Lin (2004), section 3.1, with the reference "police killed the gunman".

    "police kill the gunman" shares police, the, gunman (3 of 4 words), one bigram of 3 (the gunman), and the
    subsequence police the gunman. "the gunman kill police" shares the same words, but only two in order.
    """
    right = ["police killed the gunman"]
    assert rouge(["police kill the gunman"], right) == pytest.approx((75, 100 / 3, 75))
    assert rouge(["the gunman kill police"], right) == pytest.approx((75, 100 / 3, 50))
    assert rouge(["Police killed"], right) == pytest.approx((100 * 4 / 6, 50, 100 * 4 / 6))


def test_rouge_counts_repeated_words():
    assert rouge(["the the the"], ["the cat"]).one == pytest.approx(100 * 2 * 1 / 5)
    assert rouge(["a b"], ["c d"]) == (0, 0, 0)
    assert rouge([""], ["a"]) == (0, 0, 0) and rouge(["", "a"], ["a", "a"]).one == 50
    assert rouge([], []) == (0, 0, 0)


def test_longest_common_subsequence():
    assert longest_common("ABCBDAB", "BDCABA") == 4  # BCBA, the textbook's
    assert longest_common("", "A") == 0


def test_bleu():
    right = ["a b c d e", "f g h i"]
    assert bleu(right, right) == pytest.approx(100)
    # 4 of 5, 3 of 4, 2 of 3 and 1 of 2 n-grams match; the lengths are equal, so there is no brevity penalty
    assert bleu(["a b c d x"], ["a b c d e"]) == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    with refuses("shape_mismatch", n_texts=2, n_references=1):
        bleu(["a", "b"], ["a"])
