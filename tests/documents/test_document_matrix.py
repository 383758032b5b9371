"""Counts and TfIdf: worked examples, comparison with scikit-learn, and edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import firth
from firth.core.storage import write_arrays
from firth.data.corpus import Document
from firth.data.world import World
from firth.documents import document_matrix as module

TEXTS = ["a b a", "b c", "a b b d", ""]
N = 4


def table(model) -> dict[tuple[str, str], float]:
    """Return the nonzero entries of the matrix by key and word."""
    entries = model.matrix.tocoo()
    keys, words = model.documents.keys, model.words.keys
    return {
        (keys[row], words[column]): value
        for row, column, value in zip(entries.row, entries.col, entries.data.tolist(), strict=True)
    }


def by_word(model, order) -> np.ndarray:
    """Return the matrix with its columns in the order of these words."""
    return np.asarray(model.matrix.toarray()[:, [model.vocabulary.ids[word] for word in order]])


def test_counts_of_a_worked_example():
    model = firth.Counts().fit(TEXTS)
    expected = {
        ("1", "a"): 2, ("1", "b"): 1, ("2", "b"): 1, ("2", "c"): 1, ("3", "a"): 1, ("3", "b"): 2, ("3", "d"): 1,
    }  # fmt: skip
    assert table(model) == expected
    assert model.documents.keys == ["1", "2", "3", "4"]
    assert model.words["a"].tolist() == [2, 0, 1, 0]  # a word by its documents
    assert model.documents["3"].tolist() == [2, 1, 0, 1]  # b, a, c, d: most frequent first
    assert model.training["empty_documents"] == 1


@pytest.mark.parametrize(
    "tf, once, twice",
    [("count", 1, 2), ("boolean", 1, 1), ("log", math.log(2), math.log(3)), ("sublinear", 1, 1 + math.log(2))],
)
def test_term_frequencies(tf, once, twice):
    weights = table(firth.Counts(tf=tf).fit(TEXTS))
    assert weights["1", "b"] == pytest.approx(once)
    assert weights["1", "a"] == pytest.approx(twice)


@pytest.mark.parametrize(
    "idf, one, three",  # of a word in one of the four documents, and of one in three
    [
        ("plain", math.log(4), math.log(4 / 3)),
        ("plus_one", math.log(4) + 1, math.log(4 / 3) + 1),
        ("smooth", math.log(5 / 2) + 1, math.log(5 / 4) + 1),
        ("probabilistic", math.log(3), 0),
        ("bm25", math.log(1 + 3.5 / 1.5), math.log(1 + 1.5 / 3.5)),
        ("none", 1, 1),
    ],
)
def test_inverse_document_frequencies(idf, one, three):
    weights = table(firth.TfIdf(idf=idf, norm="none").fit(TEXTS))
    assert weights["2", "c"] == pytest.approx(one)
    assert weights["2", "b"] == pytest.approx(three)


def test_tfidf_of_a_worked_example():
    """d2 = "b c": the idf of b is log(4/3) = 0.2877, that of c log 4 = 1.3863, and the norm is 1.4158."""
    weights = table(firth.TfIdf().fit(TEXTS))
    assert weights["2", "b"] == pytest.approx(0.2877 / 1.4158, abs=1e-4)
    assert weights["2", "c"] == pytest.approx(1.3863 / 1.4158, abs=1e-4)


def test_bm25_of_a_worked_example():
    """The mean length is 9/4. In d1 (3 words) a occurs twice: 2 · 2.2 / (2 + 1.2 (0.25 + 0.75 · 3 / 2.25)) = 1.2571."""
    weights = table(firth.TfIdf(tf="bm25", idf="bm25", norm="none").fit(TEXTS))
    assert weights["1", "a"] == pytest.approx(1.2571 * math.log(1 + 2.5 / 2.5), abs=1e-4)
    flat = table(firth.TfIdf(tf="bm25", idf="none", norm="none", b=0, k1=0).fit(TEXTS))
    assert set(flat.values()) == {1.0}  # k1 = 0: binary weights


SENTENCES = list(World(seed=5).sentences(300))


def test_counts_equal_scikit_learns():
    peer = CountVectorizer(token_pattern=r"\S+")
    expected = peer.fit_transform(SENTENCES).toarray()
    counts = by_word(firth.Counts(tokenizer="whitespace").fit(SENTENCES), peer.get_feature_names_out())
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("norm", ["l2", "none"])
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("sublinear", [True, False])
def test_tfidf_equals_scikit_learns(norm, smooth, sublinear):
    settings = {"norm": None if norm == "none" else norm, "smooth_idf": smooth, "sublinear_tf": sublinear}
    peer = TfidfVectorizer(token_pattern=r"\S+", **settings)
    expected = peer.fit_transform(SENTENCES[:200])
    names = {"idf": "smooth" if smooth else "plus_one", "tf": "sublinear" if sublinear else "count", "norm": norm}
    model = firth.TfIdf(tokenizer="whitespace", **names).fit(SENTENCES[:200])
    words = peer.get_feature_names_out()
    np.testing.assert_allclose(by_word(model, words), expected.toarray(), rtol=2e-6, atol=1e-7)
    new = model.transform(SENTENCES[200:])
    assert sparse.issparse(new)
    order = [model.vocabulary.ids[word] for word in words]
    np.testing.assert_allclose(new.toarray()[:, order], peer.transform(SENTENCES[200:]).toarray(), rtol=2e-6, atol=1e-7)


@given(st.lists(st.text("abcd ", max_size=12), min_size=1, max_size=8).filter(lambda texts: "".join(texts).strip()))
@settings(deadline=None, max_examples=40)
def test_properties(texts):
    counts = firth.Counts(tokenizer="whitespace").fit(texts)
    assert counts.matrix.sum() == sum(len(text.split()) for text in texts)  # every token is counted once
    np.testing.assert_array_equal(counts.words.matrix, counts.documents.matrix.T)
    np.testing.assert_array_equal(counts.matrix.sum(axis=0).A1, counts.vocabulary.counts)
    model = firth.TfIdf(tokenizer="whitespace", idf="smooth").fit(texts)
    lengths = np.linalg.norm(model.matrix.toarray(), axis=1)
    np.testing.assert_allclose(lengths, [1.0 if text.split() else 0.0 for text in texts], atol=1e-6)
    np.testing.assert_allclose(model.transform(texts).toarray(), model.matrix.toarray(), atol=1e-7)


def test_weights_do_not_depend_on_the_block_size(monkeypatch):
    expected = firth.TfIdf(tf="bm25").fit(SENTENCES).matrix.toarray()
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 7)
    monkeypatch.setattr(module, "IN_MEMORY", 64)
    model = firth.TfIdf(tf="bm25").fit(SENTENCES)
    assert isinstance(model.rows.values, np.memmap)  # counted into files
    np.testing.assert_array_equal(model.matrix.toarray(), expected)


def test_result_does_not_depend_on_threads():
    texts = SENTENCES * 40  # enough for several blocks
    results = {firth.TfIdf().fit(texts, firth.Run(threads=threads)).rows.values.tobytes() for threads in (1, 3)}
    assert len(results) == 1


def test_keys_are_those_of_the_corpus(tmp_path):
    documents = [Document("x", "a b"), Document("y", "b c"), Document("z", "b c d")]
    model = firth.TfIdf().fit(firth.Corpus(documents))
    assert model.documents.keys == ["x", "y", "z"]
    assert model.documents.neighbors("y", 1)[0].key == "z"
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "p", "text": "a b"}\n{"id": "q", "text": "c"}\n')
    for _ in range(2):  # read, then from the cache
        assert firth.Counts().fit(firth.Corpus(path, key="id")).documents.keys == ["p", "q"]
    assert firth.Counts().fit(firth.Tokens.from_lists([["a"], ["b"]])).documents.keys == ["1", "2"]


def test_saved_and_loaded(tmp_path):
    model = firth.TfIdf(phrases=1, min_count=2).fit(SENTENCES)
    assert any("_" in word for word in model.words.keys)
    model.save(tmp_path / "model")
    firth.verify(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.TfIdf)
    assert isinstance(again.rows.values, np.memmap)
    assert again.documents.keys == model.documents.keys
    np.testing.assert_array_equal(again.matrix.toarray(), model.matrix.toarray())
    np.testing.assert_array_equal(again.transform(SENTENCES).toarray(), model.transform(SENTENCES).toarray())
    word = model.words.keys[5]
    assert again.words.neighbors(word) == model.words.neighbors(word)


def test_unknown_words_are_counted():
    model = firth.TfIdf().fit(TEXTS)
    weighted = model.weighted(["a zebra", "zebra unicorn", "", "b"])
    assert weighted.known.tolist() == [1, 0, 0, 1]
    assert weighted.unknown.tolist() == [1, 2, 0, 0]
    assert not weighted.matrix[1:3].toarray().any()
    assert model.embed(["a"]).shape == (1, 4) and model.embed(["a"]).dtype == np.float32
    assert model.transform([]).shape == (0, 4)
    with refuses("invalid_type", got="str"):
        model.transform("a b")


def test_dense_rows_must_fit_into_memory(monkeypatch):
    model = firth.TfIdf().fit(TEXTS)
    monkeypatch.setattr("firth.core.sparse.MOST_DENSE", 7)
    with refuses("out_of_memory", rows=2, columns=4):
        model.embed(["a", "b"])


def test_nearest_documents_have_the_same_topic():
    world = World(seed=9)
    train, test = list(world.topics(600))[:500], list(world.topics(600))[500:]
    labels = {str(number): document.label for number, document in enumerate(train, 1)}
    model = firth.TfIdf().fit([document.text for document in train])

    def accuracy(keys) -> float:
        return float(np.mean([labels[key] == document.label for key, document in zip(keys, test, strict=True)]))

    nearest = accuracy([model.neighbors(document.text, 1)[0].key for document in test])
    random = accuracy(np.random.default_rng(0).choice(list(labels), len(test)))  # baseline
    assert random < 0.3 < 0.8 < nearest


def test_edge_cases():
    same = firth.TfIdf().fit(["x y", "x y", "x y"])  # all documents equal: each word in every one
    assert not same.matrix.toarray().any()
    assert [hit.score for hit in same.documents.neighbors("1")] == [0, 0]
    assert firth.TfIdf(idf="smooth").fit(["x y", "x y"]).documents.similarity("1", "2") == pytest.approx(1)
    one = firth.Counts().fit(["x x x"])  # one document, a vocabulary of one
    assert (len(one.documents), len(one.words), one.matrix[0, 0]) == (1, 1, 3)
    assert one.documents.neighbors("1") == [] == one.words.neighbors("x")
    every = table(firth.TfIdf(norm="none").fit(["the cat", "the dog"]))
    assert every["1", "the"] == 0 and every["1", "cat"] == pytest.approx(math.log(2))
    for idf in module.IDF:
        assert np.isfinite(firth.TfIdf(idf=idf, tf="bm25").fit(["x", "x", ""]).rows.values).all()


def test_invalid_input_is_refused():
    with refuses("empty_data"):
        firth.Counts().fit(["", " . "])
    with refuses("empty_vocabulary", min_count=3, types=2):
        firth.Counts(min_count=3).fit(["a b"])
    with refuses("invalid_value", method="TfIdf", name="idf", got="log") as refused:
        firth.TfIdf(idf="log")
    assert all(idf in refused.value.values["problem"] for idf in module.IDF)
    with refuses("invalid_value", method="TfIdf", name="b", problem="must be at most 1", got=2):
        firth.TfIdf(b=2)
    with refuses("unsupported_start", method="Counts"):
        firth.Counts().fit(["a"], start=firth.Counts().fit(["a"]))
    with refuses("unsupported_device", method="Counts"):
        firth.Counts().fit(["a"], firth.Run(device="cuda"))
    with refuses("unknown_key", key="zebra") as refused:
        firth.Counts(min_count=2).fit(["a a b"]).words.neighbors("zebra")
    assert "min_count=2 dropped 1 words" in refused.value.values["reason"]


@pytest.mark.parametrize(
    "name, change",
    [
        ("columns", lambda array: array + 9),
        ("columns", lambda array: -1 - array),
        ("starts", lambda array: array[::-1]),
        ("values", lambda array: array[:-1]),
    ],
)
def test_a_damaged_matrix_is_refused_at_its_first_use(name, change, tmp_path):
    model = firth.Counts().fit(TEXTS)
    parts = model.parts()
    arrays = {**parts.arrays, name: np.ascontiguousarray(change(parts.arrays[name]))}
    with refuses("damaged_model", name=name if name == "values" else "starts"):
        type(model).from_parts(model.method, firth.core.model.Parts(arrays, parts.documents), {}).words.neighbors("a")


def test_arrays_of_other_dtypes_are_refused(tmp_path):
    model = firth.Counts().fit(TEXTS)
    for name, dtype in [("values", np.float64), ("columns", np.int64), ("starts", np.int32), ("idf", np.float32)]:
        parts = model.parts()
        arrays = {**parts.arrays, name: parts.arrays[name].astype(dtype)}
        write_arrays(tmp_path / "arrays", arrays)
        with refuses("damaged_model", name=name, dtype=np.dtype(dtype)):
            type(model).from_parts(model.method, firth.core.model.Parts(arrays, parts.documents), {})
