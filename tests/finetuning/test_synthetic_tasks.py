"""Fine-tuning solves two tasks of the synthetic corpus that simple baselines do not, in minutes on one thread."""

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


def test_sentiment_is_learned_where_a_bag_of_words_fails():
    """Some opinions say "not dreadful": a negation reverses the word after it."""
    rows = list(World(seed=3).sentiment(3400))
    train, test = rows[:3000], rows[3000:]
    table = {"text": [row.text for row in train], "label": [row.label for row in train]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some reviews are duplicates
        method = firth.TextClassifier(epochs=5, batch_size=16, learning_rate=5e-4, dropout=0.0)
        model = method.fit(table, RUN, tiny_bert(dim=64, lively=True))
    result = classification(model, [(row.text, row.label) for row in test])
    bag_of_words = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=500)).fit(table["text"], table["label"])
    baseline = bag_of_words.score([row.text for row in test], [row.label for row in test])
    assert result.accuracy > 0.95 > 0.9 > baseline and result.matthews > 0.9


def test_questions_are_answered_about_the_right_subject():
    """A passage has the same kind of statement about two subjects, so a model that ignores the subject of the question
    is right half of the time."""
    rows = list(World(seed=3).questions(6400))
    train, test = rows[:6000], rows[6000:]
    names = ("question", "passage", "answer", "start")
    train_table, test_table = ({name: [getattr(row, name) for row in part] for name in names} for part in (train, test))
    base = tiny_bert(dim=64, vocabulary=1800, world=3, lively=True)
    method = firth.QuestionAnswerer(epochs=3, learning_rate=4e-3, dropout=0.0, held_out=0.0)
    model = method.fit(firth.Questions(train_table, start="start"), RUN, base)
    result = answers(model, firth.Questions(test_table, start="start"))
    assert result.exact_match > 0.56 and result.f1 > 0.56
    spans = model.answer(test_table["question"], test_table["passage"])
    correct = [span.start == start for span, start in zip(spans, test_table["start"], strict=True)]
    assert np.mean(correct) > 0.56
