"""A BERT as a table of tokens: the formulas in NumPy, what the text adds, the folders of model2vec and
sentence-transformers, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model2vec import StaticModel as Theirs
from refusing import refuses
from sentence_transformers import SentenceTransformer
from tiny import texts, tiny_bert

import firth
from firth.core.model import Embeds
from firth.core.scores import correlation
from firth.core.storage import write_arrays
from firth.core.vectors import unit_rows
from firth.kernels.bags import WordPieces
from firth.transformers import static_model as static
from firth.transformers.bert_model import BertModel
from firth.transformers.distillation import Bags, bags_of, draw_sentences, fitted, reader_of, rows_of, vocabulary_of
from firth.transformers.static_model import StaticModel

ODD = ["the king sleeps", "", "zzyzx zzyzx", "The KING's house, naïve 東京\x00 [CLS] [MASK]", "king " * 700]


@pytest.fixture(scope="module")
def teacher() -> BertModel:
    return tiny_bert()


@pytest.fixture(scope="module")
def student(teacher) -> StaticModel:
    return firth.Distil(dim=16, words=20).fit(texts()[:1200], start=teacher)


def test_tokens_alone_are_model2vecs_formula(teacher):
    """[CLS] token [SEP] through the teacher, principal components, Zipf's a / (a + p); SVD instead of Firth's way."""
    student = firth.Distil(dim=8).fit(start=teacher)
    assert student.tokens[:2] == ["[UNK]", *student.tokens[1:2]] and not {"[PAD]", "[CLS]"} & set(student.tokens)
    alone = np.stack([one(teacher, token) for token in student.tokens])
    centred = alone - alone.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    shares = 1 / np.arange(2, len(alone) + 2)
    weights = 1e-4 / (1e-4 + shares / shares.sum())
    expected = centred @ directions[:8].T * weights[:, None]
    expected[0] = 0
    signs = np.sign((expected * student.vectors.matrix).sum(0))  # a direction is one either way round
    np.testing.assert_allclose(student.vectors.matrix, expected * signs, atol=1e-5)


def one(teacher: BertModel, token: str) -> np.ndarray:
    ids = [teacher.tokenizer.ids[part] for part in ("[CLS]", token, "[SEP]")]
    return np.asarray(np.mean(teacher.net.states(*teacher.tensors([ids]))[-1].detach().numpy(), axis=0))


def agreement(student: StaticModel, teacher: Embeds, sentences: list[str]) -> float:
    """How well cosines of pairs go together with the teacher's."""
    both = [
        np.asarray(rows @ rows.T, np.float64)
        for rows in (student.embed(sentences), unit_rows(teacher.embed(sentences)))
    ]
    above = np.triu_indices(len(sentences), 1)
    return correlation(*(matrix[above] for matrix in both))


def test_fitted_to_sentences_it_is_nearer_to_its_teacher(teacher, student):
    """On sentences that it was not fitted to. Tokens alone are what Model2Vec has."""
    held_out = [text for text in texts()[1200:1400] if text not in set(texts()[:1200])]
    alone = firth.Distil(dim=16, texts=0, words=20).fit(texts()[:1200], start=teacher)
    assert agreement(student, teacher, held_out) > agreement(alone, teacher, held_out) + 0.1
    assert 0 < student.training["loss"] < 0.5 and student.training["texts"] > 1000
    assert student.training["agreement"] == pytest.approx(agreement(student, teacher, held_out), abs=0.15)


def test_words_of_the_text_have_rows(teacher, student):
    new = student.tokens[-20:]
    assert len(set(new)) == 20 and not set(new) & set(teacher.tokenizer.ids)
    assert all(student.embed_with_counts([word]).known.tolist() == [1] for word in new)


def test_the_table_is_the_least_of_the_sum_of_squares():
    """Against NumPy's solution of the normal equations."""
    from scipy import sparse

    random = np.random.default_rng(3)
    dense = random.random((40, 12)) * (random.random((40, 12)) < 0.3)
    dense = (dense / np.maximum(dense.sum(1, keepdims=True), 1e-9)).astype(np.float32)
    first, targets = random.normal(size=(12, 5)).astype(np.float32), random.normal(size=(40, 5)).astype(np.float32)
    shares = sparse.csr_matrix(dense)
    table, error = fitted(
        first, Bags([], np.ones(40, np.float32), rows_of(shares), rows_of(shares.T.tocsr())), targets, 2.0, 2
    )
    start_means = dense @ first
    begin = first * ((start_means * targets).sum() / (start_means * start_means).sum())
    scale = 2.0 * (dense[dense > 0] ** 2).mean()
    exact = begin + np.linalg.solve(dense.T @ dense + scale * np.eye(12), dense.T @ (targets - dense @ begin))
    np.testing.assert_allclose(table, exact, atol=2e-3)
    assert error == pytest.approx(((targets - dense @ exact) ** 2).sum() / (targets**2).sum(), abs=1e-4)


def test_a_sentence_weighs_by_its_tokens(teacher):
    known = ["king", "the king sleeps and the queen sleeps"]
    vocabulary = vocabulary_of(teacher.tokenizer, 0, None, firth.Run())
    bags = bags_of([known[0], "", known[1]], vocabulary)
    lengths = np.array([reader_of(vocabulary.document, vocabulary.tokens).ids([text])[1][-1] for text in known])
    assert bags.texts == known and lengths[1] > lengths[0]
    np.testing.assert_allclose(bags.roots**2, lengths / lengths.mean(), rtol=1e-6)
    np.testing.assert_allclose(np.add.reduceat(bags.shares.values, bags.shares.starts[:-1]), bags.roots, rtol=1e-6)


def test_a_teacher_in_bytes_teaches_the_same(teacher, student):
    method = replace(student.method, precision="float32")
    exact = method.fit(texts()[:1200], start=teacher)
    assert agreement(student, exact, texts()[1200:1400]) > 0.98
    assert student.training["agreement"] == pytest.approx(exact.training["agreement"], abs=0.02)


def test_every_sentence_has_the_same_chance():
    corpus = firth.Corpus([f"Sentence {i}." for i in range(40)])
    counts = np.zeros(40)
    for seed in range(400):
        for text in draw_sentences(corpus, 10, seed):
            counts[int(text[9:-1])] += 1
    assert counts.sum() == 4000 and 60 < counts.min() <= counts.max() < 140


# ---- files ----


def test_model2vec_and_sentence_transformers_give_the_same(student, tmp_path: Path):
    student.save(tmp_path / "model")
    ours = student.embed(ODD)
    np.testing.assert_allclose(firth.load(tmp_path / "model", firth.Distil).embed(ODD), ours)
    np.testing.assert_allclose(Theirs.from_pretrained(tmp_path / "model").encode(ODD), ours, atol=1e-6)
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(ODD), ours, atol=1e-6)


@pytest.mark.parametrize("clusters", [None, 50])
def test_folders_of_model2vec_are_read(student, tmp_path: Path, clusters):
    """Also those whose tokens share rows, and one that Firth wrote before."""
    student.save(tmp_path / "model")
    theirs = Theirs.from_pretrained(tmp_path / "model", vocabulary_quantization=clusters)
    theirs.save_pretrained(tmp_path / "theirs")
    opened = firth.load(tmp_path / "theirs", firth.Distil)
    np.testing.assert_allclose(opened.embed(ODD), theirs.encode(ODD), atol=1e-6)
    opened.save(tmp_path / "again")
    np.testing.assert_allclose(firth.load(tmp_path / "again", firth.Distil).embed(ODD), opened.embed(ODD), atol=1e-6)


def test_other_tokenizers_are_read_by_the_package(student, monkeypatch):
    native = student.embed_with_counts(ODD)
    assert isinstance(student.reader, WordPieces)
    other = StaticModel(student.method, student._document, student.vectors.matrix, {})
    monkeypatch.setattr(static, "native_reader", lambda *_: None)
    assert isinstance(other.reader, static.OtherTokens)
    theirs = other.embed_with_counts(ODD)
    np.testing.assert_allclose(native.matrix, theirs.matrix, atol=1e-6)
    assert native.known.tolist() == theirs.known.tolist() and native.unknown.tolist() == theirs.unknown.tolist()
    assert [ids.tolist() for ids in student.reader.ids(ODD)] == [ids.tolist() for ids in other.reader.ids(ODD)]


@pytest.mark.parametrize(
    ("arrays", "values"),
    [
        ({}, {"array": "embeddings"}),
        ({"embeddings": np.zeros((3, 2), np.float32)}, {"rows": 3}),
        ({"embeddings": np.zeros((3, 2), np.float32), "mapping": np.array([5])}, {"array": "mapping", "limit": 2}),
        ({"embeddings": np.zeros((3, 2), np.float32), "weights": np.ones(2)}, {"expected": 3, "got": (2,)}),
        ({"embeddings": np.full((3, 2), np.nan, np.float32)}, {"array": "embeddings"}),
    ],
    ids=["no embeddings", "too few rows", "wrong mapping", "wrong weights", "NaN"],
)
def test_damaged_folders_are_refused(student, tmp_path: Path, arrays, values):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    (tmp_path / "tokenizer.json").write_text(json.dumps(student._document))
    write_arrays(tmp_path / "model.safetensors", arrays or {"x": np.zeros(1, np.float32)})
    with refuses("invalid_tokenizer" if "rows" in values else "damaged_model", folder=tmp_path, **values):
        firth.load(tmp_path)


# ---- use ----


def test_its_table_is_searched_and_composes(student):
    assert student.vectors.neighbors("king", 3)
    word = next(
        word for text in texts() for word in text.split() if word.isalpha() and word not in student.vectors.rows
    )
    np.testing.assert_allclose(student.embed([word])[0], unit_rows(student.vectors[word][None])[0], atol=1e-6)


def test_bad_input(teacher, student):
    with refuses("invalid_value", option="Distil.dim", limit=32, got=33):
        firth.Distil(dim=33).fit(start=teacher)
    with refuses("conflicting_options", option="Distil.words", got=5):
        firth.Distil(dim=8, words=5).fit(start=teacher)
    with refuses("invalid_type", path=1, text=3):
        student.embed(["a", 3])
    with refuses("invalid_encoding", got="\ud800"):
        student.embed(["\ud800"])
