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
        counts: Numbers = self.length.sum(axis=1) + 2 + (self.length[:, 1] > 0)
        return counts


def short_sentences(sentences: Sentences, limit: int) -> tuple[Sentences, int]:
    """Sentences longer than `most` tokens cut into parts that count as sentences, and how many there were: nothing of
    a text without full stops is lost."""
    lengths = np.diff(sentences.starts)
    parts = np.maximum(1, -(-lengths // limit))
    first = np.concatenate([[0], np.cumsum(parts)])
    number = np.arange(first[-1]) - np.repeat(first[:-1], parts)  # of a part in its sentence
    starts = np.append(np.repeat(sentences.starts[:-1], parts) + limit * number, sentences.starts[-1:])
    return sentences._replace(starts=starts, documents=first[sentences.documents]), int((parts > 1).sum())


def segments_of(sentences: Sentences, max_tokens: int, random: np.random.Generator) -> Numbers:
    """(stretches, 2): the sentences from … to of each; together all sentences once. Where a long document is cut first
    is left to chance, so that the cuts of two epochs differ. No sentence may be longer than the room."""
    starts, documents = sentences.starts, sentences.documents
    limits = np.full(len(starts) - 1, max_tokens)
    long = documents[:-1][starts[documents[1:]] - starts[documents[:-1]] > max_tokens]
    limits[long] = random.integers(max_tokens // 2, max_tokens, len(long), endpoint=True)
    reach = np.searchsorted(starts, starts[:-1] + limits, side="right") - 1
    reach = np.minimum(reach, np.repeat(documents[1:], np.diff(documents)))
    next_start, firsts, at = reach.tolist(), list[int](), 0
    while at < len(next_start):
        firsts.append(at)
        at = next_start[at]
    first = np.array(firsts, np.int64)
    return np.stack([first, np.append(first[1:], len(next_start))], axis=1)


def make_pairs(sentences: Sentences, max_tokens: int, random: np.random.Generator, next_sentence: bool = True) -> Pairs:
    """The pairs of an epoch: text of at most `room` tokens each. Without `following`, every stretch is an A alone."""
    segments = segments_of(sentences, max_tokens, random)
    starts = sentences.starts
    begin, end = starts[segments[:, 0]], starts[segments[:, 1]]
    count = segments[:, 1] - segments[:, 0]
    label = np.full(len(segments), ALONE)
    cut = end
    if next_sentence:
        # Between two sentences; within the only one (between two tokens); behind the only token.
        between = starts[segments[:, 0] + 1 + (random.random(len(segments)) * (count - 1)).astype(np.int64)]
        within = begin + 1 + (random.random(len(segments)) * (end - begin - 1)).astype(np.int64)
        cut = np.where(count > 1, between, np.minimum(within, end))
        label[cut < end] = FOLLOWS
    pairs = Pairs(np.stack([begin, cut], axis=1), np.stack([cut - begin, end - cut], axis=1), label)
    if next_sentence:
        exchange(pairs, sentences.of[segments[:, 0]], random)
    return pairs


def exchange(pairs: Pairs, document: Numbers, random: np.random.Generator) -> None:
    """Half of the pairs, and those without a B, get the B of another document. In place."""
    selected = np.flatnonzero((random.random(len(pairs)) < 0.5) | (pairs.label == ALONE))
    key = pairs.length[:, 0] + random.random(len(pairs))  # by the length of A; equal ones in any order
    donors = selected[pairs.label[selected] == FOLLOWS]
    donors = donors[np.argsort(key[donors])]
    if not len(donors):
        return
    # The next giver by length of A; where it is of the same document, the first one behind it that is not.
    donor = np.searchsorted(key[donors], key[selected], side="right")
    last = np.append(np.flatnonzero(np.diff(document[donors])), len(donors) - 1)  # of each run of one document
    beyond = last[np.searchsorted(last, np.arange(len(donors)))] + 1
    inside = np.minimum(donor, len(donors) - 1)
    donor = np.where((donor < len(donors)) & (document[donors[inside]] == document[selected]), beyond[inside], donor)
    receivers, donor = selected[donor < len(donors)], donor[donor < len(donors)]
    pairs.begin[receivers, 1], pairs.length[receivers, 1] = (
        pairs.begin[donors[donor], 1],
        pairs.length[donors[donor], 1],
    )
    pairs.label[receivers] = FOREIGN
