"""Prediction of masked words: the formula of each loss, and a comparison with predicting frequent words."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.data.vocabulary import Vocabulary
from firth.data.world import World
from firth.kernels.predict import huffman_paths
from firth.words.window_model import Word2VecModel

WORDS, COUNTS = ["a", "b", "c", "d"], np.array([8, 4, 2, 1])
INPUTS = np.array([[1, 0], [0, 1], [1, 1], [-1, 2]], np.float32)
OUTPUTS = np.array([[0.5, 0], [0, 0.5], [1, -1], [2, 1]], np.float32)


def model(method: firth.SkipGram | firth.CBOW, outputs: np.ndarray = OUTPUTS) -> Word2VecModel:
    return Word2VecModel(method, Vocabulary(WORDS, COUNTS), INPUTS, outputs, {})


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(scores) / np.exp(scores).sum())


def probabilities(predicted: list[tuple[str, float]]) -> list[float]:
    return [dict(predicted)[word] for word in WORDS]


def test_one_context_word_gives_the_softmax_of_its_scores():
    """h = xW, y = hW', softmax(y): with x the one-hot vector of "a", h is its row of W."""
    hidden = np.eye(4)[0] @ INPUTS
    (predicted,) = model(firth.SkipGram(dim=2, loss="softmax")).fill("a [MASK]", k=4)
    np.testing.assert_allclose(probabilities(predicted), softmax(hidden @ OUTPUTS.T), rtol=1e-6)
    assert [word for word, _ in predicted] == ["d", "c", "a", "b"]


def test_scores_of_negative_sampling_are_corrected_by_the_sampling_probability():
    """A score is log p(word | context) − log(k · noise), so p is proportional to noise · exp(score)."""
    noise = COUNTS**0.75
    (predicted,) = model(firth.SkipGram(dim=2)).fill("b [MASK]", k=4)
    np.testing.assert_allclose(probabilities(predicted), softmax(np.log(noise) + OUTPUTS @ INPUTS[1]), rtol=1e-6)


def test_hierarchical_softmax_multiplies_the_branches_of_a_path():
    nodes = np.array([[1, -1], [0.5, 2], [-1, 0]], np.float32)
    paths = huffman_paths(COUNTS)
    expected = np.ones(4)
    for word in range(4):
        for step in range(paths.starts[word], paths.starts[word + 1]):
            sign = -1 if paths.turns[step] else 1
            expected[word] /= 1 + np.exp(-sign * (nodes[paths.nodes[step]] @ INPUTS[2]))
    assert expected.sum() == pytest.approx(1)
    (predicted,) = model(firth.SkipGram(dim=2, loss="hierarchical"), nodes).fill("c [MASK]", k=4)
    np.testing.assert_allclose(probabilities(predicted), expected, rtol=1e-6)


def test_skip_gram_uses_the_geometric_mean_and_cbow_the_mean_vector():
    each = [softmax(OUTPUTS @ INPUTS[row]) for row in (0, 1)]
    both = np.sqrt(each[0] * each[1])
    (predicted,) = model(firth.SkipGram(dim=2, loss="softmax")).fill("a [MASK] b", k=4)
    np.testing.assert_allclose(probabilities(predicted), both / both.sum(), rtol=1e-6)
    for combine, hidden in (("mean", INPUTS[:2].mean(axis=0)), ("sum", INPUTS[:2].sum(axis=0))):
        (predicted,) = model(firth.CBOW(dim=2, loss="softmax", combine=combine)).fill("a [MASK] b", k=4)
        np.testing.assert_allclose(probabilities(predicted), softmax(OUTPUTS @ hidden), rtol=1e-6)


def test_windows_contain_known_words_of_the_same_text():
    near = model(firth.CBOW(dim=2, window=2))
    assert near.fill("b b a xyzzy a [MASK] c") == near.fill("a a [MASK] c")
    assert near.fill("a [MASK]", other="[MASK] c") == [near.fill("a [MASK]")[0], near.fill("[MASK] c")[0]]
    assert len(near.fill("a [MASK] b [MASK] c", k=2)) == 2


@pytest.mark.parametrize(
    ("text", "k", "code", "values"),
    [
        ("a b", 5, "missing_mask", {"mask": "[MASK]", "text": "a b"}),
        ("[MASK]", 5, "empty_data", {"mask": "[MASK]", "text": "[MASK]"}),
        ("a [MASK]", 0, "invalid_value", {"option": "k", "got": 0}),
    ],
)
def test_texts_that_cannot_be_filled_are_refused(text, k, code, values):
    with refuses(code, **values):
        model(firth.CBOW(dim=2)).fill(text, k)


@pytest.mark.parametrize(
    "method",
    [firth.SkipGram(dim=30, epochs=5), firth.CBOW(dim=30, epochs=5), firth.CBOW(dim=30, loss="hierarchical", epochs=5)],
)
def test_masked_words_are_predicted_better_than_by_frequency(method):
    sentences = list(World(seed=77).sentences(8300))
    trained = method.fit(sentences[:8000], firth.Run(deterministic=True))
    frequent = {word for word, _ in zip(trained.vocabulary.tokens, range(10), strict=False)}
    correct = baseline = 0
    for text in sentences[8000:]:
        words = text.split()
        middle = len(words) // 2
        (predicted,) = trained.fill(" ".join([*words[:middle], "[MASK]", *words[middle + 1 :]]), k=10)
        correct += words[middle] in dict(predicted)
        baseline += words[middle] in frequent
    assert correct > 1.5 * baseline


def test_the_huffman_tree_of_a_continued_model_follows_from_its_counts():
    """Output nodes are only valid if the tree can be rebuilt from the counts that the model stores."""
    first = firth.Doc2Vec(dim=20, min_count=1, loss="hierarchical", epochs=30, subsample=0)
    run = firth.Run(deterministic=True)
    before = first.fit(firth.Corpus([(f"a{n}", "one two three four five six seven") for n in range(40)]), run)
    texts = [
        f"eight nine ten eleven {word} {word} {word}" for word in ("sun", "moon", "star", "rain") for _ in range(20)
    ]
    after = first.fit(firth.Corpus([(f"b{n}", text) for n, text in enumerate(texts)]), run, start=before)
    nearest = [after.documents.neighbors(row, 5) for row in after.embed(texts[::20])]
    right = [
        hit.key in {f"b{n}" for n in range(20 * group, 20 * group + 20)}
        for group, hits in enumerate(nearest)
        for hit in hits
    ]
    assert np.mean(right) > 0.8
