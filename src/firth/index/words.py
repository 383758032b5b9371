"""Word search with an inverted index and BM25 (Robertson & Zaragoza 2009, eq. 3.15):

    Σ  ln(1 + (n − df + ½)/(df + ½)) · tf (k₁ + 1) / (tf + k₁ (1 − b + b · length/average))

The sum is over the words of the query, for n rows of which df contain the word, tf times in this row. The 1 + … in the
logarithm follows Lucene.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from firth.kernels.text import tokenize

K1, B = 1.2, 0.75


class Postings(NamedTuple):
    """An inverted index. The rows and counts of word w are at starts[w] to starts[w + 1]; words are sorted."""

    terms: Any  # pyarrow.Array of strings
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]  # number of words of each row

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names under which a segment stores them."""
        return {
            "word_starts": self.starts,
            "word_rows": self.rows,
            "word_counts": self.counts,
            "lengths": self.lengths,
        }


def word_tokens(text: str | None) -> list[str]:
    """Split a text into lowercase words."""
    return tokenize(text, "words", True) if text else []


def make_postings(texts: Sequence[str | None]) -> Postings:
    """Build the postings of texts, one row per text."""
    ids: dict[str, int] = {}
    words, rows, counts, lengths = list[int](), list[int](), list[int](), list[int]()
    for row, text in enumerate(texts):
        tokens = word_tokens(text)
        lengths.append(len(tokens))
        for word, count in Counter(tokens).items():
            words.append(ids.setdefault(word, len(ids)))
            rows.append(row)
            counts.append(count)
    terms = pyarrow.array(list(ids), pyarrow.large_string())
    order = pyarrow.compute.sort_indices(terms).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return sorted_postings(terms.take(order), rank[np.array(words, dtype=np.int64)], rows, counts, lengths)


def sorted_postings(terms: Any, words: NDArray[np.int64], rows: Any, counts: Any, lengths: Any) -> Postings:
    """Return postings from parallel lists of word ids, rows and counts in the order of rows."""
    order = np.argsort(words, kind="stable")
    starts = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum(np.bincount(words, minlength=len(terms)), out=starts[1:])
    sorted_rows, sorted_counts = (np.asarray(values, dtype=np.int32)[order] for values in (rows, counts))
    return Postings(terms, starts, sorted_rows, sorted_counts, np.asarray(lengths, dtype=np.int32))


def merge_postings(
    parts: Sequence[tuple[Mapping[str, Any], Any]], keep: Sequence[NDArray[np.bool_] | None]
) -> Postings:
    """Merge the postings of consecutive segments, without the rows that are not kept."""
    joined = pyarrow.chunked_array([terms for _, terms in parts], pyarrow.large_string())
    terms = pyarrow.compute.unique(joined)
    terms = terms.take(pyarrow.compute.sort_indices(terms))
    words, rows, counts, lengths, first = [], [], [], [], 0
    for (arrays, segment_terms), mask in zip(parts, keep, strict=True):
        ids = pyarrow.compute.index_in(segment_terms, terms).to_numpy().astype(np.int64)
        segment_words = np.repeat(ids, np.diff(arrays["word_starts"]))
        segment_rows, segment_counts = arrays["word_rows"].astype(np.int64), arrays["word_counts"]
        segment_lengths = arrays["lengths"]
        if mask is not None:
            remaining = mask[segment_rows]
            segment_words, segment_counts, segment_lengths = (
                segment_words[remaining],
                segment_counts[remaining],
                segment_lengths[mask],
            )
            segment_rows = (np.cumsum(mask) - 1)[segment_rows[remaining]]
        words.append(segment_words)
        rows.append(segment_rows + first)
        counts.append(segment_counts)
        lengths.append(segment_lengths)
        first += len(segment_lengths)
    return sorted_postings(terms, *(np.concatenate(part) for part in (words, rows, counts, lengths)))


class SegmentPostings(NamedTuple):
    """The postings of a segment, as stored, and its deleted rows."""

    arrays: Mapping[str, Any]
    terms: Any
    alive: NDArray[np.bool_] | None = None  # mask of rows that are not deleted; None for all

    def count(self, rows: NDArray[np.int32]) -> int:
        """Return how many of the rows are not deleted."""
        return len(rows) if self.alive is None else int(self.alive[rows].sum())


def bm25(parts: Sequence[SegmentPostings], query: str) -> list[NDArray[np.float32]]:
    """Return the score of every row of each segment. Deleted rows do not count; their scores are meaningless."""
    words = list(dict.fromkeys(word_tokens(query)))
    lengths = [part.arrays["lengths"][slice(None) if part.alive is None else part.alive] for part in parts]
    n_rows, total = sum(map(len, lengths)), sum(int(each.sum(dtype=np.int64)) for each in lengths)
    average = max(total / max(1, n_rows), 1e-9)
    term_positions = [[term_position(part.terms, word) for word in words] for part in parts]
    scores = [np.zeros(len(part.arrays["lengths"]), dtype=np.float32) for part in parts]
    for number in range(len(words)):
        postings = [
            term_postings(part, positions[number]) for part, positions in zip(parts, term_positions, strict=True)
        ]
        df = sum(part.count(rows_with_word) for part, (rows_with_word, _) in zip(parts, postings, strict=True))
        idf = np.log1p((n_rows - df + 0.5) / (df + 0.5))
        for part, score, (rows_with_word, counts) in zip(parts, scores, postings, strict=True):
            length_norm = 1 - B + B * part.arrays["lengths"][rows_with_word] / average
            score[rows_with_word] += idf * counts * (K1 + 1) / (counts + K1 * length_norm)
    return scores


def term_postings(part: SegmentPostings, position: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows with a word and its counts there; nothing for position −1."""
    starts = part.arrays["word_starts"]
    span = slice(int(starts[position]), int(starts[position + 1])) if position >= 0 else slice(0)
    return part.arrays["word_rows"][span], part.arrays["word_counts"][span]


def term_position(terms: Any, word: str) -> int:
    """Return the index of a word in sorted terms by binary search; −1 if missing. Arrow sorts strings by their
    bytes."""
    target = word.encode()
    low, high = 0, len(terms)
    while low < high:
        middle = (low + high) // 2
        if as_bytes(terms[middle]) < target:
            low = middle + 1
        else:
            high = middle
    return low if low < len(terms) and as_bytes(terms[low]) == target else -1


def as_bytes(term: Any) -> bytes:
    """Return a term of an Arrow array as bytes."""
    data: bytes = term.as_buffer().to_pybytes()
    return data
