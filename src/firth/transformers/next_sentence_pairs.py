"""Pairs for next-sentence prediction (Devlin et al. 2019, 3.1): A, and B that follows it or is of another document.

A document is split into segments of whole sentences that fit the maximum length. A segment is split into A and B
between two sentences, or within its only sentence. For half of the pairs, B is replaced by the B of another document
whose A is at least as long. So it fits without truncation, and lengths do not reveal the label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.sentences import Sentences
from firth.data.special_tokens import Template

Numbers = NDArray[np.int64]
FOLLOWS, FOREIGN, ALONE = 0, 1, -1  # Hugging Face's labels; ALONE has no B


class Pairs(NamedTuple):
    """Begin and length of A and B of each pair in the token ids."""

    begin: Numbers  # (pairs, 2)
    length: Numbers  # (pairs, 2): 0 without B
    label: Numbers

    def __len__(self) -> int:
        return len(self.label)

    def take(self, which: Numbers | slice) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.begin[which], self.length[which], self.label[which])

    def tokens(self, template: Template) -> Numbers:
        """Return the token count of each pair, or text without B, with the special tokens of a template."""
        added = np.where(self.length[:, 1] > 0, template.added_to_pair, template.added)
        counts: Numbers = self.length.sum(axis=1) + added
        return counts


def short_sentences(sentences: Sentences, limit: int) -> tuple[Sentences, int]:
    """Split sentences longer than `limit` tokens, and return how many were split.

    So a text without sentence ends is not lost.
    """
    lengths = np.diff(sentences.starts)
    parts = np.maximum(1, -(-lengths // limit))
    first = np.concatenate([[0], np.cumsum(parts)])
    number = np.arange(first[-1]) - np.repeat(first[:-1], parts)  # index of a part in its sentence
    starts = np.append(np.repeat(sentences.starts[:-1], parts) + limit * number, sentences.starts[-1:])
    return sentences._replace(starts=starts, documents=first[sentences.documents]), int((parts > 1).sum())


def segments_of(sentences: Sentences, max_tokens: int, random: np.random.Generator) -> Numbers:
    """Return (segments, 2): the first sentence and the end of each segment; together they cover all sentences once.

    The first split of a long document is random, so that epochs differ. No sentence may exceed `max_tokens`.
    """
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
    """Return the pairs of an epoch, each of at most `max_tokens` tokens; without `next_sentence`, A only."""
    segments = segments_of(sentences, max_tokens, random)
    starts = sentences.starts
    begin, end = starts[segments[:, 0]], starts[segments[:, 1]]
    count = segments[:, 1] - segments[:, 0]
    label = np.full(len(segments), ALONE)
    cut = end
    if next_sentence:
        # Between two sentences; within a single sentence; after a single token.
        between = starts[segments[:, 0] + 1 + (random.random(len(segments)) * (count - 1)).astype(np.int64)]
        within = begin + 1 + (random.random(len(segments)) * (end - begin - 1)).astype(np.int64)
        cut = np.where(count > 1, between, np.minimum(within, end))
        label[cut < end] = FOLLOWS
    pairs = Pairs(np.stack([begin, cut], axis=1), np.stack([cut - begin, end - cut], axis=1), label)
    if next_sentence:
        exchange(pairs, sentences.of[segments[:, 0]], random)
    return pairs


def exchange(pairs: Pairs, document: Numbers, random: np.random.Generator) -> None:
    """Give half of the pairs, and those without B, the B of another document, in place."""
    selected = np.flatnonzero((random.random(len(pairs)) < 0.5) | (pairs.label == ALONE))
    key = pairs.length[:, 0] + random.random(len(pairs))  # by the length of A; ties in random order
    donors = selected[pairs.label[selected] == FOLLOWS]
    donors = donors[np.argsort(key[donors])]
    if not len(donors):
        return
    # The next donor by length of A; if it is of the same document, the first later one that is not.
    donor = np.searchsorted(key[donors], key[selected], side="right")
    last = np.append(np.flatnonzero(np.diff(document[donors])), len(donors) - 1)  # end of each run of one document
    beyond = last[np.searchsorted(last, np.arange(len(donors)))] + 1
    inside = np.minimum(donor, len(donors) - 1)
    donor = np.where((donor < len(donors)) & (document[donors[inside]] == document[selected]), beyond[inside], donor)
    receivers, donor = selected[donor < len(donors)], donor[donor < len(donors)]
    pairs.begin[receivers, 1], pairs.length[receivers, 1] = (
        pairs.begin[donors[donor], 1],
        pairs.length[donors[donor], 1],
    )
    pairs.label[receivers] = FOREIGN
