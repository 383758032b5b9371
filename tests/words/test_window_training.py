"""SkipGram and CBOW: analogies of the synthetic corpus are recovered; runs are reproducible and can be resumed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses

import firth
from firth.data.tokens import read_tokens
from firth.data.world import World
from firth.training import epoch_loop as loop
from firth.words import window_training as predict
from firth.words.window_model import Word2VecModel

SEED = 77  # no option was tuned on this seed


@pytest.fixture(scope="module")
def world() -> World:
    return World(seed=SEED)


@pytest.fixture(scope="module")
def corpus(world: World) -> firth.Corpus:
    return firth.Corpus(list(world.sentences(40_000)))


@pytest.fixture(scope="module")
def small(world: World) -> firth.Tokens:
    return read_tokens(firth.Corpus(list(world.sentences(3000))), min_count=2, run=firth.Run())


def accuracy(vectors: firth.Vectors, world: World) -> float:
    """Return the accuracy on the analogies of the synthetic corpus, over all sections."""
    correct = total = 0
    for questions in world.analogies(most=60).values():
        for a, b, c, d in questions:
            total += 1
            correct += vectors.analogy(a, b, c)[0].key == d
    return correct / total


METHODS = {
    "skip-gram, negative sampling": firth.SkipGram(dim=50, epochs=5),
    "skip-gram, negatives not shared": firth.SkipGram(dim=50, share_negatives=False, epochs=5),
    "skip-gram, hierarchical softmax": firth.SkipGram(dim=50, loss="hierarchical", epochs=5),
    "skip-gram, softmax": firth.SkipGram(dim=30, loss="softmax", epochs=2, subsample=1e-4, learning_rate=0.1),
    "CBOW, negative sampling": firth.CBOW(dim=50, epochs=10),
    "CBOW, hierarchical softmax": firth.CBOW(dim=50, loss="hierarchical", epochs=10),
    "CBOW, sum": firth.CBOW(dim=50, combine="sum", learning_rate=0.025, epochs=10),
}


@pytest.mark.parametrize("name", METHODS)
def test_synthetic_analogies_are_recovered(name, corpus, world):
    model = METHODS[name].fit(corpus)
    assert isinstance(model, Word2VecModel)
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert accuracy(model.vectors, world) > 0.75
    assert accuracy(random, world) < 0.05  # baseline: random vectors


def test_word_similarities_are_recovered(corpus, world):
    model = firth.SkipGram(dim=50, epochs=5).fit(corpus)
    pairs = [firth.evaluate.Pair(*pair) for pair in world.similarities()]
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert firth.evaluate.word_similarity(model.vectors, pairs).spearman > 0.7
    assert abs(firth.evaluate.word_similarity(random, pairs).spearman) < 0.2


@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
@pytest.mark.parametrize("method", [firth.SkipGram, firth.CBOW])
def test_loss_falls_from_its_untrained_value(method, loss, small):
    metrics = method(dim=16, loss=loss, epochs=4, held_out=0.1, subsample=0).fit(small).training
    losses = [epoch["loss"] for epoch in metrics["epochs"]]
    held_out = [epoch["held_out_loss"] for epoch in metrics["epochs"]]
    assert losses == sorted(losses, reverse=True)
    assert held_out[-1] < held_out[0]
    # Untrained outputs are zero: every one of k+1 decisions costs log 2, the exact softmax log V.
    words = len(small.vocabulary)
    untrained = {"negative": 6 * math.log(2), "softmax": math.log(words), "hierarchical": math.log(words) * 1.05}[loss]
    assert 0 < losses[-1] < losses[0] < untrained


@pytest.mark.parametrize(
    "method",
    [
        firth.SkipGram(dim=24, epochs=5),
        firth.CBOW(dim=24, loss="hierarchical", epochs=5),
        firth.SkipGram(dim=8, loss="softmax", epochs=1),
    ],
)
def test_deterministic_runs_do_not_depend_on_threads(method, small):
    results = {
        method.fit(small, firth.Run(threads=threads, deterministic=True)).vectors.matrix.tobytes()
        for threads in (1, 2, 4)
    }
    assert len(results) == 1
    other = method.fit(small, firth.Run(threads=2, deterministic=True, seed=2)).vectors.matrix.tobytes()
    assert other not in results


@pytest.mark.parametrize(
    "method", [firth.SkipGram(dim=24, held_out=0.1, epochs=5), firth.SkipGram(dim=8, share_negatives=False, epochs=5)]
)
def test_a_resumed_run_equals_an_uninterrupted_one(method, small, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SLICE_SECONDS", 0.001)
    notes = Notes()
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=notes)
    uninterrupted = method.fit(small, firth.Run(threads=1, deterministic=True))
    break_off(lambda: method.fit(small, run), 3)
    resumed = method.fit(small, run)
    assert "Resuming from a checkpoint" in notes.notes[-1]
    assert resumed.vectors.matrix.tobytes() == uninterrupted.vectors.matrix.tobytes()
    assert resumed.outputs.tobytes() == uninterrupted.outputs.tobytes()
    losses = [[epoch["loss"] for epoch in model.training["epochs"]] for model in (resumed, uninterrupted)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    with refuses("other_run", folder=tmp_path) as refused:
        firth.SkipGram(dim=25, epochs=5).fit(small, run)
    assert refused.value.values["difference"].startswith("dim ")


@pytest.mark.parametrize("method, negatives", [(firth.SkipGram, 10), (firth.CBOW, 5)])
def test_grouped_windows(method, negatives, corpus, world, monkeypatch):
    """Grouped windows, used for large vocabularies, reach the accuracy and loss of single windows."""
    ungrouped = method(dim=50, epochs=10, held_out=0.1, negatives=negatives).fit(corpus)
    monkeypatch.setattr(predict, "GROUP_MIN_VOCABULARY", 2)
    model = method(dim=50, epochs=10, held_out=0.1).fit(corpus)
    assert accuracy(model.vectors, world) > 0.75
    for name in ("loss", "held_out_loss"):
        assert model.training["epochs"][-1][name] == pytest.approx(ungrouped.training["epochs"][-1][name], rel=0.05)
    runs = [method(dim=20, epochs=2).fit(corpus, firth.Run(deterministic=True, threads=threads)) for threads in (1, 2)]
    assert runs[0].vectors.matrix.tobytes() == runs[1].vectors.matrix.tobytes()
    assert runs[0].training["loss"] < 0.7 * math.log(2) * (1 + negatives)


def test_ctrl_c_leaves_a_checkpoint(small, tmp_path, monkeypatch):
    class Interrupting(Notes):
        def step(self, done, **metrics):
            raise KeyboardInterrupt

    run = firth.Run(checkpoint_every=1000, checkpoint_folder=tmp_path, report=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        firth.SkipGram(dim=8).fit(small, run)
    assert (tmp_path / "checkpoint.json").exists()


def test_continued_training(world):
    first = firth.SkipGram(dim=20, min_count=2, epochs=2).fit(list(world.sentences(2000)))
    more = [*world.sentences(500), *["zorblax meets zorblax and gribnif"] * 40]
    second = firth.SkipGram(dim=20, min_count=2, epochs=1).fit(more, start=first)
    old = len(first.vectors)
    assert second.vectors.keys[:old] == first.vectors.keys
    assert {"zorblax", "gribnif"} <= set(second.vectors.keys[old:])
    moved = np.linalg.norm(second.vectors.matrix[:old] - first.vectors.matrix, axis=1)
    assert (
        0 < np.median(moved) < np.linalg.norm(first.vectors.matrix, axis=1).mean()
    )  # vectors were continued, not retrained
    assert second.vocabulary.counts[:old].sum() > first.vocabulary.counts.sum()
    with refuses("incompatible_start", dim=21, got=first):
        firth.SkipGram(dim=21).fit(more, start=first)


def test_continued_training_splits_text_as_before(world, tmp_path):
    text = [f"New {name} {sentence}" for sentence in world.sentences(40) for name in ("York", "Jersey")]
    more = tmp_path / "more.txt"
    more.write_text("he saw New York at noon\nthey saw San Jose by night\nhe met them in San Jose\n" * 6)
    settings: dict[str, Any] = {"dim": 8, "min_count": 2, "epochs": 1, "lowercase": False}
    first = firth.SkipGram(**settings, phrases=1).fit(text)
    before = dict(zip(first.vocabulary.tokens, first.vocabulary.counts, strict=True))
    assert before["New_York"] == before["New_Jersey"] == 40
    first.save(tmp_path / "model")
    for start in (
        first,
        firth.load(tmp_path / "model", firth.SkipGram),
    ):  # a stored model has the pairs without their scores
        second = firth.SkipGram(**settings).fit(more, start=start)  # the second time from the cache
        assert second.vocabulary.counts[second.vectors.row("New_York")] == 40 + 6
        assert second.tokenize("from New Jersey") == ["from", "New_Jersey"]
    third = firth.SkipGram(**settings, phrases=1).fit(more, start=second)
    assert third.tokenize("San Jose or New York") == ["San_Jose", "or", "New_York"]
    lists = firth.Tokens.from_lists([["New", "York", "in", "may"]] * 5)  # already split
    assert (
        firth.SkipGram(dim=8, epochs=5).fit(lists, start=first).vocabulary.counts[first.vectors.row("New_York")]
        == 40 + 5
    )
    method = firth.SkipGram(dim=8)
    assert str(method.splitting) != str(first.method.splitting)
    with refuses("incompatible_start", expected=str(method.splitting), got=str(first.method.splitting)):
        method.fit(text, start=first)


def test_a_time_budget_ends_training_and_is_not_deterministic(corpus):
    notes = Notes()
    run = firth.Run(budget=0.5, deterministic=True, report=notes)
    model = firth.SkipGram(dim=50, epochs=1000).fit(corpus, run)
    assert model.training["finished_epochs"] < 1000
    assert 0.5 <= model.training["seconds"] < 5
    assert "nondeterministic_budget" in notes.codes
    assert len(notes.codes) == 1  # the budget was used up, which is not reported


def test_an_unused_budget_is_reported(corpus):
    notes = Notes()
    firth.SkipGram(dim=8, epochs=1).fit(corpus, firth.Run(budget=500, report=notes))
    assert "unused_budget" in notes.codes


def test_invalid_training_is_refused(world):
    with refuses("empty_vocabulary", method="SkipGram", min_count=1, words=1, dropped_types=0):
        firth.SkipGram(min_count=1).fit(["word word word"])
    with refuses("empty_vocabulary", min_count=50, types=3):
        firth.SkipGram(min_count=50).fit(["a b c"])
    for method in (firth.SkipGram(), firth.CBOW(), firth.FastText()):  # one word per line
        with refuses("empty_vocabulary", method=type(method).__name__, words=2) as refused:
            method.fit(["sun", "moon"] * 9)
        assert "--unit" in str(refused.value)
    with refuses("empty_data"):
        firth.SkipGram().fit([""])
    with refuses("invalid_value", method="SkipGram", name="window", problem="must be at least 1", got=0):
        firth.SkipGram(window=0)
    with refuses("diverged") as refused:
        firth.CBOW(learning_rate=100, dim=8, combine="sum", loss="softmax", min_count=1).fit(list(world.sentences(300)))
    assert "learning_rate=100" in str(refused.value)
    with refuses("no_gpu"):
        firth.SkipGram().fit(["a b"], firth.Run(device="cuda"))


def test_texts_are_means_of_their_known_words(small, tmp_path: Path):
    model = firth.SkipGram(dim=12, epochs=1).fit(small)
    first, second = model.vectors.keys[:2]
    pooled = model.embed_with_counts([f"{first} {second.upper()} qqqq", "", "qqqq wwww"])
    np.testing.assert_allclose(pooled.matrix[0], (model.vectors[first] + model.vectors[second]) / 2, rtol=1e-6)
    assert not pooled.matrix[1:].any()
    assert pooled.known.tolist() == [2, 0, 0]
    assert pooled.unknown.tolist() == [1, 0, 2]
    assert np.array_equal(model.embed([first]), model.vectors.matrix[:1])
    assert np.array_equal(model.embed(first), model.vectors[first])
    loaded = firth.load(model.save(tmp_path / "model"), firth.SkipGram)
    assert np.array_equal(loaded.embed([first, "qqqq"]), model.embed([first, "qqqq"]))
    with refuses("unknown_key", key="qqqq"):
        loaded.vectors["qqqq"]
