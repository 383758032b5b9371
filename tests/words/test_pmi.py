"""PMI: worked examples of associations, analogies of the synthetic corpus, saving and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusing import refuses, warns_code

import firth
from firth.core.model import Parts
from firth.data.cooccurrence import Cooccurrence
from firth.data.world import World
from firth.words.pmi import Association


@pytest.fixture(scope="module")
def world() -> World:
    return World(seed=77)  # no option was tuned on this seed


@pytest.fixture(scope="module")
def corpus(world: World) -> firth.Corpus:
    return firth.Corpus(list(world.sentences(40_000)))


TEXTS = ["heaven hell"] * 3 + ["the world", "the sea", "the sea", "the hell"]


def test_associations_of_a_worked_example():
    model = firth.PMI(dim=2, window=1, min_count=1).fit(TEXTS)
    # 7 documents of two words: N = 14 ordered pairs; n(heaven) = 3, n(hell) = 4, n(heaven, hell) = 3.
    (association,) = model.associations("heaven")
    assert association.context == "hell"
    assert association.count == 3
    assert association.pmi == pytest.approx(np.log2((3 / 14) / (3 / 14 * 4 / 14)))
    assert association.npmi == pytest.approx(association.pmi / -np.log2(3 / 14))
    assert [one.context for one in model.associations("the", by="count")] == ["sea", "hell", "world"]
    assert [one.context for one in model.associations("the", min_count=2)] == ["sea"]
    assert len(model.associations("the", 1)) == 1
    assert "context" in repr(model.associations("the"))
    with refuses("unknown_key", key="purgatory"):
        model.associations("purgatory")
    with refuses("invalid_value", option="by", choices="npmi, pmi, count", got="size"):
        model.associations("the", by="size")
    with refuses("invalid_value", option="k", got=0):
        model.associations("the", 0)


def test_npmi_of_inseparable_words_is_exactly_one():
    model = firth.PMI(dim=1, window=1, min_count=1, variant="npmi").fit(["ham eggs"] * 5 + ["the sea", "the sun"])
    assert model.associations("ham")[0].npmi == 1.0
    assert model.matrix.toarray().max() == 1.0


def accuracy(vectors: firth.Vectors, world: World) -> float:
    questions = [question for section in world.analogies(most=60).values() for question in section]
    return float(np.mean([vectors.analogy(a, b, c)[0].key == d for a, b, c, d in questions]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variant": "npmi"},
        {"variant": "shifted", "shift": 2.0, "power": 0.0},
        {"weighting": "dynamic", "add_contexts": True},
        {"subsample": 1e-3},
    ],
)
def test_synthetic_analogies_are_recovered(options, corpus, world):
    model = firth.PMI(**options).fit(corpus)
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert accuracy(model.vectors, world) > 0.75
    assert accuracy(random, world) < 0.05


def test_vectors_multiply_to_the_best_approximation(corpus):
    tokens = firth.data.tokens.read_tokens(firth.Corpus(list(World(seed=5).sentences(500))), min_count=3)
    model = firth.PMI(dim=10).fit(tokens)
    matrix = model.matrix.toarray()
    product = model.vectors.matrix @ model.tables["contexts"].matrix.T  # U √Σ (V √Σ)ᵀ
    exact = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(model.singular_values, exact[:10], rtol=1e-3)
    assert np.linalg.norm(matrix - product) == pytest.approx(np.sqrt((exact[10:] ** 2).sum()), rel=1e-3)
    flat = firth.PMI(dim=10, power=0.0).fit(tokens)
    np.testing.assert_allclose(flat.vectors.matrix.T @ flat.vectors.matrix, np.eye(10), atol=1e-4)
    both = firth.PMI(dim=10, add_contexts=True).fit(tokens)
    np.testing.assert_allclose(both.vectors.matrix, model.vectors.matrix + model.outputs, atol=1e-5)


def test_saved_and_loaded(corpus, tmp_path: Path):
    model = firth.PMI(dim=20, window=3).fit(corpus)
    loaded = firth.load(model.save(tmp_path / "pmi"), firth.PMI)
    word = model.vectors.keys[50]
    assert loaded.associations(word) == model.associations(word)
    assert (loaded.matrix != model.matrix).nnz == 0
    assert np.array_equal(loaded.embed([f"{word} qqqq"]), model.embed([word]))
    assert np.array_equal(loaded.singular_values, model.singular_values)
    assert list(loaded.tables) == ["words", "contexts"]


def test_damaged_counts_are_refused(tmp_path: Path):
    model = firth.PMI(dim=2, window=1, min_count=1).fit(TEXTS)
    parts = model.parts()
    for name, wrong, reported in (
        ("indices", np.full_like(parts.arrays["indices"], 99), "counts"),
        ("indptr", parts.arrays["indptr"][:-1], "counts"),
        ("word_sums", np.ones(3), "word_sums"),
        ("outputs", np.ones((5, 7), np.float32), "outputs"),
    ):
        damaged = Parts({**parts.arrays, name: wrong}, parts.documents)
        with refuses("damaged_model", name=reported):
            type(model).from_parts(model.method, damaged, {}).associations("the")


def test_result_does_not_depend_on_threads(corpus):
    models = [
        firth.PMI(dim=10).fit(corpus, firth.Run(threads=threads, memory=m)) for threads, m in [(1, ""), (3, "9MB")]
    ]
    assert models[0].counts.data.tobytes() == models[1].counts.data.tobytes()
    assert models[0].vectors.matrix.tobytes() == models[1].vectors.matrix.tobytes()


def test_training_on_a_cooccurrence(corpus):
    tokens = firth.data.tokens.read_tokens(corpus, min_count=5)
    counted = Cooccurrence.count(tokens, window=5, weighting="flat")
    from_counts, from_text = firth.PMI(dim=5).fit(counted), firth.PMI(dim=5).fit(tokens)
    assert np.array_equal(from_counts.vectors.matrix, from_text.vectors.matrix)


def test_pairs_of_small_weight_are_counted():
    model = firth.PMI(dim=2, window=4, min_count=1, weighting="dynamic").fit(["a b c d e", "b d"])
    assert model.counts[model.vectors.row("a"), model.vectors.row("e")] == 1 / 4
    assert "e" in {one.context for one in model.associations("a")}


def test_min_pair_does_not_change_marginal_counts():
    model = firth.PMI(dim=2, window=1, min_count=1, min_pair=2).fit(TEXTS)
    assert model.counts.data.min() == 2
    assert model.sums.total == 14
    assert model.associations("world") == []


def test_dimensions_are_limited_by_the_rank():
    with warns_code("low_rank"):
        model = firth.PMI(dim=9, window=1, min_count=1).fit(TEXTS)
    rank = np.linalg.matrix_rank(model.matrix.toarray())
    assert model.vectors.matrix.shape == (5, rank)


def test_invalid_training_is_refused():
    with refuses("empty_vocabulary", method="PMI", words=2):
        firth.PMI(min_count=1).fit(["a", "b"])
    with refuses("empty_data", min_pair=9):
        firth.PMI(min_count=1, min_pair=9).fit(TEXTS)
    with refuses("unsupported_start", method="PMI"):
        firth.PMI(min_count=1).fit(TEXTS, start=firth.PMI(min_count=1, dim=1).fit(TEXTS))
    with refuses("unsupported_device", method="PMI"):
        firth.PMI(min_count=1).fit(TEXTS, firth.Run(device="cuda"))
    with refuses("out_of_memory", memory="1KB", words=2):
        firth.PMI(min_count=1).fit(firth.Tokens.from_lists([["a", "b"]]), firth.Run(memory="1KB"))
    with warns_code("zero_vectors"):  # a vocabulary of one word
        model = firth.PMI(min_count=1, dim=1).fit(["a a a"])
    assert model.associations("a") == [Association("a", pmi=0.0, npmi=1.0, count=6.0)]
