"""LSA: a worked example, comparison with scikit-learn, and topics of the synthetic corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusing import refuses, warns_code
from sklearn.decomposition import TruncatedSVD

import firth
from firth.data.world import World
from firth.training import truncated_svd as svd

WORLD = World(seed=21)


@pytest.fixture(scope="module")
def topics():
    return list(WORLD.topics(1500))


@pytest.fixture(scope="module")
def sentences():
    return list(WORLD.sentences(1200))


def test_worked_example():
    """Two blocks without common words: x and y occur in two documents, z three times in one.

    A = [[1, 1, 0], [1, 1, 0], [0, 0, 3]]: the first singular value is 3 with U = z, the second 2 with U = (x + y)/√2.
    """
    options: dict[str, Any] = {"idf": "none", "norm": "none", "power": 0.0}
    model = firth.LSA(dim=2, **options).fit(["x y", "x y", "z z z"])
    np.testing.assert_allclose(model.singular_values, [3, 2], rtol=1e-6)
    np.testing.assert_allclose(model.words["z"], [1, 0], atol=1e-6)
    np.testing.assert_allclose(model.words["x"], [0, 0.5**0.5], atol=1e-6)
    np.testing.assert_allclose(model.documents["1"], [0, 0.5**0.5], atol=1e-6)
    np.testing.assert_allclose(model.explained_variance, [9 / 13, 4 / 13], rtol=1e-6)
    assert model.training["error"] == pytest.approx(0, abs=1e-3)
    one = firth.LSA(dim=1, **options).fit(["x y", "x y", "z z z"])
    assert one.training["error"] == pytest.approx(2, rel=1e-6)  # Eckart & Young: the next singular value
    assert one.training["operator_error_bound"] == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("solver", ["exact", "random, fewer words", "random, fewer documents"])
def test_folding_in_a_document_of_the_corpus_gives_its_vector(power, solver, sentences, monkeypatch):
    monkeypatch.setattr(svd, "MAX_EXACT_CELLS", 1 << 22 if solver == "exact" else 0)
    texts = sentences[:100] if solver.endswith("documents") else sentences
    model = firth.LSA(dim=20, power=power).fit(texts)
    assert (len(texts) < len(model.words)) == solver.endswith("documents")
    np.testing.assert_allclose(model.embed(texts), model.documents.matrix, atol=1e-4)
    assert model.neighbors(texts[7], 1)[0].score == pytest.approx(1, abs=1e-4)


def test_equals_scikit_learns(sentences):
    model = firth.LSA(dim=10).fit(sentences)
    matrix = firth.TfIdf().fit(sentences).matrix
    peer = TruncatedSVD(10, algorithm="arpack")
    documents = peer.fit_transform(matrix.astype(np.float64))
    np.testing.assert_allclose(model.singular_values, peer.singular_values_, rtol=1e-4)
    signs = np.sign((documents * model.documents.matrix).sum(axis=0))
    np.testing.assert_allclose(model.documents.matrix, documents * signs, atol=2e-3)
    np.testing.assert_allclose(model.words.matrix, (peer.components_.T * peer.singular_values_) * signs, atol=2e-3)


def nearest_topic(vectors: firth.Vectors, labels: list[str]) -> float:
    """Return how often the nearest document has the same topic."""
    nearest = [vectors.neighbors(key, 1)[0].key for key in vectors.keys[:300]]
    return float(np.mean([labels[int(key) - 1] == label for key, label in zip(nearest, labels, strict=False)]))


def test_nearest_documents_have_the_same_topic(topics):
    labels = [document.label for document in topics]
    model = firth.LSA(dim=30).fit([document.text for document in topics])
    noise = np.random.default_rng(0).normal(size=model.documents.matrix.shape)
    assert nearest_topic(model.documents, labels) > 0.9
    assert nearest_topic(firth.Vectors(model.documents.keys, noise), labels) < 0.3  # baseline: random vectors


def test_nearest_words_have_the_same_topic(topics):
    model = firth.LSA(dim=30, power=0.5).fit([document.text for document in topics])
    truth = {word: topic for topic, words in WORLD.ground_truth.topics.items() for word in words if word in model.words}
    keys = list(truth)
    known = firth.Vectors(keys, np.stack([model.words[word] for word in keys]))
    right = np.mean([truth[known.neighbors(word, 1)[0].key] == truth[word] for word in keys])
    shuffled = firth.Vectors(keys, known.matrix[np.random.default_rng(0).permutation(len(keys))])
    chance = np.mean([truth[shuffled.neighbors(word, 1)[0].key] == truth[word] for word in keys])
    assert chance < 0.3 < 0.9 < right  # baseline: the same vectors in random order


def test_saved_and_loaded(sentences, tmp_path):
    model = firth.LSA(dim=8, tf="bm25", idf="bm25").fit(sentences)
    model.save(tmp_path / "model")
    firth.verify(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.LSA)
    assert list(again.tables) == ["words", "documents"]
    assert again.documents.keys == model.documents.keys
    np.testing.assert_array_equal(again.embed(sentences[:5]), model.embed(sentences[:5]))
    np.testing.assert_array_equal(again.explained_variance, model.explained_variance)
    assert again.vectors.neighbors("the") == model.words.neighbors("the")


def test_result_does_not_depend_on_threads(sentences, monkeypatch):
    monkeypatch.setattr(svd, "MAX_EXACT_CELLS", 0)
    results = {firth.LSA(dim=8).fit(sentences, firth.Run(threads=t)).words.matrix.tobytes() for t in (1, 2)}
    assert len(results) == 1


def test_unknown_words_are_counted(sentences):
    pooled = firth.LSA(dim=4).fit(sentences).embed_with_counts(["the king", "zzz", ""])
    assert pooled.known.tolist() == [2, 0, 0] and pooled.unknown.tolist() == [0, 1, 0]
    assert not pooled.matrix[1:].any()


def test_invalid_input_is_refused():
    with warns_code("low_rank"):
        model = firth.LSA().fit(["a b", "c d", ""])
    assert model.words.matrix.shape == (4, 2)
    with refuses("empty_data", documents=2, idf="plain"):
        firth.LSA().fit(["same words", "same words"])
    with refuses("invalid_value", method="LSA", name="dim", problem="must be at most 5000", got=5001):
        firth.LSA(dim=5001)
    parts = model.parts()
    arrays = {**parts.arrays, "words": parts.arrays["words"][:, :1]}
    with refuses("damaged_model", name="documents"):
        type(model).from_parts(model.method, firth.core.model.Parts(arrays, parts.documents), {})
