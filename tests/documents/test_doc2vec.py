"""Doc2Vec: topics of the synthetic corpus are recovered; inference, tags, continued training and edge cases."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import firth
from firth.data.tokens import Tokens, read_tokens
from firth.data.world import World
from firth.documents.doc2vec_training import Doc2VecModel
from firth.training import epoch_loop as loop

WORLD = World(seed=83)  # no option was tuned on this seed
MODES = {
    "dbow": {},
    "dbow, hierarchical softmax": {"loss": "hierarchical"},
    "dbow with words": {"train_words": True},
    # Synthetic sentences are so regular that five context words on each side determine a word, and document vectors
    # contribute little (accuracy 0.60; gensim: 0.60 to 0.64). Hence a window of 2.
    "dm": {"mode": "dm", "window": 2},
    "dm, hierarchical softmax": {"mode": "dm", "loss": "hierarchical", "window": 2, "learning_rate": 0.05},
    "dm_concat": {"mode": "dm_concat", "window": 1, "learning_rate": 0.1},
}

every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def topics():
    return list(WORLD.topics(1300))


@pytest.fixture(scope="module")
def small() -> Tokens:
    documents = [document.text.split() for document in WORLD.topics(200)]
    return Tokens.from_lists(documents, min_count=2, tags=[["even"] if i % 2 == 0 else [] for i in range(200)])


@pytest.fixture(scope="module")
def trained(small):
    return firth.Doc2Vec(dim=16, epochs=5).fit(small)


def without_tags(tokens: Tokens) -> Tokens:
    return Tokens(tokens.ids, tokens.starts, tokens.vocabulary, tokens.raw_tokens)


def probe(vectors, labels, others, other_labels) -> float:
    """Return the accuracy on `others` of a logistic regression trained on `vectors`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(LogisticRegression(max_iter=200).fit(vectors, labels).score(others, other_labels))


@every_mode
def test_synthetic_topics_are_recovered(mode, topics):
    """A classifier of the trained vectors predicts the topics of inferred vectors."""
    texts, labels = zip(*topics, strict=True)
    method = firth.Doc2Vec(dim=30, min_count=2, epochs=30, **mode)
    model = method.fit(list(texts[:1000]), firth.Run(deterministic=True))
    accuracy = probe(model.documents.matrix, labels[:1000], model.embed(texts[1000:]), labels[1000:])
    random = np.random.default_rng(0).normal(size=(1300, 30))  # baseline
    assert accuracy > 0.9
    assert probe(random[:1000], labels[:1000], random[1000:], labels[1000:]) < 0.25


def test_inferred_vectors_are_near_the_trained_ones(topics):
    texts = [document.text for document in topics]
    model = firth.Doc2Vec(dim=30, min_count=2, epochs=40).fit(texts)
    nearest = [model.neighbors(text, 1)[0].key for text in texts[:200]]
    assert np.mean([key == str(number) for number, key in enumerate(nearest, 1)]) > 0.9
    assert model.neighbors(texts[4], 2)[0] == model.documents.neighbors(model.embed(texts[4:5])[0], 1)[0]


@every_mode
def test_inference_depends_on_text_and_seed_only(mode, small, topics):
    texts = [document.text for document in topics[:40]]
    model = firth.Doc2Vec(dim=16, epochs=3, infer_epochs=4, **mode).fit(without_tags(small))
    vectors = model.embed_with_counts(texts, threads=1).matrix
    assert vectors.tobytes() == model.embed(texts, threads=3).tobytes() == model.embed(texts).tobytes()
    assert model.embed(texts[7:8]).tobytes() == vectors[7:8].tobytes()
    assert model.embed(texts[::-1])[::-1].tobytes() == vectors.tobytes()
    assert model.embed_with_counts(texts, seed=9).matrix.tobytes() != vectors.tobytes()


def test_texts_without_known_words_are_zero(trained):
    pooled = trained.embed_with_counts(["", "zzyzx qwfpgj", f"{trained.vocabulary.tokens[0]} zzyzx"])
    assert not pooled.matrix[:2].any() and pooled.matrix[2].any()
    assert pooled.known.tolist() == [0, 0, 1] and pooled.unknown.tolist() == [0, 2, 1]
    frequent = trained.vocabulary.tokens[0]  # subsampled in every epoch, so inferred without subsampling
    assert np.array_equal(trained.embed(["", frequent, "the sword"])[1], trained.embed([frequent])[0])


@every_mode
def test_tables_contain_the_trained_vectors(mode, small, tmp_path):
    tagged = mode.get("mode") != "dm_concat"
    data = small if tagged else without_tags(small)
    model = firth.Doc2Vec(dim=16, epochs=2, **mode).fit(data)
    words = mode.get("train_words") or "mode" in mode  # plain dbow does not train word vectors
    contexts = "loss" not in mode and tagged
    expected = ["documents", *(["tags"] if tagged else []), *(["words"] if words else [])]
    assert list(model.tables) == expected + (["contexts"] if contexts else [])
    assert model.vectors is model.documents and len(model.documents) == 200
    loaded = firth.load(model.save(tmp_path / "model"), firth.Doc2Vec)
    assert {name: table.matrix.tobytes() for name, table in loaded.tables.items()} == {
        name: table.matrix.tobytes() for name, table in model.tables.items()
    }
    assert loaded.embed(["the sword of the king"]).tobytes() == model.embed(["the sword of the king"]).tobytes()


def test_loss_falls_from_its_untrained_value(small):
    """Initial outputs are zero, so each of the six decisions has a loss of log 2."""
    losses = [epoch["loss"] for epoch in firth.Doc2Vec(dim=16, epochs=4, negatives=5).fit(small).training["epochs"]]
    assert losses == sorted(losses, reverse=True) and losses[0] < 6 * math.log(2)
    idle = (
        firth.Doc2Vec(dim=16, epochs=1, negatives=5, learning_rate=1e-9, negative_exponent=0)
        .fit(small)
        .training["loss"]
    )
    assert idle == pytest.approx(6 * math.log(2), rel=0.02)  # a word drawn twice counts once


# ---- tags and keys ----


def test_tags_are_near_their_documents(topics):
    """The tag of each topic is nearer to documents with this tag than to others."""
    documents = [(f"d{i}", text, [label, "all"]) for i, (text, label) in enumerate(topics[:600])]
    model = firth.Doc2Vec(dim=30, min_count=2, epochs=20).fit(firth.Corpus(documents))
    labels = sorted({document.label for document in topics})
    assert set(model.tags.keys) == {*labels, "all"} and model.training["tags"] == len(labels) + 1
    cosines = model.documents.unit @ model.tags.unit_of(labels).T
    guessed = [labels[best] for best in (cosines - cosines.mean(axis=0)).argmax(axis=1)]
    assert np.mean([guess == document.label for guess, document in zip(guessed, topics, strict=False)]) > 0.8


def test_texts_with_the_same_key_share_a_vector():
    notes = Notes()
    texts = [("a", "x y x y"), ("b", "y z y z"), ("a", "x x y y z")]
    model = firth.Doc2Vec(dim=4, min_count=1).fit(firth.Corpus(texts), firth.Run(report=notes))
    assert model.documents.keys == ["a", "b"]
    assert notes.codes[0] == "shared_keys" and notes.notes[0].startswith("1 of 3 texts have the key of another text.")


def test_number_of_tags_is_limited(small):
    words = [["x", "y", "z"]] * 3
    many = Tokens.from_lists(words, tags=[[], [f"t{i}" for i in range(64)], ["t1"]], keys=["a", "b", "c"])
    with refuses("too_large", most_tags=63, key="b", size=64):
        firth.Doc2Vec(dim=4, min_count=1).fit(many)
    just = Tokens.from_lists(words, tags=[[], [f"t{i}" for i in range(63)], ["t1", "t1"]])
    assert len(firth.Doc2Vec(dim=4, min_count=1).fit(just).tags) == 63
    with refuses("conflicting_options", mode="dm_concat"):
        firth.Doc2Vec(dim=4, min_count=1, mode="dm_concat").fit(just)


def test_more_tags_than_words():
    tokens = Tokens.from_lists([["x", "y"]] * 3000, tags=[[f"t{i}", f"u{i}", f"v{i % 7}"] for i in range(3000)])
    model = firth.Doc2Vec(dim=4, min_count=1, epochs=2).fit(tokens)
    assert len(model.tags) == 6007 and np.isfinite(model.tags.matrix).all()


# ---- edge cases ----


def test_empty_documents_are_zero_and_counted():
    texts = [("full", "x y x y z", ["t"]), ("empty", "", ["lonely", "t"]), ("rare", "q", [])]
    model = firth.Doc2Vec(dim=4, min_count=2, epochs=3).fit(firth.Corpus(texts))
    assert model.training["empty_documents"] == 2
    assert model.documents["full"].any() and model.tags["t"].any()
    assert not model.documents["empty"].any() and not model.documents["rare"].any() and not model.tags["lonely"].any()


def test_one_document():
    model = firth.Doc2Vec(dim=4, min_count=1).fit(["x y z x"])
    assert len(model.documents) == 1 and model.embed(["x y"]).any()
    assert model.neighbors("x", 5)[0].key == "1"


@pytest.mark.parametrize(
    "texts, code, values",
    [
        (["", " "], "empty_data", {}),
        (["x x x x x"], "empty_vocabulary", {"method": "Doc2Vec", "words": 1}),
        (["x"], "empty_vocabulary", {"method": "Doc2Vec", "min_count": 1}),
    ],
)
def test_corpora_without_two_words_are_refused(texts, code, values):
    with refuses(code, **values):
        firth.Doc2Vec().fit(texts)


def test_softmax_and_gpu_are_refused(small):
    with refuses("invalid_value", method="Doc2Vec", name="loss", problem="must be one of negative, hierarchical"):
        firth.Doc2Vec(loss="softmax")
    with refuses("unsupported_device", method="Doc2Vec"):
        firth.Doc2Vec().fit(small, firth.Run(device="cuda"))


# ---- runs ----


@every_mode
def test_deterministic_runs_do_not_depend_on_threads(mode, small):
    data = without_tags(small) if "dm_concat" in mode.values() else small
    results = {
        b"".join(table.matrix.tobytes() for table in model.tables.values())
        for threads in (1, 2, 4)
        for model in [firth.Doc2Vec(dim=16, epochs=2, **mode).fit(data, firth.Run(threads=threads, deterministic=True))]
    }
    assert len(results) == 1


def test_a_resumed_run_equals_an_uninterrupted_one(small, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SLICE_SECONDS", 0.001)
    method, notes = firth.Doc2Vec(dim=16, epochs=4), Notes()
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=notes)
    uninterrupted = method.fit(small, firth.Run(threads=1, deterministic=True))
    break_off(lambda: method.fit(small, run), 1)
    others = Tokens(small.ids, small.starts, small.vocabulary, small.raw_tokens, tags=[("odd",)] * 100 + [()] * 100)
    with refuses("other_run", folder=tmp_path):  # the same texts with other tags are another run
        method.fit(others, run)
    resumed = method.fit(small, dataclasses.replace(run, checkpoint_every=1000))
    assert notes.codes[-1] == "resumed"
    for name, table in resumed.tables.items():
        assert table.matrix.tobytes() == uninterrupted.tables[name].matrix.tobytes()


def test_continued_training(topics):
    first = firth.Doc2Vec(dim=16, min_count=2, epochs=10).fit(
        firth.Corpus([(f"d{i}", text, [label]) for i, (text, label) in enumerate(topics[:300])])
    )
    notes = Notes()
    more = [
        (f"d{i}", f"{text} zorblax zorblax", [label, "late"]) for i, (text, label) in enumerate(topics[280:340], 280)
    ]
    second = firth.Doc2Vec(dim=16, min_count=2, epochs=2).fit(firth.Corpus(more), firth.Run(report=notes), start=first)
    assert second.documents.keys == [f"d{i}" for i in range(340)]
    assert second.tags.keys[: len(first.tags)] == first.tags.keys and "late" in second.tags
    assert "zorblax" in second.vocabulary.tokens
    assert np.array_equal(second.documents.matrix[:280], first.documents.matrix[:280])  # not in the new corpus
    moved = np.linalg.norm(second.documents.matrix[280:300] - first.documents.matrix[280:300], axis=1)
    assert (moved > 0).all() and moved.mean() < np.linalg.norm(first.documents.matrix, axis=1).mean()
    assert notes.notes[notes.codes.index("shared_keys")].startswith("20 of 60 texts")
    with refuses("incompatible_start", expected="mode=dm", got=first):
        firth.Doc2Vec(dim=16, mode="dm").fit(firth.Corpus(more), start=first)
    words = firth.SkipGram(dim=16, epochs=1).fit(["a b"] * 9)
    with refuses("incompatible_start", expected="dim=16, mode=dbow, train_words=False", got=words):
        firth.Doc2Vec(dim=16).fit(firth.Corpus(more), start=words)


def test_outputs_are_continued_after_negative_sampling_and_reset_after_a_tree(small):
    """With negligible steps, outputs of zero have a loss of log 2 for each of the six decisions."""
    losses = {}
    for loss in ("negative", "hierarchical"):
        start = firth.Doc2Vec(dim=16, epochs=5, loss=loss).fit(small)
        method = firth.Doc2Vec(dim=16, epochs=1, negatives=5, learning_rate=1e-9, negative_exponent=0)
        losses[loss] = method.fit(small, firth.Run(report=Notes()), start=start).training["loss"]
    assert losses["hierarchical"] == pytest.approx(6 * math.log(2), rel=0.02)
    assert losses["negative"] < 0.95 * losses["hierarchical"]


def test_a_time_budget_ends_training(topics):
    model = firth.Doc2Vec(dim=50, epochs=100_000).fit([document.text for document in topics], firth.Run(budget=0.3))
    assert model.training["finished_epochs"] < 100_000 and 0.3 <= model.training["seconds"] < 5


def test_damaged_parts_are_refused(trained, tmp_path):
    from firth.core.model import Parts

    parts = trained.parts()
    for name in ("documents", "tags", "outputs"):
        damaged = Parts({**parts.arrays, name: parts.arrays[name][:, :-1]}, parts.documents)
        with refuses("damaged_model", name=name):
            firth.Doc2Vec.model.from_parts(trained.method, damaged, {})
    short = Parts({**parts.arrays, "outputs": parts.arrays["outputs"][:-1]}, parts.documents)
    with refuses("damaged_model", name="outputs", words=len(trained.vocabulary)):
        Doc2VecModel.from_parts(trained.method, short, {}).embed(["the sword"])
    assert read_tokens(["x y"], min_count=1).tags == ()
