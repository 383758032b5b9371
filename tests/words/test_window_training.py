"""SkipGram and CBOW as a user meets them: the invented world is recovered, runs can be repeated and resumed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses

import firth
from firth.data.tokens import read_tokens
from firth.data.world import World
from firth.training import epoch_loop as loop
from firth.words import window_training as predict

SEED = 77  # a world nothing was tuned on


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
    """Share of the world's analogies answered, over all sections."""
    right = asked = 0
    for questions in world.analogies(most=60).values():
        for a, b, c, d in questions:
            asked += 1
            right += vectors.analogy(a, b, c)[0].key == d
    return right / asked


METHODS = {
    "skip-gram, noise words": firth.SkipGram(dim=50, epochs=5),
    "skip-gram, fresh noise words": firth.SkipGram(dim=50, share_negatives=False, epochs=5),
    "skip-gram, Huffman tree": firth.SkipGram(dim=50, loss="hierarchical", epochs=5),
    "skip-gram, softmax": firth.SkipGram(dim=30, loss="softmax", epochs=2, subsample=1e-4, learning_rate=0.1),
    "CBOW, noise words": firth.CBOW(dim=50, epochs=10),
    "CBOW, Huffman tree": firth.CBOW(dim=50, loss="hierarchical", epochs=10),
    "CBOW, sum": firth.CBOW(dim=50, combine="sum", learning_rate=0.025, epochs=10),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_worlds_analogies_are_recovered(name, corpus, world):
    model = METHODS[name].fit(corpus)
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert accuracy(model.vectors, world) > 0.75
    assert accuracy(random, world) < 0.05  # the baseline: vectors that know nothing


def test_similar_words_are_near(corpus, world):
    model = firth.SkipGram(dim=50, epochs=5).fit(corpus)
    pairs = [firth.evaluate.Pair(*pair) for pair in world.similarities()]
    random = firth.Vectors(model.vectors.keys, np.random.default_rng(0).normal(size=model.vectors.matrix.shape))
    assert firth.evaluate.word_similarity(model.vectors, pairs).spearman > 0.7
    assert abs(firth.evaluate.word_similarity(random, pairs).spearman) < 0.2


@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
@pytest.mark.parametrize("method", [firth.SkipGram, firth.CBOW])
def test_loss_falls_and_is_the_true_average(method, loss, small):
    figures = method(dim=16, loss=loss, epochs=4, held_out=0.1, subsample=0).fit(small).training
    losses = [epoch["loss"] for epoch in figures["epochs"]]
    held_out = [epoch["held_out_loss"] for epoch in figures["epochs"]]
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
def test_deterministic_gives_the_same_bytes_for_any_number_of_threads(method, small):
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
def test_a_resumed_run_equals_an_unbroken_one(method, small, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SLICE_SECONDS", 0.001)
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=Notes())
    whole = method.fit(small, firth.Run(threads=1, deterministic=True))
    break_off(lambda: method.fit(small, run), 3)
    resumed = method.fit(small, run)
    assert run.report.codes[-1] == "resumed"
    assert resumed.vectors.matrix.tobytes() == whole.vectors.matrix.tobytes()
    assert resumed.outputs.tobytes() == whole.outputs.tobytes()
    losses = [[epoch["loss"] for epoch in model.training["epochs"]] for model in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    with pytest.raises(firth.FirthError, match=r"other settings .dim was"):
        firth.SkipGram(dim=25, epochs=5).fit(small, run)


@pytest.mark.parametrize("method, noise", [(firth.SkipGram, 10), (firth.CBOW, 5)])
def test_windows_in_groups(method, noise, corpus, world, monkeypatch):
    """As large vocabularies have them: the world is recovered, losses are those of single windows, runs repeat."""
    alone = method(dim=50, epochs=10, held_out=0.1, negatives=noise).fit(corpus)
    monkeypatch.setattr(predict, "GROUPED", 2)
    model = method(dim=50, epochs=10, held_out=0.1).fit(corpus)
    assert accuracy(model.vectors, world) > 0.75
    for name in ("loss", "held_out_loss"):
        assert model.training["epochs"][-1][name] == pytest.approx(alone.training["epochs"][-1][name], rel=0.05)
    runs = [method(dim=20, epochs=2).fit(corpus, firth.Run(deterministic=True, threads=threads)) for threads in (1, 2)]
    assert runs[0].vectors.matrix.tobytes() == runs[1].vectors.matrix.tobytes()
    assert runs[0].training["loss"] < 0.7 * math.log(2) * (1 + noise)


def test_ctrl_c_leaves_a_checkpoint(small, tmp_path, monkeypatch):
    class Interrupting(Notes):
        def step(self, done, **figures):
            raise KeyboardInterrupt

    run = firth.Run(checkpoint_every=1000, checkpoint_folder=tmp_path, report=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        firth.SkipGram(dim=8).fit(small, run)
    assert (tmp_path / "checkpoint.json").exists()


def test_more_text_later(world):
    first = firth.SkipGram(dim=20, min_count=2, epochs=2).fit(list(world.sentences(2000)))
    more = [*world.sentences(500), *["zorblax meets zorblax and gribnif"] * 40]
    second = firth.SkipGram(dim=20, min_count=2, epochs=1).fit(more, start=first)
    old = len(first.vectors)
    assert second.vectors.keys[:old] == first.vectors.keys
    assert {"zorblax", "gribnif"} <= set(second.vectors.keys[old:])
    moved = np.linalg.norm(second.vectors.matrix[:old] - first.vectors.matrix, axis=1)
    assert 0 < np.median(moved) < np.linalg.norm(first.vectors.matrix, axis=1).mean()  # they went on, not anew
    assert second.vocabulary.counts[:old].sum() > first.vocabulary.counts.sum()
    with pytest.raises(firth.FirthError, match="dim=21"):
        firth.SkipGram(dim=21).fit(more, start=first)


def test_more_text_later_is_split_as_before(world, tmp_path):
    text = [f"New {place} {sentence}" for sentence in world.sentences(40) for place in ("York", "Jersey")]
    more = tmp_path / "more.txt"
    more.write_text("he saw New York at noon\nthey saw San Jose by night\nhe met them in San Jose\n" * 6)
    settings = {"dim": 8, "min_count": 2, "epochs": 1, "lowercase": False}
    first = firth.SkipGram(**settings, phrases=1).fit(text)
    before = dict(zip(first.vocabulary.tokens, first.vocabulary.counts, strict=True))
    assert before["New_York"] == before["New_Jersey"] == 40
    first.save(tmp_path / "model")
    for start in (first, firth.load(tmp_path / "model")):  # a stored model knows the pairs, not their scores
        second = firth.SkipGram(**settings).fit(more, start=start)  # the second time from the cache
        assert second.vocabulary.counts[second.vectors.row("New_York")] == 40 + 6
        assert second.tokenize("from New Jersey") == ["from", "New_Jersey"]
    third = firth.SkipGram(**settings, phrases=1).fit(more, start=second)
    assert third.tokenize("San Jose or New York") == ["San_Jose", "or", "New_York"]
    lists = firth.Tokens.from_lists([["New", "York", "in", "may"]] * 5)  # split already, by whoever made them
    assert (
        firth.SkipGram(dim=8, epochs=5).fit(lists, start=first).vocabulary.counts[first.vectors.row("New_York")]
        == 40 + 5
    )
    with pytest.raises(firth.FirthError, match=r"lowercase=off, this method by tokenizer=words and lowercase=on; both"):
        firth.SkipGram(dim=8).fit(text, start=first)


def test_a_budget_stops_in_time_and_is_not_deterministic(corpus):
    notes = Notes()
    run = firth.Run(budget=0.5, deterministic=True, report=notes)
    model = firth.SkipGram(dim=50, epochs=1000).fit(corpus, run)
    assert model.training["finished_epochs"] < 1000
    assert 0.5 <= model.training["seconds"] < 5
    assert any("can't be deterministic" in note for note in notes.notes)
    assert not any("ended the run" in note for note in notes.notes)


def test_a_budget_that_was_not_used_up_is_told(corpus):
    notes = Notes()
    firth.SkipGram(dim=8, epochs=1).fit(corpus, firth.Run(budget=500, report=notes))
    assert "unused_budget" in notes.codes


def test_what_cannot_be_learned_is_said(world):
    with pytest.raises(firth.FirthError, match="at least two different words"):
        firth.SkipGram(min_count=1).fit(["word word word"])
    with pytest.raises(firth.FirthError, match="min_count=50"):
        firth.SkipGram(min_count=50).fit(["a b c"])
    for method in (firth.SkipGram(), firth.CBOW(), firth.FastText()):  # a word a line
        with pytest.raises(firth.FirthError, match=r"no document has two of the 2 words .*--unit"):
            method.fit(["sun", "moon"] * 9)
    with pytest.raises(firth.FirthError, match="no words"):
        firth.SkipGram().fit([""])
    with pytest.raises(firth.FirthError, match=r"SkipGram.window must be at least 1; got 0"):
        firth.SkipGram(window=0)
    with pytest.raises(firth.FirthError, match="learning_rate=100 is too high"):
        firth.CBOW(learning_rate=100, dim=8, combine="sum", loss="softmax", min_count=1).fit(list(world.sentences(300)))
    with refuses("no_gpu"):
        firth.SkipGram().fit(["a b"], firth.Run(device="cuda"))


def test_texts_are_means_of_their_known_words(small, tmp_path: Path):
    model = firth.SkipGram(dim=12, epochs=1).fit(small)
    first, second = model.vectors.keys[:2]
    pooled = model.pool([f"{first} {second.upper()} qqqq", "", "qqqq wwww"])
    np.testing.assert_allclose(pooled.matrix[0], (model.vectors[first] + model.vectors[second]) / 2, rtol=1e-6)
    assert not pooled.matrix[1:].any()
    assert pooled.known.tolist() == [2, 0, 0]
    assert pooled.unknown.tolist() == [1, 0, 2]
    assert np.array_equal(model.embed([first]), model.vectors.matrix[:1])
    with pytest.raises(firth.FirthError, match="list of texts"):
        model.embed(first)
    loaded = firth.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.embed([first, "qqqq"]), model.embed([first, "qqqq"]))
    with pytest.raises(firth.FirthError, match="No vector for 'qqqq'"):
        loaded.vectors["qqqq"]
