"""Training of byte-pair encodings (Sennrich, Haddow & Birch 2016): the native kernel, and the same in plain Python.

Words are split into characters. The most frequent pair of adjacent tokens is then merged into one token, repeatedly;
ties go to the pair with the smaller ids. Some characters have an affixed form, which is a token of its own: with
`prefix`, every character but the first of a word (WordPiece's ##); with `suffix`, the last one (</w>).
The merges equal those of the package `tokenizers`. That package numbers affixed characters in the order of a hash
table; here they are in the order of the code points.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

LATER, LAST = 2, 4  # bits of `Alphabet.positions`
STEPS = 200  # merges between two progress reports

Progress = Callable[[int], None]


class Words(NamedTuple):
    """Distinct words with their counts; the text is UTF-8, each word followed by a NUL."""

    text: bytes
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: dict[str, int]) -> Words:
        """Return the words of a dictionary of counts."""
        return cls(
            "".join(word + "\0" for word in counts).encode(), np.fromiter(counts.values(), np.int64, len(counts))
        )

    def pairs(self) -> Iterable[tuple[str, int]]:
        """Return (word, count) pairs."""
        return zip(self.text.decode().split("\0")[:-1], self.counts.tolist(), strict=True)


class Merge(NamedTuple):
    """Two tokens that were merged into one, by id, and how often they were adjacent."""

    left: int
    right: int
    joined: int
    times: int


class Alphabet(NamedTuple):
    """Characters in the order of their code points; `positions` are bits for first, later and last in a word."""

    codes: NDArray[np.uint32]
    counts: NDArray[np.int64]
    positions: NDArray[np.uint8]


class InitialTokens(NamedTuple):
    """The tokens before the first merge, and the token ids of each character."""

    tokens: Sequence[str]
    codes: NDArray[np.uint32]
    plain_ids: NDArray[np.int32]
    affixed_ids: NDArray[np.int32]  # with the prefix or suffix; −1 if the character never occurs in that position
    prefix: str = ""
    suffix: str = ""


class TrainedBpe(NamedTuple):
    """All tokens in the order of their ids, and the merges in the order of training."""

    tokens: list[str]
    merges: list[Merge]


def alphabet(words: Words) -> Alphabet:
    """Return the characters of the words, with counts and positions."""
    return Alphabet(*_native.alphabet(words.text, words.counts))


def most_frequent(characters: Alphabet, limit: int) -> Alphabet:
    """Return the `limit` most frequent characters; ties go to the smaller code points."""
    order = np.sort(np.argsort(-characters.counts, kind="stable")[:limit])
    return Alphabet(characters.codes[order], characters.counts[order], characters.positions[order])


def initial_tokens(first: Sequence[str], characters: Alphabet, prefix: str = "", suffix: str = "") -> InitialTokens:
    """Number the tokens before the first merge: those in `first`, the characters, then the affixed characters."""
    ids = {token: id for id, token in enumerate(dict.fromkeys(first))}
    for code in characters.codes.tolist():
        ids.setdefault(chr(code), len(ids))
    plain_ids = np.array([ids[chr(code)] for code in characters.codes.tolist()], dtype=np.int32)
    affixed_ids = plain_ids if not prefix and not suffix else np.full(len(plain_ids), -1, dtype=np.int32)
    if prefix or suffix:
        position = LAST if suffix else LATER
        for at in np.flatnonzero(characters.positions & position).tolist():
            affixed_ids[at] = ids.setdefault(f"{prefix}{chr(characters.codes[at])}{suffix}", len(ids))
    return InitialTokens(list(ids), characters.codes, plain_ids, affixed_ids, prefix, suffix)


def train(
    words: Words, initial: InitialTokens, size: int, min_count: int, progress: Progress = lambda tokens: None
) -> TrainedBpe:
    """Merge until there are `size` tokens or no pair occurs `min_count` times; report progress in merges."""
    trainer = _native.BpeTrainer(
        words.text,
        words.counts,
        "".join(token + "\0" for token in initial.tokens).encode(),
        initial.codes,
        initial.plain_ids,
        initial.affixed_ids,
        bool(initial.suffix),
        initial.prefix,
    )
    done = 0
    while (count := trainer.run(size, min_count, STEPS)) > 0:
        done += count
        progress(done)
    tokens = trainer.tokens().decode().split("\0")[:-1]
    columns = (column.tolist() for column in trainer.merges())
    return TrainedBpe(tokens, [Merge(*row) for row in zip(*columns, strict=True)])


def train_twin(words: Words, initial: InitialTokens, size: int, min_count: int) -> TrainedBpe:
    """`train` in plain Python."""
    tokens, merges = list(initial.tokens), list[Merge]()
    ids = {token: id for id, token in enumerate(tokens)}
    spelled = [(symbols_of(word, initial), count) for word, count in words.pairs()]
    counts: Counter[tuple[int, int]] = Counter()
    words_with: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for word, (symbols, count) in enumerate(spelled):
        for pair in pairwise(symbols):
            counts[pair] += count
            words_with[pair].add(word)
    queue = [(-counts[pair], pair, members) for pair, members in words_with.items()]
    heapq.heapify(queue)
    while queue and len(tokens) < size:
        negative_count, pair, members = heapq.heappop(queue)
        if -negative_count != counts[pair]:  # stale: the count has changed since it was queued
            heapq.heappush(queue, (-counts[pair], pair, members))
            continue
        if counts[pair] < max(min_count, 1):
            break
        token = tokens[pair[0]] + tokens[pair[1]].removeprefix(initial.prefix)
        joined = ids.setdefault(token, len(ids))
        tokens += [token] if joined == len(tokens) else []
        merges.append(Merge(*pair, joined, counts[pair]))
        fresh: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for word in members:
            symbols, count = spelled[word]
            for other, change in join(symbols, pair, joined):
                counts[other] += change * count
                if change > 0:
                    fresh[other].add(word)
        for other, members in fresh.items():
            if counts[other] > 0:
                heapq.heappush(queue, (-counts[other], other, members))
    return TrainedBpe(tokens, merges)


def symbols_of(word: str, initial: InitialTokens) -> list[int]:
    """Return the initial token ids of a word's characters, without those outside the alphabet."""
    plain = dict(zip(initial.codes.tolist(), initial.plain_ids.tolist(), strict=True))
    affixed = dict(zip(initial.codes.tolist(), initial.affixed_ids.tolist(), strict=True))
    symbols = []
    for position, character in enumerate(word):
        has_affix = position == len(word) - 1 if initial.suffix else position > 0
        symbols.append((affixed if has_affix else plain).get(ord(character), -1))
    return [symbol for symbol in symbols if symbol >= 0]


def join(symbols: list[int], pair: tuple[int, int], joined: int) -> list[tuple[tuple[int, int], int]]:
    """Merge the pair in place wherever it occurs; return the adjacent pairs that appear (1) and disappear (−1)."""
    changes, i = list[tuple[tuple[int, int], int]](), 0
    while i + 1 < len(symbols):
        if (symbols[i], symbols[i + 1]) == pair:
            symbols[i : i + 2] = [joined]
            if i > 0:
                before = symbols[i - 1]
                changes += [((before, pair[0]), -1), ((before, joined), 1)]
            if i + 1 < len(symbols):
                after = symbols[i + 1]
                changes += [((pair[1], after), -1), ((joined, after), 1)]
        i += 1
    return changes
