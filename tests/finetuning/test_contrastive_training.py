"""Contrastive training: losses equal to those of sentence-transformers, training on single texts, pairs, triplets and
scores of a synthetic corpus, Matryoshka vectors, resumed runs, invalid input."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from breaking import Notes
from refusing import refuses
from sentence_transformers import SentenceTransformer, losses  # type: ignore[attr-defined]
from tiny import tiny_bert
from torch import Tensor, nn

import firth
from firth.core.scores import correlation, ranks
from firth.data.world import World
from firth.finetuning.contrastive_training import (
    ContrastiveTraining,
    cosent_loss,
    in_batch_negatives_loss,
    matryoshka_loss,
)
from firth.training.gradient_loop import GradientLoop
from firth.transformers.bert_model import BertModel

ONE = firth.Run(threads=1)
SENTENCES = list(dict.fromkeys(World(seed=21).sentences(700)))


class Identity(nn.Module):
    """A model for sentence-transformers' losses that returns its input vectors."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["rows"]}

    def get_embedding_dimension(self) -> int:
        return 12


def reference_loss(loss: nn.Module, sides: list[Tensor], labels: Tensor | None = None) -> float:
    return float(loss([{"rows": side} for side in sides], labels))


def random_sides(sides: int, rows: int = 7, dim: int = 12) -> list[Tensor]:
    random = torch.Generator().manual_seed(sides)
    return [torch.randn(rows, dim, generator=random) for _ in range(sides)]


def distinct_ids(sides: list[Tensor]) -> list[Tensor]:
    return list(torch.arange(len(sides) * len(sides[0])).view(len(sides), -1))


@pytest.mark.parametrize("sides", [2, 3])
def test_the_in_batch_loss_equals_that_of_sentence_transformers(sides):
    rows = random_sides(sides)
    expected = reference_loss(losses.MultipleNegativesRankingLoss(Identity(), scale=20.0), rows)
    loss = in_batch_negatives_loss(rows, distinct_ids(rows), 0.05)
    assert float(loss) / len(rows[0]) == pytest.approx(expected, rel=1e-5)


def test_the_cosent_loss_equals_that_of_sentence_transformers():
    rows, scores = random_sides(2), torch.tensor([0.1, 0.5, 0.5, 3.0, 2.0, 2.0, 4.0])
    expected = reference_loss(losses.CoSENTLoss(Identity(), scale=20.0), rows, scores)
    assert float(cosent_loss(rows, scores, 0.05)) / len(scores) == pytest.approx(expected, rel=1e-5)


def test_the_matryoshka_loss_equals_that_of_sentence_transformers():
    rows = random_sides(2)
    model = Identity()
    reference = losses.MatryoshkaLoss(model, losses.MultipleNegativesRankingLoss(model), [12, 8, 4])
    expected = reference_loss(reference, rows)
    loss = matryoshka_loss(lambda sides: in_batch_negatives_loss(sides, distinct_ids(rows), 0.05), rows, [8, 4])
    assert float(loss) / len(rows[0]) == pytest.approx(expected, rel=1e-5)


def test_identical_texts_are_not_used_as_negatives():
    """Rows 0 and 1 have the same positive, and row 2's positive is row 3's anchor. These false negatives are masked."""
    first, second = random_sides(2, 4)
    texts = [torch.tensor([0, 1, 2, 3]), torch.tensor([10, 10, 3, 11])]
    cosines = nn.functional.normalize(first, dim=1) @ nn.functional.normalize(second, dim=1).T / 0.1
    expected = torch.zeros(())
    for row, negatives in enumerate([[2, 3], [2, 3], [0, 1, 3], [0, 1]]):
        expected += torch.logsumexp(cosines[row, [row, *negatives]], 0) - cosines[row, row]
    assert float(in_batch_negatives_loss([first, second], texts, 0.1)) == pytest.approx(float(expected), rel=1e-5)


# ---- training ----


def overlap(pairs: list[tuple[str, str]]) -> list[float]:
    """Return the share of words that two sentences have in common, the similarity to learn."""
    sets = [(set(first.split()), set(second.split())) for first, second in pairs]
    return [len(first & second) / len(first | second) for first, second in sets]


@pytest.fixture(scope="module")
def dev() -> firth.SimilarPairs:
    sentences = list(dict.fromkeys(World(seed=21).sentences(1400)))[-400:]
    pairs = list(zip(sentences[::2], sentences[1::2], strict=False))
    first, second = zip(*pairs, strict=True)
    table = {"text": list(first), "other": list(second), "score": overlap(pairs)}
    return firth.SimilarPairs(table, text="text", other="other", score="score")


def spearman(model: BertModel, dev: firth.SimilarPairs) -> float:
    rows = dev.rows(firth.Run().report)
    first, second = (model.embed(side) for side in rows.sides)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert rows.scores is not None
    return correlation(ranks(cosines), ranks(rows.scores))


def test_single_texts_improve_the_vectors(dev):
    """Compared with random weights."""
    base = tiny_bert()
    data = firth.SimilarPairs(SENTENCES[:600], dev=dev)
    notes = Notes()
    run = firth.Run(threads=1, report=notes)
    model = firth.SentenceEncoder(epochs=3, learning_rate=1e-3, batch_size=32).fit(data, run, base)
    assert notes.codes == ["weaker_than_baseline"]  # the scores are shared words, which tf-idf measures directly
    score = model.training["held_out_score"]
    assert score["score"] == model.training["spearman"] and score["learned"] is True
    assert score["baselines"]["before training"] == model.training["spearman_before"]
    assert score["baselines"]["tf-idf cosine"] > 0.8
    assert model.training["spearman_before"] == pytest.approx(spearman(base, dev), abs=1e-3)
    assert model.training["spearman"] == pytest.approx(spearman(model, dev), abs=1e-3)
    assert spearman(model, dev) > spearman(base, dev) + 0.1
    assert base.net is not model.net and spearman(base, dev) == spearman(tiny_bert(), dev)


def norm_weights(net: Any) -> np.ndarray:
    return np.array(net.input.norm.weight.detach().numpy())


def test_the_weights_with_the_best_dev_score_are_returned(dev, monkeypatch):
    """The third evaluation is made the best one."""
    weights: list[np.ndarray] = []

    def evaluate(self: ContrastiveTraining, most: int) -> dict[str, float]:
        weights.append(norm_weights(self.net))
        return {"score": 1.0 if len(weights) == 3 else 0.5}  # the first evaluation is before training

    monkeypatch.setattr(ContrastiveTraining, "evaluate", evaluate)
    data = firth.SimilarPairs(SENTENCES[:200], dev=dev)
    model = firth.SentenceEncoder(epochs=4, learning_rate=1e-3, batch_size=16).fit(data, ONE, tiny_bert())
    assert len(weights) >= 5 and not np.array_equal(weights[2], weights[3])
    assert np.array_equal(norm_weights(model.net), weights[2])


def by_last_word(texts: list[str]) -> dict[str, list[str]]:
    """Group sentences by their last word: a similarity that random weights do not have."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(text.split()[-1], []).append(text)
    return {word: same for word, same in groups.items() if len(same) > 3}


@pytest.fixture(scope="module")
def endings() -> dict[str, list[str]]:
    return by_last_word(SENTENCES)


def nearest_share_ending(model: BertModel, endings: dict[str, list[str]]) -> float:
    """Return how often the nearest other sentence ends with the same word, among the last two of each word."""
    texts = [text for same in endings.values() for text in same[-2:]]
    rows = model.embed(texts)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ rows.T - 2 * np.eye(len(rows))
    return float(np.mean(scores.argmax(1) // 2 == np.arange(len(rows)) // 2))


def triplets(endings: dict[str, list[str]]) -> dict[str, list[str]]:
    """Pair each text, except the last two of a word, with one of the same ending and one of another."""
    train = {word: same[:-2] for word, same in endings.items()}
    words, random = list(train), np.random.default_rng(5)
    rows = []
    for number, same in enumerate(train.values()):
        for text in same:
            other = train[words[(number + 1 + int(random.integers(len(words) - 1))) % len(words)]]
            rows.append((text, same[int(random.integers(len(same)))], other[int(random.integers(len(other)))]))
    return dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("kind", ["pairs", "triplets", "scores"])
def test_pairs_triplets_and_scores_improve_the_vectors(endings, kind):
    table = triplets(endings)
    if kind == "scores":
        size = len(table["a"])
        scored = {"a": table["a"] * 2, "b": table["b"] + table["c"], "how": [1.0] * size + [0.0] * size}
        data = firth.SimilarPairs(scored, text="a", other="b", score="how")
    else:
        data = firth.SimilarPairs(table, text="a", other="b", negative="c" if kind == "triplets" else None)
    base = tiny_bert()
    model = firth.SentenceEncoder(epochs=6, learning_rate=2e-3, batch_size=32).fit(data, ONE, base)
    assert nearest_share_ending(model, endings) > nearest_share_ending(base, endings) + 0.15


def cut_to(model, dim):
    """Return a stand-in for the model whose vectors are cut to `dim` numbers."""
    return SimpleNamespace(embed=lambda texts: model.embed(texts)[:, :dim])


def test_matryoshka_dims_train_shorter_vectors(endings, tmp_path: Path):
    data = firth.SimilarPairs(triplets(endings), text="a", other="b")
    settings: dict[str, Any] = {"epochs": 6, "learning_rate": 2e-3, "batch_size": 32}
    plain, both = (
        firth.SentenceEncoder(**settings, matryoshka_dims=dims).fit(data, ONE, tiny_bert()) for dims in ("", "4")
    )
    with refuses("unsupported_model"):
        plain.shortened(4)
    untrained = cut_to(plain, 4)
    assert nearest_share_ending(both.shortened(4), endings) > nearest_share_ending(untrained, endings) + 0.05
    both.shortened(4).save(tmp_path / "short")
    short = firth.load(tmp_path / "short", firth.SentenceEncoder).embed(SENTENCES[:5])
    np.testing.assert_allclose(short, both.embed(SENTENCES[:5])[:, :4], atol=1e-6)
    reference = SentenceTransformer(str(tmp_path / "short"), device="cpu").encode(SENTENCES[:5])
    np.testing.assert_allclose(reference, short, atol=1e-5)
    with refuses("invalid_value", got=5):
        both.shortened(4).shortened(5)


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_sentence_transformers_computes_the_same_vectors(pool, tmp_path: Path):
    model = firth.SentenceEncoder(pooling=pool, max_length=40).fit(SENTENCES[:40], ONE, tiny_bert())
    model.save(tmp_path / "model")
    texts = [*SENTENCES[:10], "", "king " * 70]
    with pytest.warns(firth.FirthWarning, match=r"1 of 12 .* 40 "):
        ours = model.embed(texts)
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts), ours, atol=1e-5
    )


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch):
    method = firth.SentenceEncoder(epochs=2, batch_size=8, learning_rate=1e-3)
    uninterrupted = method.fit(SENTENCES[:40], firth.Run(deterministic=True), tiny_bert())
    steps, step = [], GradientLoop.step

    def stopping(self, *arguments):
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(GradientLoop, "step", stopping)
    run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, checkpoint_every=1e-9)
    with pytest.raises(KeyboardInterrupt):
        method.fit(SENTENCES[:40], run, tiny_bert())
    with pytest.warns(firth.FirthWarning, match="checkpoint"):
        resumed = method.fit(SENTENCES[:40], run, tiny_bert())
    assert np.array_equal(resumed.embed(SENTENCES[:5]), uninterrupted.embed(SENTENCES[:5]))


# ---- options ----


def test_the_maximum_length_is_that_of_the_base_unless_given(tmp_path: Path):
    base = tiny_bert()
    model = firth.SentenceEncoder().fit(SENTENCES[:40], ONE, base)
    assert model.method.options()["max_length"] == base.size.max_positions == 128 and model.training["automatic"] == {
        "learning_rate": 3e-5,
        "max_length": 128,
    }
    short = firth.SentenceEncoder().fit(SENTENCES[:40], ONE, base.with_pooling(max_tokens=40))
    assert short.method.options()["max_length"] == short.pooling.max_tokens == 40
    explicit = firth.SentenceEncoder(max_length=30, learning_rate=3e-5).fit(SENTENCES[:40], ONE, base)
    assert (
        explicit.method.options()["max_length"] == explicit.pooling.max_tokens == 30
        and "automatic" not in explicit.training
    )


# ---- invalid input ----


def test_data_without_contrast_is_refused():
    base, pair = tiny_bert(), {"text": ["a", "b"], "other": ["c", "d"], "score": [1, 1]}
    scored, texts = firth.SimilarPairs(pair, other="other", score="score"), firth.SimilarPairs(["a", "b"])
    dims, length = "SentenceEncoder.matryoshka_dims", "SentenceEncoder.max_length"
    cases: list[Any] = [
        (firth.SimilarPairs(["a king", ""]), {}, refuses("too_few", got=1)),
        (firth.SimilarPairs(["a king", "a king"]), {}, refuses("too_few", got=1)),
        (texts, {"dropout": 0.0}, refuses("conflicting_options", option="SentenceEncoder.dropout")),
        (texts, {"matryoshka_dims": "32"}, refuses("invalid_value", option=dims, width=32, got=32)),
        (texts, {"max_length": 200}, refuses("invalid_value", option=length, limit=128, got=200)),
        (scored, {}, refuses("no_variation", n_rows=2)),
        (firth.SimilarPairs(["a", "b"], dev=scored), {}, refuses("no_variation", n_dev=2)),
    ]
    for data, settings, refused in cases:
        with refused, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            firth.SentenceEncoder(**settings).fit(data, ONE, base)


def test_missing_columns_and_conflicting_settings_are_refused():
    pair = {"first": ["a", "b"], "second": ["c", "d"]}
    units = "line, block, file, sentence"
    cases: list[Any] = [
        ({"other": "third"}, refuses("unknown_column", name="text", available="first, second")),
        ({"text": "first", "other": "third"}, refuses("unknown_column", name="third", available="first, second")),
        ({"text": "first", "score": "s"}, refuses("conflicting_options")),
        ({"text": "first", "other": "second", "negative": "n", "score": "s"}, refuses("conflicting_options")),
        ({"unit": "page"}, refuses("invalid_value", option="SimilarPairs.unit", choices=units, got="page")),
        ({"dev": firth.SimilarPairs(["a"])}, refuses("invalid_value")),
    ]
    for settings, refused in cases:
        with refused:
            firth.SimilarPairs(pair, **settings)
    with refuses("invalid_value", option="SentenceEncoder.matryoshka_dims", got="128,x"):
        firth.SentenceEncoder(matryoshka_dims="128,x")


def test_empty_and_repeated_texts_are_counted(tmp_path: Path):
    notes = Notes()
    assert firth.SimilarPairs(["a", "", " ", "b", "a"]).rows(notes).sides == (["a", "b"],)
    table = {"text": ["a", "", "c", "d"], "other": ["x", "y", None, "z"], "score": [1, 2, 3, None]}
    complete = firth.SimilarPairs({**table, "score": [1, 2, 3, 4]}, other="other", score="score").rows(notes)
    assert complete.sides == (["a", "d"], ["x", "z"]) and complete.scores is not None
    assert complete.scores.tolist() == [1, 4]
    with refuses("too_few", got=1):
        firth.SimilarPairs(table, other="other", score="score").rows(notes)
    assert notes.notes[0].startswith("2 of 5 ") and notes.notes[1].startswith("1 of 3 ")
    assert notes.notes[2].startswith("2 of 4 ") and "row 2" in notes.notes[2]
    (tmp_path / "text.txt").write_text("One king slept. Two queens woke.\n\nThree.\n")
    assert firth.SimilarPairs(tmp_path / "text.txt", unit="sentence").rows(notes).sides[0] == [
        "One king slept.",
        "Two queens woke.",
        "Three.",
    ]
