"""On the invented world a small BERT learns what only context can tell: about half a minute on one core."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import firth
from firth.data.world import World
from firth.data.world.words import HOMONYMS

TRAINED = 6000
SENSES = list(World(seed=1).senses(TRAINED + 400))
TEXTS = [sense.sentence for sense in SENSES[:TRAINED]]
NEW = [sense for sense in SENSES[TRAINED:] if sense.sentence not in set(TEXTS)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # 500 tokens are enough for every word to be one: sentences are shorter, and of fewer lengths, than in pieces.
    settings: dict[str, Any] = {
        "layers": 2, "dim": 64, "heads": 4, "feedforward_dim": 128, "context_length": 32, "vocabulary_size": 500,
        "dropout": 0.0, "next_sentence": False, "mask_rate": 0.2, "batch_tokens": 512, "epochs": 12,
        "learning_rate": 4e-3, "weight_decay": 0.01, "held_out": 0.0,
    }  # fmt: skip
    return firth.BERT(**settings).fit(TEXTS, firth.Run(threads=1))


def test_blanks_that_only_context_decides_are_filled(model):
    """The word of two senses is hidden, the other words of the topic are seen. The same answer for every sentence, be
    it the most frequent word, is right for two topics of eight."""

    def fits(answer: str, sense) -> bool:
        return sense.sense in HOMONYMS.get(answer, ())

    blanks = [" ".join("[MASK]" if word == sense.word else word for word in sense.sentence.split()) for sense in NEW]
    filled = [model.fill(blank, k=1)[0][0][0] for blank in blanks]
    accuracy = np.mean([fits(answer, sense) for answer, sense in zip(filled, NEW, strict=True)])
    most_frequent = Counter(sense.word for sense in SENSES[:TRAINED]).most_common(1)[0][0]
    baseline = max(np.mean([fits(word, sense) for sense in NEW]) for word in [most_frequent, *HOMONYMS])
    assert baseline < 0.45 and accuracy > 0.9


def test_the_two_senses_of_a_word_part(model):
    """The nearest other occurrence of the word means the same, by the vectors of the last layer. One vector a word, as
    the input has it but for the place, can't tell."""
    positions = [model.read([sense.sentence])[0].tokens.index(sense.word) for sense in NEW]
    states = [model.states(sense.sentence)[:, position] for sense, position in zip(NEW, positions, strict=True)]
    words, senses = (np.array([getattr(sense, name) for sense in NEW]) for name in ("word", "sense"))
    accuracy = []
    for layer in np.stack(states, axis=1):
        unit = layer / np.linalg.norm(layer, axis=1, keepdims=True)
        similarity = unit @ unit.T
        similarity[words[:, None] != words] = -9
        np.fill_diagonal(similarity, -9)
        accuracy.append(np.mean(senses == senses[similarity.argmax(axis=1)]))
    assert accuracy[0] < 0.62 and accuracy[-1] > 0.9 and accuracy[-1] > accuracy[1]
