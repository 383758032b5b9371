"""What word models put into a blank: the formula of each loss by hand, and better guesses than the frequent words."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth.data.vocabulary import Vocabulary
from firth.data.world import World
from firth.kernels.predict import huffman_paths
from firth.words.window_model import Word2VecModel

WORDS, COUNTS = ["a", "b", "c", "d"], np.array([8, 4, 2, 1])
INPUTS = np.array([[1, 0], [0, 1], [1, 1], [-1, 2]], np.float32)
OUTPUTS = np.array([[0.5, 0], [0, 0.5], [1, -1], [2, 1]], np.float32)


def model(method: firth.Method, outputs: np.ndarray = OUTPUTS) -> Word2VecModel:
    return Word2VecModel(method, Vocabulary(WORDS, COUNTS), INPUTS, outputs, {})


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum()


def chances(found: list[tuple[str, float]]) -> list[float]:
    return [dict(found)[word] for word in WORDS]


def test_one_neighbour_is_the_softmax_of_its_scores():
    """h = xW, y = hW', softmax(y): with x the one-hot code of "a", h is its row of W."""
    hidden = np.eye(4)[0] @ INPUTS
    (found,) = model(firth.SkipGram(dim=2, loss="softmax")).fill("a [MASK]", k=4)
    np.testing.assert_allclose(chances(found), softmax(hidden @ OUTPUTS.T), rtol=1e-6)
    assert [word for word, _ in found] == ["d", "c", "a", "b"]


def test_scores_against_noise_get_the_noise_back():
    """A score is log p(word | neighbour) − log(k · noise), so p is proportional to noise · exp(score)."""
    noise = COUNTS**0.75
    (found,) = model(firth.SkipGram(dim=2)).fill("b [MASK]", k=4)
    np.testing.assert_allclose(chances(found), softmax(np.log(noise) + OUTPUTS @ INPUTS[1]), rtol=1e-6)


def test_the_tree_multiplies_the_turns_of_a_path():
    nodes = np.array([[1, -1], [0.5, 2], [-1, 0]], np.float32)
    paths = huffman_paths(COUNTS)
    expected = np.ones(4)
    for word in range(4):
        for step in range(paths.starts[word], paths.starts[word + 1]):
            sign = -1 if paths.turns[step] else 1
            expected[word] /= 1 + np.exp(-sign * (nodes[paths.nodes[step]] @ INPUTS[2]))
    assert expected.sum() == pytest.approx(1)
    (found,) = model(firth.SkipGram(dim=2, loss="hierarchical"), nodes).fill("c [MASK]", k=4)
    np.testing.assert_allclose(chances(found), expected, rtol=1e-6)


def test_skip_gram_takes_the_geometric_mean_and_cbow_the_mean_vector():
    each = [softmax(OUTPUTS @ INPUTS[row]) for row in (0, 1)]
    both = np.sqrt(each[0] * each[1])
    (found,) = model(firth.SkipGram(dim=2, loss="softmax")).fill("a [MASK] b", k=4)
    np.testing.assert_allclose(chances(found), both / both.sum(), rtol=1e-6)
    for combine, hidden in (("mean", INPUTS[:2].mean(axis=0)), ("sum", INPUTS[:2].sum(axis=0))):
        (found,) = model(firth.CBOW(dim=2, loss="softmax", combine=combine)).fill("a [MASK] b", k=4)
        np.testing.assert_allclose(chances(found), softmax(OUTPUTS @ hidden), rtol=1e-6)


def test_a_window_takes_known_words_of_its_own_text():
    near = model(firth.CBOW(dim=2, window=2))
    assert near.fill("b b a xyzzy a [MASK] c") == near.fill("a a [MASK] c")
    assert near.fill("a [MASK]", other="[MASK] c") == [near.fill("a [MASK]")[0], near.fill("[MASK] c")[0]]
    assert len(near.fill("a [MASK] b [MASK] c", k=2)) == 2


@pytest.mark.parametrize(
    ("text", "k", "message"),
    [
        ("a b", 5, "There is no \\[MASK\\]"),
        ("[MASK]", 5, "no word that this model knows"),
        ("a [MASK]", 0, "k must be"),
    ],
)
def test_what_cannot_be_filled_is_refused(text, k, message):
    with pytest.raises(firth.FirthError, match=message):
        model(firth.CBOW(dim=2)).fill(text, k)


@pytest.mark.parametrize(
    "method",
    [firth.SkipGram(dim=30, epochs=5), firth.CBOW(dim=30, epochs=5), firth.CBOW(dim=30, loss="hierarchical", epochs=5)],
)
def test_hidden_words_of_the_world_are_guessed_better_than_by_frequency(method):
    sentences = list(World(seed=77).sentences(8300))
    learned = method.fit(sentences[:8000], firth.Run(deterministic=True))
    frequent = {word for word, _ in zip(learned.vocabulary.tokens, range(10), strict=False)}
    found = known = 0
    for text in sentences[8000:]:
        words = text.split()
        place = len(words) // 2
        (guesses,) = learned.fill(" ".join([*words[:place], "[MASK]", *words[place + 1 :]]), k=10)
        found += words[place] in dict(guesses)
        known += words[place] in frequent
    assert found > 1.5 * known


def test_a_tree_that_went_on_is_the_one_the_model_tells():
    """Nodes mean what they meant in training only if the tree can be made again from the model's counts."""
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
