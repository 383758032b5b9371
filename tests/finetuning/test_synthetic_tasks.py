"""The invented world's sentiment and questions are learned, where simple ways fail: minutes at most, on one thread."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tiny import tiny_bert

import firth
from firth.data.world import World
from firth.evaluate import answers, classification

RUN = firth.Run(deterministic=True)


def test_sentiment_is_learned_where_counted_words_fail():
    """Some opinions say "not dreadful": what stands before a word turns it round."""
    rows = list(World(seed=3).sentiment(3400))
    train, test = rows[:3000], rows[3000:]
    known = {"text": [row.text for row in train], "label": [row.label for row in train]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some reviews stand there twice
        method = firth.TextClassifier(epochs=5, batch_size=16, learning_rate=5e-4, dropout=0.0)
        model = method.fit(known, RUN, tiny_bert(dim=64, lively=True))
    found = classification(model, [tuple(row) for row in test])
    words = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=500)).fit(known["text"], known["label"])
    counted = words.score([row.text for row in test], [row.label for row in test])
    assert found.accuracy > 0.95 > 0.9 > counted and found.matthews > 0.9


def test_questions_are_answered_by_whom_they_are_about():
    """A passage says the same kind of thing of two persons or countries, so that who reads what is asked, and not about
    whom, is right half of the time."""
    rows = list(World(seed=3).questions(6400))
    train, test = rows[:6000], rows[6000:]
    names = ("question", "passage", "answer", "start")
    known, asked = ({name: [getattr(row, name) for row in part] for name in names} for part in (train, test))
    base = tiny_bert(dim=64, vocabulary=1800, world=3, lively=True)
    method = firth.QuestionAnswerer(epochs=3, learning_rate=4e-3, dropout=0.0, held_out=0.0)
    model = method.fit(firth.Questions(known, start="start"), RUN, base)
    found = answers(model, firth.Questions(asked, start="start"))
    assert found.exact_match > 0.56 and found.f1 > 0.56
    spans = model.answer(asked["question"], asked["passage"])
    right = [span.start == start for span, start in zip(spans, asked["start"], strict=True)]
    assert np.mean(right) > 0.56
