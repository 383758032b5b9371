"""FastText on a synthetic language of stems and endings: unseen forms get vectors similar to those of their stems."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.kernels.subwords import ngrams_of

TOPICS, STEMS, ENDINGS = 4, 12, ("en", "ung", "lich", "los", "heit")


class Language:
    """Each sentence has one topic. A third of the forms, and all compounds of two stems, occur in no sentence."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        letters = np.array(list("abdefgiklmnoprstuvwz"))
        self.stems = ["".join(self.rng.choice(letters, 6)) for _ in range(TOPICS * STEMS)]
        forms = [stem + ending for stem, ending in product(self.stems, ENDINGS)]
        self.held_out = set(self.rng.choice(forms, len(forms) // 3, replace=False))
        self.forms = [
            [form for form in forms if form not in self.held_out and form[:6] == stem] + [stem] for stem in self.stems
        ]

    def topic(self, word: str) -> int:
        return self.stems.index(word[:6]) // STEMS

    def sentence(self) -> str:
        topic = self.rng.integers(TOPICS)
        stems = self.rng.integers(topic * STEMS, (topic + 1) * STEMS, 8)
        return " ".join(str(self.rng.choice(self.forms[stem])) for stem in stems)

    def compounds(self, count: int) -> list[str]:
        """Return compounds of two stems of the same topic."""
        firsts = self.rng.integers(0, len(self.stems), count)
        seconds = firsts // STEMS * STEMS + self.rng.integers(0, STEMS, count)
        return [self.stems[a] + self.stems[b] for a, b in zip(firsts, seconds, strict=True) if a != b]


@pytest.fixture(scope="module")
def language() -> Language:
    return Language(seed=11)


@pytest.fixture(scope="module")
def sentences(language: Language) -> list[str]:
    return [language.sentence() for _ in range(2500)]


def topic_accuracy(language: Language, words: list[str], nearest: dict[str, list[str]]) -> float:
    """Return the share of words whose five nearest words of other stems are mostly of their topic."""
    right = 0
    for word in words:
        others = [key for key in nearest[word] if key[:6] not in (word[:6], word[6:12])][:5]
        right += Counter(map(language.topic, others)).most_common(1)[0][0] == language.topic(word)
    return right / len(words)


@pytest.mark.parametrize("objective", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["negative", "hierarchical"])
def test_unseen_forms_and_compounds_are_near_words_of_their_topic(language, sentences, objective, loss):
    method = firth.FastText(
        dim=24, min_count=1, epochs=8, subsample=0, objective=objective, loss=loss, buckets=50_000, minn=4
    )
    model = method.fit(firth.Corpus(sentences), firth.Run(deterministic=True, seed=4))
    for words in (sorted(language.held_out), language.compounds(60)):
        assert not any(word in model.vectors for word in words)
        nearest = {word: [hit.key for hit in model.vectors.neighbors(word, 40)] for word in words}
        assert topic_accuracy(language, words, nearest) > 0.9


def test_spelling_alone_does_not_predict_the_topic(language, sentences):
    """Baseline: nearest words by shared n-grams, without training, are at chance level."""
    known = sorted({word for line in sentences for word in line.split()})
    pieces = {word: set(ngrams_of(word, 3, 6)) for word in [*known, *language.held_out]}

    def nearest(word: str) -> list[str]:
        return sorted(known, key=lambda other: -len(pieces[word] & pieces[other]) / len(pieces[word] | pieces[other]))

    words = sorted(language.held_out)
    assert topic_accuracy(language, words, {word: nearest(word)[:60] for word in words}) < 0.6


def test_skipgram_has_no_vectors_of_unseen_words(language, sentences):
    model = firth.SkipGram(dim=8, min_count=1, epochs=1).fit(firth.Corpus(sentences))
    unseen = next(iter(language.held_out))
    with refuses("unknown_key", key=unseen):
        model.vectors.neighbors(unseen)


def test_without_ngrams_only_words_are_trained(language, sentences):
    model = firth.FastText(dim=24, min_count=1, epochs=8, subsample=0, maxn=0).fit(firth.Corpus(sentences))
    assert model.subwords.rows == 0 and len(model.table) == model.n_words
    nearest = {stem: [hit.key for hit in model.vectors.neighbors(stem, 40)] for stem in language.stems}
    assert topic_accuracy(language, language.stems, nearest) > 0.9


def test_minn_above_maxn_is_refused():
    with refuses("invalid_value", option="FastText.minn", maxn=4, got=5):
        firth.FastText(minn=5, maxn=4)
    firth.FastText(minn=5, maxn=0)
