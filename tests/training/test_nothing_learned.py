"""Defaults depend on the size of the data, and a run that learned nothing gets a note."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from pytest import approx

import firth
from firth.core.errors import FirthWarning
from firth.data.vocabulary import automatic_min_count
from firth.data.world import World
from firth.recommenders.rating_factors import compare_ratings
from firth.training.network_options import automatic_batch
from firth.words.window_training import automatic_epochs


@pytest.fixture(scope="module")
def topics():
    return list(World(seed=11).topics(60))


@pytest.fixture(scope="module")
def texts(topics):
    return [document.text for document in topics]


def codes(fit) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [warning.message.code for warning in caught if isinstance(warning.message, FirthWarning)]


# ---- defaults that depend on the size of the data ----


def test_automatic_options_by_data_size():
    assert automatic_min_count(10**9) == 5 and automatic_min_count(1000) == 1
    assert automatic_epochs(10**9, 5, 4_000_000) == automatic_epochs(4_000_000, 5, 4_000_000) == 5
    assert automatic_epochs(10_000, 5, 4_000_000) == 100 and automatic_epochs(1, 5, 4_000_000) == 200
    assert automatic_batch(10**9) == 8192 and automatic_batch(1_000_000) == 1024 and automatic_batch(1) == 512


@pytest.mark.parametrize("method", [firth.SkipGram, firth.CBOW, firth.FastText, firth.GloVe, firth.PMI, firth.Doc2Vec])
def test_automatic_options_are_recorded(method, texts, tmp_path):
    model = method(dim=8).fit(texts[:10])
    automatic = model.training["automatic"]
    assert automatic["min_count"] == model.method.min_count == 1
    assert len(model.vocabulary) == model.vocabulary.counts.size and model.vocabulary.dropped_types == 0
    if method is not firth.PMI:
        assert automatic["epochs"] == model.method.epochs == model.training["finished_epochs"] > 20
    model.save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "training.json").read_text())["automatic"] == automatic
    assert firth.load(tmp_path / "m").method == model.method


def test_explicit_options_are_not_changed(texts):
    model = firth.SkipGram(dim=8, min_count=3, epochs=2).fit(texts)
    assert model.vocabulary.min_count == 3 and model.training["finished_epochs"] == 2
    assert "automatic" not in model.training
    als = firth.ALS(regularization=2.0, dim=4).fit(ratings())
    assert als.method.regularization == 2.0 and "automatic" not in als.training


def test_words_of_a_topic_are_neighbors_after_training_on_sixty_texts(topics, texts):
    """With 5 epochs, the default of large texts, the vectors stay close to their random initial values."""
    words = {
        word: max(topic_counts, key=topic_counts.get)
        for word, topic_counts in by_topic(topics).items()
        if sum(topic_counts.values()) >= 6 and max(topic_counts.values()) >= 0.9 * sum(topic_counts.values())
    }

    def purity(model):
        keys = [word for word in words if word in model.vectors]
        unit = model.vectors.matrix[[model.vectors.row(word) for word in keys]]
        unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        cosines = unit @ unit.T - 9 * np.eye(len(keys))
        neighbors = np.argsort(-cosines, axis=1)[:, :3]
        labels = np.array([words[word] for word in keys])
        return float((labels[neighbors] == labels[:, None]).mean())

    assert purity(firth.SkipGram().fit(texts)) > 0.8 > 0.6 > purity(firth.SkipGram(epochs=5).fit(texts))


def by_topic(topics):
    counts: dict[str, dict[str, int]] = {}
    for document in topics:
        for word in document.text.split():
            topic_counts = counts.setdefault(word, {})
            topic_counts[document.label] = topic_counts.get(document.label, 0) + 1
    return counts


def ratings(users=40, items=12):
    random = np.random.default_rng(3)
    return firth.Interactions(
        [
            (f"u{user}", f"i{2 * int(item) + user % 2}", 1.0)
            for user in range(users)
            for item in random.permutation(items)[:4]
        ]
    )


def test_small_graphs_draw_negative_samples_for_each_pair():
    edges = [(str(a), str((a + step) % 30)) for a in range(30) for step in (1, 2)]
    model = firth.Node2Vec(dim=8, walks_per_node=2, walk_length=10).fit(edges)
    assert model.training["automatic"] == {"negatives": 5, "share_negatives": False}
    model = firth.Node2Vec(dim=8, walks_per_node=2, walk_length=10, share_negatives=True).fit(edges)
    assert model.training["automatic"] == {"negatives": 10}


def test_small_texts_get_small_batches(texts):
    model = firth.GPT(layers=1, dim=16, heads=1, context_length=16, vocabulary_size=300, epochs=1).fit(texts[:8])
    assert model.training["automatic"] == {"batch_tokens": 512}


# ---- nothing was learned ----


@pytest.mark.parametrize(
    "method",
    [
        firth.SkipGram(dim=8, learning_rate=1e-9, epochs=1),
        firth.CBOW(dim=8, learning_rate=1e-9, epochs=1, loss="hierarchical"),
        firth.SkipGram(dim=8, learning_rate=1e-9, epochs=1, loss="softmax"),
        firth.FastText(dim=8, learning_rate=1e-9, epochs=1, buckets=1000),
        firth.Doc2Vec(dim=8, learning_rate=1e-9, epochs=1),
        firth.GloVe(dim=8, learning_rate=1e-9, epochs=1),
        firth.GPT(layers=1, dim=16, heads=1, context_length=16, vocabulary_size=300, epochs=1, learning_rate=1e-9),
        firth.BERT(size="tiny", dim=16, vocabulary_size=300, epochs=1, learning_rate=1e-9, context_length=32),
    ],
    ids=lambda method: f"{type(method).__name__}",
)
def test_a_loss_that_did_not_fall_is_noted(method, texts):
    assert "nothing_learned" in codes(lambda: method.fit(texts))


@pytest.mark.parametrize("method", [firth.SkipGram, firth.CBOW, firth.FastText, firth.Doc2Vec, firth.GloVe])
def test_defaults_learn_without_a_note(method, texts):
    models = []
    assert "nothing_learned" not in codes(lambda: models.append(method(dim=8).fit(texts)))
    assert models[0].training["trained_loss"] < 0.9 * models[0].training["untrained_loss"]


def test_recommenders_that_learned_nothing_are_noted():
    assert "nothing_learned" in codes(lambda: firth.BPR(dim=4, learning_rate=1e-9, epochs=1).fit(ratings()))
    assert "nothing_learned" in codes(lambda: firth.ALS(dim=4, regularization=1e5).fit(ratings()))
    for method in (firth.BPR(dim=4), firth.ALS(dim=4), firth.Item2Vec(dim=4)):
        assert "nothing_learned" not in codes(lambda method=method: method.fit(ratings()))
    dae = firth.MultDAE(dim=4, epochs=1, learning_rate=1e-9, held_out=0.3, dropout=0.0)
    popular = [
        (f"u{user}", f"i{item}", 1.0) for user in range(40) for item in range(24) if item < 4 or item % 20 == user % 20
    ]
    assert "nothing_learned" in codes(lambda: dae.fit(popular))


def test_walks_that_learned_nothing_are_noted():
    edges = [(str(a), str((a + step) % 30)) for a in range(30) for step in (1, 2)]
    assert "nothing_learned" in codes(
        lambda: firth.DeepWalk(dim=8, walks_per_node=1, walk_length=5, learning_rate=1e-9).fit(edges)
    )
    assert "nothing_learned" not in codes(lambda: firth.DeepWalk(dim=8).fit(edges))


def test_a_translator_is_compared_with_token_frequencies():
    pairs = [(one, two) for one, two, *_ in World(seed=11).translations(60)]
    method = firth.Seq2Seq(layers=1, dim=16, heads=1, vocabulary_size=400, epochs=1, learning_rate=1e-9, held_out=0.2)
    models = []
    assert "nothing_learned" in codes(lambda: models.append(method.fit(pairs)))
    assert 0 < models[0].training["baseline_loss"] < math.log(len(models[0].tokenizer)) + 0.5


def test_continuing_from_a_trained_model_is_not_noted(texts):
    first = firth.SkipGram(dim=8).fit(texts)
    assert codes(lambda: firth.SkipGram(dim=8, epochs=1, learning_rate=1e-9).fit(texts, start=first)) == []


# ---- ratings ----


def stars(users):
    rows = World(seed=11).ratings(users, 60, 20)
    return [
        (str(user), str(item), float(rating))
        for user, item, rating in zip(rows.users, rows.items, rows.ratings, strict=True)
    ]


def test_rating_factors_report_their_held_out_error_with_baselines():
    """The final model is trained on all ratings; the error is that of one trained without the held-out ratings."""
    ratings = stars(150)
    model = firth.RatingFactors(dim=8).fit(ratings)
    score = model.training["held_out_score"]
    assert score["metric"] == "rmse" and list(score["baselines"]) == ["mean", "user and item biases"]
    assert score["score"] < score["baselines"]["user and item biases"] < score["baselines"]["mean"]
    assert score["learned"] is True and score["weaker"] is False
    assert score["rows"] == pytest.approx(0.1 * model.training["pairs"], rel=0.1)
    alone = firth.RatingFactors(dim=8, held_out=0.0).fit(ratings)
    assert "held_out_score" not in alone.training
    np.testing.assert_array_equal(model.tables["users"].matrix, alone.tables["users"].matrix)


def test_rating_factors_of_noise_learn_nothing():
    random = np.random.default_rng(4)
    noise = [(f"u{user}", f"i{item}", float(random.integers(1, 6))) for user in range(60) for item in range(20)]
    assert "nothing_learned" in codes(lambda: firth.RatingFactors(dim=8).fit(noise))
    ratings = random.normal(3, 1, 50)
    comparison = compare_ratings(ratings, ratings + random.normal(0, 0.5, 50), 3.0, ratings + 0.1)
    assert comparison.learned and comparison.weaker and comparison.baselines["user and item biases"] == approx(0.1)
    assert comparison.baselines["mean"] == approx(np.sqrt(np.mean((ratings - 3) ** 2)))
