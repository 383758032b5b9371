"""Vectors of sentences by contrast: the losses beside sentence-transformers', what is learned from texts alone, pairs,
triplets and scores of the invented world, shorter vectors, resumed runs, bad input."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from breaking import Notes
from sentence_transformers import SentenceTransformer, losses
from tiny import tiny_bert
from torch import Tensor, nn

import firth
from firth.core.scores import correlation, ranks
from firth.data.world import World
from firth.finetuning.contrastive_training import Contrast, in_batch, in_order, nested
from firth.training.gradient_loop import Gradient
from firth.transformers.bert_model import BertModel

ONE = firth.Run(threads=1)
SENTENCES = list(dict.fromkeys(World(seed=21).sentences(700)))


class Given(nn.Module):
    """A model of sentence-transformers' losses that gives the vectors it is given."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["rows"]}

    def get_embedding_dimension(self) -> int:
        return 12


def theirs(loss: nn.Module, sides: list[Tensor], labels: Tensor | None = None) -> float:
    return float(loss([{"rows": side} for side in sides], labels))


def drawn(sides: int, rows: int = 7, dim: int = 12) -> list[Tensor]:
    random = torch.Generator().manual_seed(sides)
    return [torch.randn(rows, dim, generator=random) for _ in range(sides)]


def different(sides: list[Tensor]) -> list[Tensor]:
    return list(torch.arange(len(sides) * len(sides[0])).view(len(sides), -1))


@pytest.mark.parametrize("sides", [2, 3])
def test_the_loss_of_pairs_and_triplets_is_that_of_sentence_transformers(sides):
    rows = drawn(sides)
    right = theirs(losses.MultipleNegativesRankingLoss(Given(), scale=20.0), rows)
    assert float(in_batch(rows, different(rows), 0.05)) / len(rows[0]) == pytest.approx(right, rel=1e-5)


def test_the_loss_of_scores_is_that_of_sentence_transformers():
    rows, scores = drawn(2), torch.tensor([0.1, 0.5, 0.5, 3.0, 2.0, 2.0, 4.0])
    right = theirs(losses.CoSENTLoss(Given(), scale=20.0), rows, scores)
    assert float(in_order(rows, scores, 0.05)) / len(scores) == pytest.approx(right, rel=1e-5)


def test_the_loss_of_shorter_vectors_is_that_of_sentence_transformers():
    rows = drawn(2)
    model = Given()
    right = theirs(losses.MatryoshkaLoss(model, losses.MultipleNegativesRankingLoss(model), [12, 8, 4]), rows)
    found = nested(lambda sides: in_batch(sides, different(rows), 0.05), rows, [8, 4])
    assert float(found) / len(rows[0]) == pytest.approx(right, rel=1e-5)


def test_the_same_text_is_no_wrong_one():
    """Rows 0 and 1 have the same right text, row 2's right text is row 3's own: with them left out, the loss is that of
    each row among the rest."""
    first, second = drawn(2, 4)
    texts = [torch.tensor([0, 1, 2, 3]), torch.tensor([10, 10, 3, 11])]
    cosines = nn.functional.normalize(first, dim=1) @ nn.functional.normalize(second, dim=1).T / 0.1
    right = torch.zeros(())
    for row, others in enumerate([[2, 3], [2, 3], [0, 1, 3], [0, 1]]):
        right += torch.logsumexp(cosines[row, [row, *others]], 0) - cosines[row, row]
    assert float(in_batch([first, second], texts, 0.1)) == pytest.approx(float(right), rel=1e-5)


# ---- learning ----


def overlap(pairs: list[tuple[str, str]]) -> list[float]:
    """The share of words that two sentences have in common: what vectors should tell."""
    sets = [(set(first.split()), set(second.split())) for first, second in pairs]
    return [len(first & second) / len(first | second) for first, second in sets]


@pytest.fixture(scope="module")
def dev() -> firth.SimilarPairs:
    some = list(dict.fromkeys(World(seed=21).sentences(1400)))[-400:]
    pairs = list(zip(some[::2], some[1::2], strict=False))
    first, second = zip(*pairs, strict=True)
    table = {"text": list(first), "other": list(second), "score": overlap(pairs)}
    return firth.SimilarPairs(table, text="text", other="other", score="score")


def spearman(model: BertModel, dev: firth.SimilarPairs) -> float:
    rows = dev.rows(firth.Run().report)
    first, second = (model.embed(side) for side in rows.sides)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return correlation(ranks(cosines), ranks(rows.scores))


def test_texts_alone_teach_it(dev):
    """From random weights, whose plain mean is the baseline."""
    base = tiny_bert()
    alike = firth.SimilarPairs(SENTENCES[:600], dev=dev)
    told = Notes()
    run = firth.Run(threads=1, report=told)
    found = firth.SentenceEncoder(epochs=3, learning_rate=1e-3, batch_size=32).fit(alike, run, base)
    assert told.codes == ["weaker_than_baseline"]  # the scores are shared words, which tf-idf knows
    score = found.training["held_out_score"]
    assert score["score"] == found.training["spearman"] and score["learned"] is True
    assert score["baselines"]["before training"] == found.training["spearman_before"]
    assert score["baselines"]["tf-idf cosine"] > 0.8
    assert found.training["spearman_before"] == pytest.approx(spearman(base, dev), abs=1e-3)
    assert found.training["spearman"] == pytest.approx(spearman(found, dev), abs=1e-3)
    assert spearman(found, dev) > spearman(base, dev) + 0.1
    assert base.net is not found.net and spearman(base, dev) == spearman(tiny_bert(), dev)


def test_the_best_weights_are_kept(dev, monkeypatch):
    """Told that the second measure was the best, it gives the weights of that moment."""
    seen: list[np.ndarray] = []

    def told(self: Contrast, most: int) -> dict[str, float]:
        seen.append(self.net.input.norm.weight.detach().numpy().copy())
        return {"score": 1.0 if len(seen) == 3 else 0.5}  # the first is asked before learning

    monkeypatch.setattr(Contrast, "evaluate", told)
    data = firth.SimilarPairs(SENTENCES[:200], dev=dev)
    found = firth.SentenceEncoder(epochs=4, learning_rate=1e-3, batch_size=16).fit(data, ONE, tiny_bert())
    assert len(seen) >= 5 and not np.array_equal(seen[2], seen[3])
    assert np.array_equal(found.net.input.norm.weight.detach().numpy(), seen[2])


def by_last_word(texts: list[str]) -> dict[str, list[str]]:
    """Sentences that end with the same word are alike here: a meaning that random weights do not know."""
    found: dict[str, list[str]] = {}
    for text in texts:
        found.setdefault(text.split()[-1], []).append(text)
    return {word: same for word, same in found.items() if len(same) > 3}


@pytest.fixture(scope="module")
def endings() -> dict[str, list[str]]:
    return by_last_word(SENTENCES)


def nearest_alike(model: BertModel, endings: dict[str, list[str]]) -> float:
    """How often the nearest other sentence ends with the same word, among each word's last two."""
    texts = [text for same in endings.values() for text in same[-2:]]
    rows = model.embed(texts)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ rows.T - 2 * np.eye(len(rows))
    return float(np.mean(scores.argmax(1) // 2 == np.arange(len(rows)) // 2))


def triplets(endings: dict[str, list[str]]) -> dict[str, list[str]]:
    """Each text but the last two of a word, with one of the same ending and one of another."""
    known = {word: same[:-2] for word, same in endings.items()}
    words, random = list(known), np.random.default_rng(5)
    rows = []
    for number, same in enumerate(known.values()):
        for text in same:
            other = known[words[(number + 1 + int(random.integers(len(words) - 1))) % len(words)]]
            rows.append((text, same[int(random.integers(len(same)))], other[int(random.integers(len(other)))]))
    return dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("kind", ["pairs", "triplets", "scores"])
def test_pairs_triplets_and_scores_teach_it(endings, kind):
    table = triplets(endings)
    if kind == "scores":
        size = len(table["a"])
        scored = {"a": table["a"] * 2, "b": table["b"] + table["c"], "how": [1.0] * size + [0.0] * size}
        data = firth.SimilarPairs(scored, text="a", other="b", score="how")
    else:
        data = firth.SimilarPairs(table, text="a", other="b", negative="c" if kind == "triplets" else None)
    base = tiny_bert()
    found = firth.SentenceEncoder(epochs=6, learning_rate=2e-3, batch_size=32).fit(data, ONE, base)
    assert nearest_alike(found, endings) > nearest_alike(base, endings) + 0.15


def first_numbers(model, dim):
    """What cutting its vectors would give."""
    return SimpleNamespace(embed=lambda texts: model.embed(texts)[:, :dim])


def test_shorter_vectors_are_learned_too(endings, tmp_path: Path):
    data = firth.SimilarPairs(triplets(endings), text="a", other="b")
    settings = {"epochs": 6, "learning_rate": 2e-3, "batch_size": 32}
    plain, both = (
        firth.SentenceEncoder(**settings, matryoshka_dims=dims).fit(data, ONE, tiny_bert()) for dims in ("", "4")
    )
    with pytest.raises(firth.FirthError) as refused:
        plain.shortened(4)
    assert refused.value.code == "unsupported_model"
    untrained = first_numbers(plain, 4)
    assert nearest_alike(both.shortened(4), endings) > nearest_alike(untrained, endings) + 0.05
    both.shortened(4).save(tmp_path / "short")
    short = firth.load(tmp_path / "short").embed(SENTENCES[:5])
    np.testing.assert_allclose(short, both.embed(SENTENCES[:5])[:, :4], atol=1e-6)
    theirs = SentenceTransformer(str(tmp_path / "short"), device="cpu").encode(SENTENCES[:5])
    np.testing.assert_allclose(theirs, short, atol=1e-5)
    with pytest.raises(firth.FirthError, match="dim must be from 1 to 4"):
        both.shortened(4).shortened(5)


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_sentence_transformers_give_the_same(pool, tmp_path: Path):
    found = firth.SentenceEncoder(pooling=pool, max_length=40).fit(SENTENCES[:40], ONE, tiny_bert())
    found.save(tmp_path / "model")
    texts = [*SENTENCES[:10], "", "king " * 70]
    with pytest.warns(firth.FirthWarning, match="1 of 12 texts have more than 40"):
        ours = found.embed(texts)
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts), ours, atol=1e-5
    )


def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, monkeypatch):
    settings = firth.SentenceEncoder(epochs=2, batch_size=8, learning_rate=1e-3)
    whole = settings.fit(SENTENCES[:40], firth.Run(deterministic=True), tiny_bert())
    steps, step = [], Gradient.step

    def stopping(self, *given):
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(Gradient, "step", stopping)
    run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, checkpoint_every=1e-9)
    with pytest.raises(KeyboardInterrupt):
        settings.fit(SENTENCES[:40], run, tiny_bert())
    with pytest.warns(firth.FirthWarning, match="Going on"):
        resumed = settings.fit(SENTENCES[:40], run, tiny_bert())
    assert np.array_equal(resumed.embed(SENTENCES[:5]), whole.embed(SENTENCES[:5]))


# ---- bad input ----


def test_what_cannot_be_learned_from():
    base, pair = tiny_bert(), {"text": ["a", "b"], "other": ["c", "d"], "score": [1, 1]}
    scored = firth.SimilarPairs(pair, other="other", score="score")
    cases = [
        (firth.SimilarPairs(["a king", ""]), {}, "at least 2 different texts; got 1"),
        (firth.SimilarPairs(["a king", "a king"]), {}, "at least 2 different texts; got 1"),
        (firth.SimilarPairs(["a", "b"]), {"dropout": 0.0}, "dropout must be above 0"),
        (firth.SimilarPairs(["a", "b"]), {"matryoshka_dims": "32"}, "dims must be shorter than 32"),
        (firth.SimilarPairs(["a", "b"]), {"max_length": 200}, "length must be at most 128"),
        (scored, {}, "All 2 pairs have the same score"),
        (firth.SimilarPairs(["a", "b"], dev=scored), {}, "All 2 dev pairs have the same score"),
    ]
    for data, settings, told in cases:
        with pytest.raises(firth.FirthError, match=told), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            firth.SentenceEncoder(**settings).fit(data, ONE, base)


def test_columns_and_settings_that_do_not_fit():
    pair = {"first": ["a", "b"], "second": ["c", "d"]}
    for settings, told in [
        ({"other": "third"}, "no column 'text'; it has first, second"),
        ({"text": "first", "other": "third"}, "no column 'third'; it has first, second"),
        ({"text": "first", "score": "s"}, r"name the column of the second texts \(other\)"),
        ({"text": "first", "other": "second", "negative": "n", "score": "s"}, "not both"),
        ({"unit": "page"}, "unit must be one of line, block, file, sentence"),
        ({"dev": firth.SimilarPairs(["a"])}, "dev must be pairs with scores"),
    ]:
        with pytest.raises(firth.FirthError, match=told):
            firth.SimilarPairs(pair, **settings)
    with pytest.raises(firth.FirthError, match="dims must be lengths"):
        firth.SentenceEncoder(matryoshka_dims="128,x")


def test_empty_and_repeated_texts_are_told(tmp_path: Path):
    class Notes:
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str, code: str = "note") -> None:
            self.notes.append(f"{code}: {text}")

    said = Notes()
    assert firth.SimilarPairs(["a", "", " ", "b", "a"]).rows(said).sides == (["a", "b"],)
    table = {"text": ["a", "", "c", "d"], "other": ["x", "y", None, "z"], "score": [1, 2, 3, None]}
    left = firth.SimilarPairs({**table, "score": [1, 2, 3, 4]}, other="other", score="score").rows(said)
    assert left.sides == (["a", "d"], ["x", "z"]) and left.scores.tolist() == [1, 4]
    with pytest.raises(firth.FirthError, match="got 1"):
        firth.SimilarPairs(table, other="other", score="score").rows(said)
    assert said.notes[0].startswith("empty_texts: 2 of 5 ") and said.notes[1].startswith("duplicate_texts: 1 of 3 ")
    assert said.notes[2].startswith("rows_left_out: 2 of 4 ") and said.notes[2].endswith("the first is row 2.")
    (tmp_path / "text.txt").write_text("One king slept. Two queens woke.\n\nThree.\n")
    assert firth.SimilarPairs(tmp_path / "text.txt", unit="sentence").rows(said).sides[0] == [
        "One king slept.",
        "Two queens woke.",
        "Three.",
    ]
