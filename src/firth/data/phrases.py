"""Phrases: adjacent words that co-occur more often than by chance become one token, "new york" -> "new_york".

With n(a), n(b) the counts of two words, n(ab) that of a directly before b, and N the number of tokens:
npmi        = ln(n(ab) N / (n(a) n(b))) / −ln(n(ab) / N), from −1 to 1       (Bouma 2009, section 4.1)
word2phrase = (n(ab) − min_count) N / (n(a) n(b))      (Mikolov et al. 2013, eq. 6, scaled by N as their program does)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.storage import saying_where
from firth.data.streams import Ids, Stream, file_pieces, flat_pieces, write_all
from firth.kernels.pairs import PairCounter, PairJoiner

if TYPE_CHECKING:
    from firth.data.tokens import Tokens

THRESHOLDS = {"npmi": 0.5, "word2phrase": 100.0}
MIN_COUNT = 5  # two words that occur once, next to each other, would otherwise be a perfect phrase
MEMORY = 2 << 30  # bytes for counting pairs if Run.memory is not set


class Phrase(NamedTuple):
    """Two tokens that form a phrase, with the count and score in the training text (0 if unknown)."""

    first: str
    second: str
    times: int = 0
    score: float = 0.0


def phrase_scores(
    pairs: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    total: int,
    score: str = "npmi",
    min_count: int = MIN_COUNT,
) -> NDArray[np.float64]:
    """Return the score of each pair, from its count and the counts of its two words."""
    check_choice("score", score, THRESHOLDS)
    by_chance = first.astype(np.float64) * second / total
    if score == "npmi":
        return np.asarray(np.log(pairs / by_chance) / -np.log(pairs / total))
    return np.asarray((pairs - min_count) / by_chance)  # word2phrase


def find_phrases(
    tokens: Tokens, *, score: str = "npmi", threshold: float | None = None, min_count: int = MIN_COUNT
) -> list[Phrase]:
    """Return the pairs of tokens whose score is above the threshold (npmi 0.5, word2phrase 100), best first.

    Dropped rare words make the words around them adjacent, so read `tokens` with min_count=1.
    """
    vocabulary = tokens.vocabulary
    identity = np.arange(len(vocabulary), dtype=np.int32)
    stream = Stream(vocabulary.tokens, vocabulary.counts, flat_pieces(tokens.ids, tokens.starts, identity))
    return stream_phrases(stream, score, threshold, min_count, PhrasePasses(MEMORY))


class Passes(Protocol):
    """Passes over a stream: in this process, or by shards on a cluster."""

    pruned: bool  # whether rare pairs were dropped to stay within a memory limit

    def pairs(
        self, stream: Stream, is_frequent: NDArray[np.uint8], min_count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the adjacent pairs of frequent words, in order, and their counts, if they are at least `min_count`."""

    def join(self, stream: Stream, phrases: Iterable[Phrase], name: str) -> Stream:
        """Write the stream with its phrases joined to files of this name, and return it."""


class PhrasePasses:
    """Passes in this process; pairs are counted within `memory` bytes."""

    def __init__(self, memory: int, folder: Path = Path()) -> None:
        self.memory, self.folder, self.pruned = memory, folder, False

    def pairs(
        self, stream: Stream, is_frequent: NDArray[np.uint8], min_count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the adjacent pairs of frequent words, in order, and their counts."""
        counter = PairCounter(self.memory)
        for piece in stream.pieces():
            counter.add(piece.ids, piece.map, is_frequent)
        self.pruned = counter.dropped() > 0
        return counter.pairs(min_count)

    def join(self, stream: Stream, phrases: Iterable[Phrase], name: str) -> Stream:
        """Write the stream with its phrases joined to a file, and return it."""
        words, joined = joined_words(stream, phrases)
        path = self.folder / f"{name}.i32"
        counts = write_joined(stream.pieces(), joined, len(words), path)
        return Stream(words, counts, file_pieces(path, len(words)), stream.fixed)


def stream_phrases(stream: Stream, score: str, threshold: float | None, min_count: int, passes: Passes) -> list[Phrase]:
    """Return the phrases of a stream."""
    check_choice("score", score, THRESHOLDS)
    is_frequent = (stream.counts >= min_count).astype(np.uint8)
    first, second, counts = passes.pairs(stream, is_frequent, max(min_count, 1))
    word_counts = stream.counts
    scores = phrase_scores(counts, word_counts[first], word_counts[second], int(word_counts.sum()), score, min_count)
    selected = np.flatnonzero(scores > (THRESHOLDS[score] if threshold is None else threshold))
    selected = selected[np.lexsort((selected, -counts[selected], -scores[selected]))]
    words = stream.words
    return [Phrase(words[first[i]], words[second[i]], int(counts[i]), float(scores[i])) for i in selected]


def joined_words(stream: Stream, phrases: Iterable[Phrase]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the words with those of joined phrases, and the ids of each phrase: first, second, joined.

    A joined token that is already a word gets the id of that word. Phrases of unknown words are skipped.
    """
    words = list(stream.words)
    ids = {word: id for id, word in enumerate(words)}
    triples = []
    for phrase in phrases:
        if phrase.first not in ids or phrase.second not in ids:
            continue
        joined = join_names(phrase.first, phrase.second)
        if joined not in ids:
            ids[joined] = len(words)
            words.append(joined)
        triples.append((ids[phrase.first], ids[phrase.second], ids[joined]))
    return words, np.array(triples, dtype=np.int32).reshape(-1, 3)


def write_joined(
    pieces: Iterable[tuple[Ids, Ids]], joined: NDArray[np.int32], words: int, path: Path
) -> NDArray[np.int64]:
    """Write ids with joined phrases to a file; return the counts of the words."""
    joiner = PairJoiner(*(np.ascontiguousarray(column) for column in joined.T))
    counts = np.zeros(words, dtype=np.int64)
    empty = np.zeros(0, dtype=np.int32)
    with saying_where(path), path.open("wb", buffering=0) as file:
        for piece_ids, map in chain(pieces, [(empty, empty)]):  # the empty piece flushes the last word
            out = np.empty(len(piece_ids) + 1, dtype=np.int32)
            part = out[: joiner.join(piece_ids, map, out)]
            counts += np.bincount(part[part >= 0], minlength=words)
            write_all(file, part)
    return counts


def join_names(first: str, second: str) -> str:
    """Return the token for two joined tokens."""
    return f"{first}_{second}"


class PhraseJoiner:
    """Joins phrases in new lists of tokens in the same way as in training: `PhraseJoiner(tokens.phrases)`.

    `passes` has the phrases of each training pass, in order; later passes join phrases of earlier ones.
    """

    def __init__(self, passes: Iterable[Iterable[Sequence[object]]]) -> None:
        self.passes = [{(str(phrase[0]), str(phrase[1])) for phrase in phrases} for phrases in passes]

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        joined = list(tokens)
        for phrases in self.passes:
            before, joined, previous = joined, [], None
            for token in before:
                if previous is None:
                    previous = token
                elif (previous, token) in phrases:
                    joined.append(join_names(previous, token))
                    previous = None
                else:
                    joined.append(previous)
                    previous = token
            joined += [] if previous is None else [previous]
        return joined
