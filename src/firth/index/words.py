"""Texts found by their words: which rows hold a word, how often, and BM25 (Robertson & Zaragoza 2009, eq. 3.15)

    Σ  ln(1 + (n − df + ½)/(df + ½)) · tf (k₁ + 1) / (tf + k₁ (1 − b + b · length/average))

over the words of the query; n rows, df of them with the word, tf times in this row. The 1 + … is Lucene's.
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
    """Rows and counts of word w stand at starts[w] to starts[w + 1]; words in order."""

    terms: Any  # pyarrow.Array of strings
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]  # words of each row

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "word_starts": self.starts,
            "word_rows": self.rows,
            "word_counts": self.counts,
            "lengths": self.lengths,
        }


def word_tokens(text: str | None) -> list[str]:
    return tokenize(text, "words", True) if text else []


def make_postings(texts: Sequence[str | None]) -> Postings:
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
    """Postings from a list of (word, row, count) in the order of rows."""
    order = np.argsort(words, kind="stable")
    starts = np.zeros(len(terms) + 1, dtype=np.int64)
    np.cumsum(np.bincount(words, minlength=len(terms)), out=starts[1:])
    own_rows, own_counts = (np.asarray(values, dtype=np.int32)[order] for values in (rows, counts))
    return Postings(terms, starts, own_rows, own_counts, np.asarray(lengths, dtype=np.int32))


def merge_postings(
    parts: Sequence[tuple[Mapping[str, Any], Any]], keep: Sequence[NDArray[np.bool_] | None]
) -> Postings:
    """Those of several segments, whose rows follow each other, less the rows not to keep."""
    joined = pyarrow.chunked_array([terms for _, terms in parts], pyarrow.large_string())
    terms = pyarrow.compute.unique(joined)
    terms = terms.take(pyarrow.compute.sort_indices(terms))
    words, rows, counts, lengths, first = [], [], [], [], 0
    for (arrays, own_terms), kept in zip(parts, keep, strict=True):
        ids = pyarrow.compute.index_in(own_terms, terms).to_numpy().astype(np.int64)
        own_words = np.repeat(ids, np.diff(arrays["word_starts"]))
        own_rows, own_counts = arrays["word_rows"].astype(np.int64), arrays["word_counts"]
        own_lengths = arrays["lengths"]
        if kept is not None:
            stays = kept[own_rows]
            own_words, own_counts, own_lengths = own_words[stays], own_counts[stays], own_lengths[kept]
            own_rows = (np.cumsum(kept) - 1)[own_rows[stays]]
        words.append(own_words)
        rows.append(own_rows + first)
        counts.append(own_counts)
        lengths.append(own_lengths)
        first += len(own_lengths)
    return sorted_postings(terms, *(np.concatenate(part) for part in (words, rows, counts, lengths)))


class SegmentPostings(NamedTuple):
    """What BM25 needs of a segment."""

    arrays: Mapping[str, Any]
    terms: Any
    alive: NDArray[np.bool_] | None = None  # rows that are not deleted; None for all

    def count(self, rows: NDArray[np.int32]) -> int:
        return len(rows) if self.alive is None else int(self.alive[rows].sum())


def bm25(parts: Sequence[SegmentPostings], query: str) -> list[NDArray[np.float32]]:
    """The score of every row of each segment; deleted rows don't count, and their scores mean nothing."""
    words = list(dict.fromkeys(word_tokens(query)))
    lengths = [part.arrays["lengths"][slice(None) if part.alive is None else part.alive] for part in parts]
    rows, total = sum(map(len, lengths)), sum(int(each.sum(dtype=np.int64)) for each in lengths)
    average = max(total / max(1, rows), 1e-9)
    places = [[place_of(part.terms, word) for word in words] for part in parts]
    scores = [np.zeros(len(part.arrays["lengths"]), dtype=np.float32) for part in parts]
    for number in range(len(words)):
        found = [part_postings(part, place[number]) for part, place in zip(parts, places, strict=True)]
        df = sum(part.count(own_rows) for part, (own_rows, _) in zip(parts, found, strict=True))
        idf = np.log1p((rows - df + 0.5) / (df + 0.5))
        for part, score, (own_rows, counts) in zip(parts, scores, found, strict=True):
            longer = 1 - B + B * part.arrays["lengths"][own_rows] / average
            score[own_rows] += idf * counts * (K1 + 1) / (counts + K1 * longer)
    return scores


def part_postings(part: SegmentPostings, place: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    starts = part.arrays["word_starts"]
    where = slice(int(starts[place]), int(starts[place + 1])) if place >= 0 else slice(0)
    return part.arrays["word_rows"][where], part.arrays["word_counts"][where]


def place_of(terms: Any, word: str) -> int:
    """By halves; −1 where it is missing. Arrow orders strings by their bytes."""
    wanted = word.encode()
    low, high = 0, len(terms)
    while low < high:
        middle = (low + high) // 2
        if as_bytes(terms[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(terms) and as_bytes(terms[low]) == wanted else -1


def as_bytes(term: Any) -> bytes:
    found: bytes = term.as_buffer().to_pybytes()
    return found
