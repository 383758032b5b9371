"""GloVe: analogies of the synthetic corpus are recovered; runs are reproducible and can be resumed and continued."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses

import firth
from firth.data.cooccurrence import Cooccurrence
from firth.data.world import World
from firth.training import epoch_loop as loop


@pytest.fixture(scope="module")
def world() -> World:
    return World(seed=77)  # no option was tuned on this seed


@pytest.fixture(scope="module")
def text(world: World) -> list[str]:
    """One long document: GloVe only trains on observed pairs, so windows must extend over sentences."""
    return [" ".join(world.sentences(40_000))]


@pytest.fixture(scope="module")
def small(world: World) -> firth.Tokens:
    return firth.data.tokens.read_tokens([" ".join(world.sentences(3000))], min_count=2)


def accuracy(vectors: firth.Vectors, world: World) -> float:
    questions = [question for section in world.analogies(most=60).values() for question in section]
    return float(np.mean([vectors.analogy(a, b, c)[0].key == d for a, b, c, d in questions]))


@pytest.mark.parametrize("options", [{}, {"add_contexts": False, "epochs": 25}])
def test_synthetic_analogies_are_recovered(options, text, world):
    model = firth.GloVe(dim=50, **options).fit(text)
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert accuracy(model.vectors, world) > 0.75
    assert accuracy(random, world) < 0.05


def test_loss_falls_and_products_fit_log_counts(small):
    counted = Cooccurrence.count(small, window=10)
    model = firth.GloVe(dim=30, epochs=40, add_contexts=False).fit(counted)
    losses = [epoch["loss"] for epoch in model.training["epochs"]]
    assert losses == sorted(losses, reverse=True)
    matrix = counted.matrix.tocoo()
    products = (model.vectors.matrix[matrix.row] * model.outputs[matrix.col]).sum(axis=1)
    products += model.biases[matrix.row, 0] + model.biases[matrix.col, 1]
    residuals = products - np.log(matrix.data)
    weights = np.minimum(1, (matrix.data / 10) ** 0.75)
    final = (0.5 * weights * residuals**2).mean()
    assert final < losses[-1] < losses[0]  # the mean over an epoch lags behind its end
    assert final > 0.5 * losses[-1]
    assert np.corrcoef(products[matrix.data >= 10], np.log(matrix.data[matrix.data >= 10]))[0, 1] > 0.95


def test_result_does_not_depend_on_threads(small):
    results = {
        firth.GloVe(dim=20, epochs=2).fit(small, firth.Run(threads=threads)).vectors.matrix.tobytes()
        for threads in (1, 2, 5)
    }
    assert len(results) == 1
    assert firth.GloVe(dim=20, epochs=2).fit(small, firth.Run(seed=2)).vectors.matrix.tobytes() not in results


def test_a_resumed_run_equals_an_uninterrupted_one(small, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SLICE_SECONDS", 0.0005)
    method = firth.GloVe(dim=20, epochs=3)
    notes = Notes()
    run = firth.Run(threads=2, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=notes)
    uninterrupted = method.fit(small, firth.Run(threads=1))
    break_off(lambda: method.fit(small, run), 3, every=5)
    resumed = method.fit(small, run)
    assert "Resuming from a checkpoint" in notes.notes[-1]
    for name, array in uninterrupted.parts().arrays.items():
        assert array.tobytes() == resumed.parts().arrays[name].tobytes()
    losses = [[epoch["loss"] for epoch in model.training["epochs"]] for model in (resumed, uninterrupted)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    with refuses("other_run", folder=tmp_path) as refused:
        firth.GloVe(dim=20, epochs=3, x_max=5.0).fit(small, run)
    assert refused.value.values["difference"].startswith("x_max ")


def test_ctrl_c_leaves_a_checkpoint(small, tmp_path):
    class Interrupting(Notes):
        def step(self, done, **metrics):
            if "loss" in metrics:  # counting pairs reports none
                raise KeyboardInterrupt

    run = firth.Run(checkpoint_every=1000, checkpoint_folder=tmp_path, report=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        firth.GloVe(dim=8).fit(small, run)
    assert (tmp_path / "checkpoint.json").exists()


def test_a_time_budget_ends_training(small):
    notes = Notes()
    model = firth.GloVe(dim=50, epochs=100_000).fit(small, firth.Run(budget=0.3, deterministic=True, report=notes))
    assert model.training["finished_epochs"] < 100_000
    assert 0.3 <= model.training["seconds"] < 5
    assert "nondeterministic_budget" in notes.codes


@pytest.mark.parametrize("options", [{}, {"add_contexts": False}, {"unknown": True}])
def test_continued_training(options, world):
    method = firth.GloVe(dim=20, min_count=2, epochs=20, **options)
    first = method.fit([" ".join(world.sentences(3000))])
    more = [" ".join([*world.sentences(1000), *["zorblax meets zorblax and gribnif"] * 40])]
    second = method.fit(more, start=first)
    old = len(first.vectors) - method.unknown
    assert list(second.vectors.keys[:old]) == list(first.vectors.keys[:old])
    assert {"zorblax", "gribnif"} <= set(second.vectors.keys[old:])
    moved = np.linalg.norm(second.vectors.matrix[:old] - first.vectors.matrix[:old], axis=1)
    afresh = method.fit(more)
    shared = [key for key in afresh.vectors.keys if key in first.vectors]
    other = np.linalg.norm([afresh.vectors[key] - first.vectors[key] for key in shared], axis=1)
    assert 0 < np.median(moved) < np.median(other) / 2  # vectors were continued, not retrained
    with refuses("incompatible_start", dim=21, got=first):
        firth.GloVe(dim=21).fit(more, start=first)
    with refuses("unsupported_start", method="GloVe"):
        method.fit(Cooccurrence.count(firth.Tokens.from_lists([["a", "b"]])), start=first)


def test_row_of_the_unknown_word(small, tmp_path: Path):
    method = firth.GloVe(dim=10, epochs=2, unknown=True)
    model, plain = method.fit(small), firth.GloVe(dim=10, epochs=2).fit(small)
    assert model.vectors.keys[-1] == "<unk>"
    assert np.array_equal(model.vectors.matrix[:-1], plain.vectors.matrix)
    np.testing.assert_allclose(model.vectors["<unk>"], plain.vectors.matrix[-100:].mean(axis=0), rtol=1e-5)
    firth.write_vectors(model.vectors, tmp_path / "vectors.txt", format="glove")
    read = firth.read_vectors(tmp_path / "vectors.txt")
    assert read.keys[-1] == "<unk>"
    with refuses("duplicate_name", unknown="<unk>"):
        method.fit(firth.Tokens.from_lists([["<unk>", "b"] * 9]))


def test_counts_in_stanfords_format_give_the_same_model(small, tmp_path: Path):
    counted = Cooccurrence.count(small, window=10)
    counted.write(tmp_path / "cooccurrence.bin")
    read = Cooccurrence.read(tmp_path / "cooccurrence.bin", counted.vocabulary)
    method = firth.GloVe(dim=10, epochs=2, min_count=2, weighting="harmonic")
    assert np.array_equal(method.fit(read).vectors.matrix, method.fit(small).vectors.matrix)


def test_saved_and_loaded(small, tmp_path: Path):
    model = firth.GloVe(dim=12, epochs=2).fit(small)
    loaded = firth.load(model.save(tmp_path / "glove"), firth.GloVe)
    word = model.vectors.keys[40]
    assert np.array_equal(loaded.biases, model.biases)
    assert np.array_equal(loaded.embed([f"{word} qqqq"]), model.embed([word]))
    assert list(loaded.tables) == ["words", "contexts"]


def test_invalid_training_is_refused(small):
    with refuses("empty_vocabulary", method="GloVe", words=2, min_count=1):
        firth.GloVe(min_count=1).fit(["a", "b"])
    with refuses("diverged") as refused:
        firth.GloVe(learning_rate=100, dim=8, epochs=500).fit(small)
    assert "learning_rate=100" in str(refused.value)
    with refuses("unsupported_device", method="GloVe"):
        firth.GloVe().fit(["a b"], firth.Run(device="cuda"))
    other = firth.SkipGram(epochs=1).fit(small)
    with refuses("incompatible_start", dim=100, got=other):
        firth.GloVe().fit(small, start=other)


def test_a_vocabulary_of_one_word():
    one = firth.GloVe(min_count=1, dim=2, epochs=200, weighting="harmonic").fit(["a a a"])  # X = 2 (1 + 1 + 1/2)
    word = one.vectors.matrix[0] - one.outputs[0]
    assert word @ one.outputs[0] + one.biases.sum() == pytest.approx(np.log(5), abs=0.1)
