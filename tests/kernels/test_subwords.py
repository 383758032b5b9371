"""N-grams and their hash: the native function against plain Python, and both against fastText."""

from __future__ import annotations

from pathlib import Path

import fasttext
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firth.kernels.subwords import ngram_hash, ngrams, ngrams_of, word_hashes

WORDS = [
    "where",
    "a",
    "",
    "</s>",
    "naïve",
    "日本語",
    "🙂",
    "👨‍👩‍👧",
    "e\u0301t\u0301",
    "straße",
    "<",
    ">",
    "<>",
    "x" * 300,
]


def test_example_of_the_paper():
    """Bojanowski et al. 2017, section 3.2: the 3-grams of where."""
    assert ngrams_of("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]


@given(
    words=st.lists(st.text(max_size=20)), minn=st.integers(0, 5), maxn=st.integers(0, 7), buckets=st.integers(1, 9999)
)
def test_native_equals_twin(words, minn, maxn, buckets):
    words = [word.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for word in words]
    starts, rows = ngrams(words, minn, maxn, buckets)
    for word, begin, end in zip(words, starts[:-1], starts[1:], strict=True):
        expected = [ngram_hash(ngram) % buckets for ngram in ngrams_of(word, minn, maxn)]
        assert rows[begin:end].tolist() == expected


@given(words=st.lists(st.binary(max_size=12)))
def test_any_bytes_have_ngrams_and_a_hash(words):
    starts, rows = ngrams(words, 1, 4, 17)
    assert len(starts) == len(words) + 1 and (rows < 17).all()
    assert word_hashes(words).tolist() == [ngram_hash(word) for word in words]


@pytest.mark.parametrize(("minn", "maxn"), [(3, 6), (1, 2), (0, 3), (2, 2)])
def test_rows_equal_fasttext(tmp_path: Path, minn: int, maxn: int):
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six " * 20, encoding="utf-8")
    buckets = 10_007
    model = fasttext.train_unsupervised(  # 12 threads: with fewer, part of its table stays uninitialized
        str(text), dim=4, minCount=1, epoch=1, bucket=buckets, minn=minn, maxn=maxn, verbose=0, thread=12
    )
    vocabulary = model.get_words()
    words = [*filter(None, WORDS), "three"]
    starts, rows = ngrams(words, minn, maxn, buckets)
    for word, begin, end in zip(words, starts[:-1], starts[1:], strict=True):
        pieces, ids = model.get_subwords(word)
        own = int(word in vocabulary)  # fastText puts the word itself first
        assert pieces[own:] == ngrams_of(word, minn, maxn)
        assert (np.array(ids[own:], dtype=np.int64) - len(vocabulary)).tolist() == rows[begin:end].tolist()


def test_no_ngrams_for_maxn_zero_or_short_words():
    assert len(ngrams(["word"], 3, 0, 0).rows) == 0
    assert len(ngrams(["a"], 4, 6, 10).rows) == 0 and len(ngrams([], 3, 6, 10).rows) == 0
    with pytest.raises(ValueError, match="at least one bucket"):
        ngrams(["word"], 3, 6, 0)
