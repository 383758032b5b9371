"""Byte-pair encoding: which neighbouring tokens to join (Sennrich, Haddow & Birch 2016). Native, and in plain Python.

Words are split into characters. Then, again and again, the most frequent pair of neighbours becomes one token; of pairs
that are equally frequent, the one with the smaller ids. Characters in some places are tokens of their own: with
`prefix`, those behind the first of a word (WordPiece's ##); with `suffix`, the last (</w>).
The merges equal those of the package `tokenizers`, whose ids of such characters fall as a hash table has them; here
they are in the order of the code points.
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

LATER, LAST = 2, 4  # bits of `Alphabet.places`
STEPS = 200  # merges between two words of progress

Progress = Callable[[int], None]


class Words(NamedTuple):
    """Different words with their counts; the text is UTF-8, with a NUL behind each word."""

    text: bytes
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: dict[str, int]) -> Words:
        return cls(
            "".join(word + "\0" for word in counts).encode(), np.fromiter(counts.values(), np.int64, len(counts))
        )

    def pairs(self) -> Iterable[tuple[str, int]]:
        return zip(self.text.decode().split("\0")[:-1], self.counts.tolist(), strict=True)


class Merge(NamedTuple):
    """Two tokens that became one, by id, and how often they stood together."""

    left: int
    right: int
    joined: int
    times: int


class Alphabet(NamedTuple):
    """Characters in the order of their code points; `places` says where in words they stand."""

    codes: NDArray[np.uint32]
    counts: NDArray[np.int64]
    places: NDArray[np.uint8]


class Start(NamedTuple):
    """The tokens before the first merge, and which of them a character is."""

    tokens: Sequence[str]
    codes: NDArray[np.uint32]
    usual: NDArray[np.int32]
    marked: NDArray[np.int32]  # behind the first of a word, or at the end of it; −1 where it never stands so
    prefix: str = ""
    suffix: str = ""


class Learned(NamedTuple):
    tokens: list[str]
    merges: list[Merge]


def alphabet(words: Words) -> Alphabet:
    return Alphabet(*_native.alphabet(words.text, words.counts))


def kept(found: Alphabet, most: int) -> Alphabet:
    """The most frequent characters, of equals those with the smaller code points."""
    order = np.sort(np.argsort(-found.counts, kind="stable")[:most])
    return Alphabet(found.codes[order], found.counts[order], found.places[order])


def start(first: Sequence[str], characters: Alphabet, prefix: str = "", suffix: str = "") -> Start:
    """Ids in order: the tokens in `first`, the characters, the marked forms of those that stand so."""
    ids = {token: id for id, token in enumerate(dict.fromkeys(first))}
    for code in characters.codes.tolist():
        ids.setdefault(chr(code), len(ids))
    usual = np.array([ids[chr(code)] for code in characters.codes.tolist()], dtype=np.int32)
    marked = usual if not prefix and not suffix else np.full(len(usual), -1, dtype=np.int32)
    if prefix or suffix:
        place = LAST if suffix else LATER
        for at in np.flatnonzero(characters.places & place).tolist():
            marked[at] = ids.setdefault(f"{prefix}{chr(characters.codes[at])}{suffix}", len(ids))
    return Start(list(ids), characters.codes, usual, marked, prefix, suffix)


def learn(words: Words, begin: Start, size: int, min_count: int, progress: Progress = lambda tokens: None) -> Learned:
    """Merges until there are `size` tokens or no pair occurs `min_count` times."""
    tokens = "".join(token + "\0" for token in begin.tokens).encode()
    places = (begin.codes, begin.usual, begin.marked, bool(begin.suffix))
    trainer = _native.BpeTrainer(words.text, words.counts, tokens, *places, begin.prefix)
    done = 0
    while (count := trainer.run(size, min_count, STEPS)) > 0:
        done += count
        progress(done)
    found = trainer.tokens().decode().split("\0")[:-1]
    columns = (column.tolist() for column in trainer.merges())
    return Learned(found, [Merge(*row) for row in zip(*columns, strict=True)])


def learn_twin(words: Words, begin: Start, size: int, min_count: int) -> Learned:
    """`learn` in plain Python."""
    tokens, merges = list(begin.tokens), list[Merge]()
    ids = {token: id for id, token in enumerate(tokens)}
    spelled = [(symbols_of(word, begin), count) for word, count in words.pairs()]
    counts: Counter[tuple[int, int]] = Counter()
    places: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for place, (symbols, count) in enumerate(spelled):
        for pair in pairwise(symbols):
            counts[pair] += count
            places[pair].add(place)
    queue = [(-counts[pair], pair, found) for pair, found in places.items()]
    heapq.heapify(queue)
    while queue and len(tokens) < size:
        minus, pair, found = heapq.heappop(queue)
        if -minus != counts[pair]:  # it has changed since it was queued
            heapq.heappush(queue, (-counts[pair], pair, found))
            continue
        if counts[pair] < max(min_count, 1):
            break
        token = tokens[pair[0]] + tokens[pair[1]].removeprefix(begin.prefix)
        joined = ids.setdefault(token, len(ids))
        tokens += [token] if joined == len(tokens) else []
        merges.append(Merge(*pair, joined, counts[pair]))
        fresh: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for place in found:
            symbols, count = spelled[place]
            for other, change in join(symbols, pair, joined):
                counts[other] += change * count
                if change > 0:
                    fresh[other].add(place)
        for other, found in fresh.items():
            if counts[other] > 0:
                heapq.heappush(queue, (-counts[other], other, found))
    return Learned(tokens, merges)


def symbols_of(word: str, begin: Start) -> list[int]:
    """The first ids of a word's characters; those that are not kept are left out."""
    usual = dict(zip(begin.codes.tolist(), begin.usual.tolist(), strict=True))
    marked = dict(zip(begin.codes.tolist(), begin.marked.tolist(), strict=True))
    symbols = []
    for place, character in enumerate(word):
        mark = place == len(word) - 1 if begin.suffix else place > 0
        symbols.append((marked if mark else usual).get(ord(character), -1))
    return [symbol for symbol in symbols if symbol >= 0]


def join(symbols: list[int], pair: tuple[int, int], joined: int) -> list[tuple[tuple[int, int], int]]:
    """Joins the pair wherever it stands; the neighbouring pairs that come (1) and go (−1)."""
    changes, place = list[tuple[tuple[int, int], int]](), 0
    while place + 1 < len(symbols):
        if (symbols[place], symbols[place + 1]) == pair:
            symbols[place : place + 2] = [joined]
            if place > 0:
                before = symbols[place - 1]
                changes += [((before, pair[0]), -1), ((before, joined), 1)]
            if place + 1 < len(symbols):
                after = symbols[place + 1]
                changes += [((pair[1], after), -1), ((joined, after), 1)]
        place += 1
    return changes
