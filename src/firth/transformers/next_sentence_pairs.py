"""Pairs of texts for next-sentence prediction (Devlin et al. 2019, 3.1): A, and B that follows it or comes from another
document.

A document is cut into stretches of whole sentences that fit the room; a stretch is cut into A and B between two of its
sentences, or within it where it has only one. For half of them B is then taken from a stretch of another document, one
whose own A is at least as long: so it fits without being cut, and no length gives the answer away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.sentences import Sentences

Numbers = NDArray[np.int64]
FOLLOWS, FOREIGN, ALONE = 0, 1, -1  # Hugging Face's labels; ALONE has no B


class Pairs(NamedTuple):
    """Where A and B of each pair stand in the ids: where they begin and how long they are."""

    begin: Numbers  # (pairs, 2)
    length: Numbers  # (pairs, 2): 0 for a B that is not there
    label: Numbers

    def __len__(self) -> int:
        return len(self.label)

    def take(self, which: Numbers | slice) -> Pairs:
        return Pairs(self.begin[which], self.length[which], self.label[which])

    def tokens(self) -> Numbers:
        """Of each pair: [CLS] A [SEP] B [SEP], or [CLS] A [SEP]."""
        found: Numbers = self.length.sum(axis=1) + 2 + (self.length[:, 1] > 0)
        return found


def short_sentences(sentences: Sentences, most: int) -> tuple[Sentences, int]:
    """Sentences longer than `most` tokens cut into parts that count as sentences, and how many there were: nothing of
    a text without full stops is lost."""
    lengths = np.diff(sentences.starts)
    parts = np.maximum(1, -(-lengths // most))
    first = np.concatenate([[0], np.cumsum(parts)])
    number = np.arange(first[-1]) - np.repeat(first[:-1], parts)  # of a part in its sentence
    starts = np.append(np.repeat(sentences.starts[:-1], parts) + most * number, sentences.starts[-1:])
    return sentences._replace(starts=starts, documents=first[sentences.documents]), int((parts > 1).sum())


def stretches(sentences: Sentences, room: int, random: np.random.Generator) -> Numbers:
    """(stretches, 2): the sentences from … to of each; together all sentences once. Where a long document is cut first
    is left to chance, so that the cuts of two epochs differ. No sentence may be longer than the room."""
    starts, documents = sentences.starts, sentences.documents
    rooms = np.full(len(starts) - 1, room)
    long = documents[:-1][starts[documents[1:]] - starts[documents[:-1]] > room]
    rooms[long] = random.integers(room // 2, room, len(long), endpoint=True)
    reach = np.searchsorted(starts, starts[:-1] + rooms, side="right") - 1
    reach = np.minimum(reach, np.repeat(documents[1:], np.diff(documents)))
    following, found, at = reach.tolist(), list[int](), 0
    while at < len(following):
        found.append(at)
        at = following[at]
    first = np.array(found, np.int64)
    return np.stack([first, np.append(first[1:], len(following))], axis=1)


def make_pairs(sentences: Sentences, room: int, random: np.random.Generator, following: bool = True) -> Pairs:
    """The pairs of an epoch: text of at most `room` tokens each. Without `following`, every stretch is an A alone."""
    found = stretches(sentences, room, random)
    starts = sentences.starts
    begin, end = starts[found[:, 0]], starts[found[:, 1]]
    count = found[:, 1] - found[:, 0]
    label = np.full(len(found), ALONE)
    cut = end
    if following:
        # Between two sentences; within the only one (between two tokens); behind the only token.
        between = starts[found[:, 0] + 1 + (random.random(len(found)) * (count - 1)).astype(np.int64)]
        within = begin + 1 + (random.random(len(found)) * (end - begin - 1)).astype(np.int64)
        cut = np.where(count > 1, between, np.minimum(within, end))
        label[cut < end] = FOLLOWS
    pairs = Pairs(np.stack([begin, cut], axis=1), np.stack([cut - begin, end - cut], axis=1), label)
    if following:
        exchange(pairs, sentences.of[found[:, 0]], random)
    return pairs


def exchange(pairs: Pairs, document: Numbers, random: np.random.Generator) -> None:
    """Half of the pairs, and those without a B, get the B of another document. In place."""
    chosen = np.flatnonzero((random.random(len(pairs)) < 0.5) | (pairs.label == ALONE))
    key = pairs.length[:, 0] + random.random(len(pairs))  # by the length of A; equal ones in any order
    givers = chosen[pairs.label[chosen] == FOLLOWS]
    givers = givers[np.argsort(key[givers])]
    if not len(givers):
        return
    # The next giver by length of A; where it is of the same document, the first one behind it that is not.
    at = np.searchsorted(key[givers], key[chosen], side="right")
    last = np.append(np.flatnonzero(np.diff(document[givers])), len(givers) - 1)  # of each run of one document
    beyond = last[np.searchsorted(last, np.arange(len(givers)))] + 1
    inside = np.minimum(at, len(givers) - 1)
    at = np.where((at < len(givers)) & (document[givers[inside]] == document[chosen]), beyond[inside], at)
    takers, at = chosen[at < len(givers)], at[at < len(givers)]
    pairs.begin[takers, 1], pairs.length[takers, 1] = pairs.begin[givers[at], 1], pairs.length[givers[at], 1]
    pairs.label[takers] = FOREIGN
