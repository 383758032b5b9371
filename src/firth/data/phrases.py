"""Phrases: words that stand side by side more often than chance become one token, "new york" -> "new_york".

With n(a), n(b) the counts of two words, n(ab) that of a directly before b, and N all tokens:
npmi        = ln(n(ab) N / (n(a) n(b))) / −ln(n(ab) / N), from −1 to 1       (Bouma 2009, section 4.1)
word2phrase = (n(ab) − min_count) N / (n(a) n(b))      (Mikolov et al. 2013, eq. 6, scaled by N as their program does)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import saying_where
from firth.data.streams import Stream, file_pieces, flat_pieces, write_all
from firth.kernels.pairs import PairCounter, PairJoiner

if TYPE_CHECKING:
    from firth.data.tokens import Tokens

THRESHOLDS = {"npmi": 0.5, "word2phrase": 100.0}
MIN_COUNT = 5  # two words that meet once, and occur nowhere else, would be a perfect phrase
MEMORY = 2 << 30  # for counting pairs where no other bound is given


class Phrase(NamedTuple):
    """Two tokens that belong together; times and score are those of the text they were found in, if it is at hand."""

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
    """The score of each pair from its count and those of its two words."""
    by_chance = first.astype(np.float64) * second / total
    if score == "npmi":
        return np.asarray(np.log(pairs / by_chance) / -np.log(pairs / total))
    if score == "word2phrase":
        return np.asarray((pairs - min_count) / by_chance)
    raise FirthError(
        "invalid_value",
        "{option} must be one of {choices}; got {got!r}.",
        option="score",
        choices=", ".join(THRESHOLDS),
        got=score,
    )


def find_phrases(
    tokens: Tokens, *, score: str = "npmi", threshold: float | None = None, min_count: int = MIN_COUNT
) -> list[Phrase]:
    """The pairs of tokens whose score is above the threshold (npmi 0.5, word2phrase 100), best first.

    Where rare words were dropped from `tokens`, the words around them look like neighbours: use min_count=1 there.
    """
    vocabulary = tokens.vocabulary
    identity = np.arange(len(vocabulary), dtype=np.int32)
    stream = Stream(vocabulary.tokens, vocabulary.counts, flat_pieces(tokens.ids, tokens.starts, identity))
    return stream_phrases(stream, score, threshold, min_count, MEMORY)[0]


def stream_phrases(
    stream: Stream, score: str, threshold: float | None, min_count: int, memory: int
) -> tuple[list[Phrase], bool]:
    """The phrases of a stream, and whether pairs had to be dropped to keep to the memory."""
    if score not in THRESHOLDS:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="score",
            choices=", ".join(THRESHOLDS),
            got=score,
        )
    counter = PairCounter(memory)
    is_frequent = (stream.counts >= min_count).astype(np.uint8)
    for piece in stream.pieces():
        counter.add(piece.ids, piece.map, is_frequent)
    first, second, counts = counter.pairs(max(min_count, 1))
    word_counts = stream.counts
    scores = phrase_scores(counts, word_counts[first], word_counts[second], int(word_counts.sum()), score, min_count)
    selected = np.flatnonzero(scores > (THRESHOLDS[score] if threshold is None else threshold))
    selected = selected[np.lexsort((selected, -counts[selected], -scores[selected]))]
    words = stream.words
    phrases = [Phrase(words[first[i]], words[second[i]], int(counts[i]), float(scores[i])) for i in selected]
    return phrases, counter.dropped() > 0


def join_stream(stream: Stream, phrases: Iterable[Phrase], path: Path) -> Stream:
    """The stream with the phrases joined, in a file; a joined token that is a word already becomes that word. Phrases
    of words that the stream lacks are passed over."""
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
    columns = np.array(triples, dtype=np.int32).reshape(-1, 3).T
    joiner = PairJoiner(*(np.ascontiguousarray(column) for column in columns))
    counts = np.zeros(len(words), dtype=np.int64)
    empty = np.zeros(0, dtype=np.int32)
    with saying_where(path), path.open("wb", buffering=0) as file:
        for piece_ids, map in chain(stream.pieces(), [(empty, empty)]):  # the empty piece lets the last word go
            out = np.empty(len(piece_ids) + 1, dtype=np.int32)
            part = out[: joiner.join(piece_ids, map, out)]
            counts += np.bincount(part[part >= 0], minlength=len(words))
            write_all(file, part)
    return Stream(words, counts, file_pieces(path, len(words)), stream.fixed)


def join_names(first: str, second: str) -> str:
    return f"{first}_{second}"


class PhraseJoiner:
    """Joins phrases in new lists of tokens as they were joined in training: `PhraseJoiner(tokens.phrases)`.

    `passes` are the phrases found in the first pass over the text, in the second, …: later ones join earlier ones.
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
