"""FastText models compared with the fasttext package: identical vectors from its files, and from Firth's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses, warns_code

import firth
from firth.core.errors import FirthWarning
from firth.data.world import World
from firth.formats.fasttext import read_fasttext, write_fasttext
from firth.kernels import predict
from firth.kernels.product import ProductCodes
from firth.kernels.subwords import ngram_hash, ngrams_of
from firth.words.fasttext_model import FastTextModel
from firth.words.fasttext_quantization import quantize

MODELS = ["skipgram", "cbow_tree", "softmax", "whole_words"]
UNUSUAL = ["a", "🙂", "👨‍👩‍👧", "e\u0301t\u0301", "naïve", "日本語", "</s>"]
UNSEEN = ["kingdoms", "unkingly", "🙂🙂", "e\u0301", "日本", "zzz", "q"]
BUCKETS = 100_003
every_model = pytest.mark.parametrize("name", MODELS)


def corpus() -> firth.Corpus:
    return firth.Corpus([*World(seed=3).sentences(800), *["naïve 日本語 été a bb " * 3] * 3])


def small(**options) -> firth.FastText:
    return firth.FastText(**{"dim": 12, "epochs": 2, "min_count": 2, "buckets": BUCKETS, **options})


@pytest.fixture(scope="module")
def trained() -> FastTextModel:
    return small().fit(corpus())


def vector_of(model: FastTextModel, word: str) -> np.ndarray:
    """Return the vector of a word as fastText does: zeros if it has no n-gram with a row."""
    if word in model.vectors or model.compose(word) is not None:
        return model.vectors[word]
    return np.zeros(model.vectors.dim, dtype=np.float32)


def same_vectors(model: FastTextModel, path: Path, scale_free: bool = False) -> None:
    theirs = fasttext.load_model(str(path))
    assert theirs.get_words() == list(model.vocabulary.tokens)
    for word in [*theirs.get_words()[:200], *UNUSUAL, *UNSEEN]:
        mine, other = vector_of(model, word), theirs.get_word_vector(word)
        if scale_free and word not in model.vectors:
            mine, other = (row / max(np.linalg.norm(row), 1e-30) for row in (mine, other))
        np.testing.assert_allclose(mine, other, atol=2e-6, err_msg=word)


@every_model
def test_vectors_of_a_fasttext_file_are_identical(fasttext_files, name: str):
    model = firth.load(fasttext_files[name], firth.FastText)
    same_vectors(model, fasttext_files[name])
    assert set(UNUSUAL) <= set(model.vocabulary.tokens)


@every_model
def test_round_trip_of_a_fasttext_file_is_byte_identical(fasttext_files, tmp_path: Path, name: str):
    firth.load(fasttext_files[name], firth.FastText).save(tmp_path / "folder")
    firth.export(firth.load(tmp_path / "folder", firth.FastText), tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == fasttext_files[name].read_bytes()


@pytest.mark.parametrize(
    "options", [{}, {"objective": "cbow"}, {"loss": "hierarchical"}, {"maxn": 0}, {"minn": 1, "maxn": 2}]
)
def test_fasttext_opens_exported_models(tmp_path: Path, options):
    model = small(**options).fit(corpus())
    firth.export(model, tmp_path / "mine.bin")
    same_vectors(model, tmp_path / "mine.bin")
    same_vectors(firth.load(tmp_path / "mine.bin", firth.FastText), tmp_path / "mine.bin")
    neighbors = fasttext.load_model(str(tmp_path / "mine.bin")).get_nearest_neighbors("king", k=3)
    assert [key for _, key in neighbors] == [hit.key for hit in model.vectors.neighbors("king", 3)]


def test_huffman_tree_equals_fasttexts():
    """A port of HierarchicalSoftmaxLoss::buildTree of fastText 0.9.2, over counts with many ties."""
    counts = np.sort(np.random.default_rng(1).integers(1, 9, 200))[::-1].astype(np.int64)
    words = len(counts)
    count = [*counts.tolist(), *[10**15] * (words - 1)]
    parent, right = [-1] * len(count), [False] * len(count)
    leaf, node = words - 1, words
    for made in range(words, 2 * words - 1):
        least = []
        for _ in range(2):
            if leaf >= 0 and count[leaf] < count[node]:
                least.append(leaf)
                leaf -= 1
            else:
                least.append(node)
                node += 1
        count[made] = count[least[0]] + count[least[1]]
        parent[least[0]] = parent[least[1]] = made
        right[least[1]] = True
    paths = predict.huffman_paths(counts)
    for word in range(words):
        nodes, turns, at = [], [], word
        while parent[at] != -1:
            nodes.append(parent[at] - words)
            turns.append(right[at])
            at = parent[at]
        part = slice(paths.starts[word], paths.starts[word + 1])
        assert paths.nodes[part].tolist() == nodes[::-1] and paths.turns[part].tolist() == turns[::-1]


def test_tree_outputs_are_negated_in_fasttext_files(tmp_path: Path):
    """fastText takes the right branch with probability σ(node · hidden), Firth the left branch."""
    model = small(loss="hierarchical").fit(corpus())
    file = model.to_file()
    assert isinstance(file.outputs, np.ndarray)
    assert file.outputs.shape == (model.n_words, 12) and np.array_equal(file.outputs[:-1], -model.outputs)
    assert not file.outputs[-1].any()
    write_fasttext(tmp_path / "tree.bin", file)
    assert np.array_equal(firth.load(tmp_path / "tree.bin", firth.FastText).outputs, model.outputs)


def test_a_word_is_the_mean_of_its_rows(trained):
    word = trained.vocabulary.tokens[7]
    rows = [trained.table[7]]
    for ngram in ngrams_of(word, 3, 6):
        row = np.searchsorted(trained.subwords.bucket_ids, ngram_hash(ngram) % BUCKETS)
        rows.append(trained.table[trained.n_words + row])
    np.testing.assert_allclose(trained.vectors[word], np.mean(rows, axis=0), atol=1e-6)


def test_unseen_words_have_vectors_neighbors_and_similarities(trained):
    vectors = trained.vectors
    assert "kingdomish" not in vectors
    with refuses("unknown_key", key="q") as refused:
        vectors["q"]  # <q> is its only n-gram, and no word has it
    assert "n-grams of 3 to 6 characters" in refused.value.values["reason"]
    hits = vectors.neighbors("kingdomish", 5)
    assert len(hits) == 5 and hits[0].score <= 1.0001
    np.testing.assert_allclose(vectors.similarity("kingdomish", hits[0].key), hits[0].score, atol=1e-5)
    assert vectors.neighbors(["kingdomish", "king"], 3, negative=["queen"])
    assert vectors.analogy("kingdomish", "king", "queen")


def test_missing_buckets_count_as_zeros(trained):
    """N-grams of `kingxqz` without a row are zeros in its mean, as in the exported file."""
    rows = trained.subwords.row_lists(["kingxqz"], np.array([-1], np.int32), trained.n_words).rows
    assert (rows[1:] < 0).any() and (rows[1:] >= 0).any()
    known = trained.table[rows[rows >= 0]]
    np.testing.assert_allclose(trained.vectors["kingxqz"], known.sum(axis=0) / (len(rows) - 1), atol=1e-6)


def test_texts_with_unseen_words(trained):
    pooled = trained.embed_with_counts(["the king", "the kingdomish q", "", "q"])
    assert pooled.known.tolist() == [2, 2, 0, 0] and pooled.unknown.tolist() == [0, 1, 0, 1]
    expected = (trained.vectors["the"] + trained.vectors["kingdomish"]) / 2
    np.testing.assert_allclose(pooled.matrix[1], expected, atol=1e-6)
    assert not pooled.matrix[2:].any()
    weighted = trained.embed_with_counts(["the kingdomish"], smoothing=1e-3).matrix[0]
    share = trained.vocabulary.counts[trained.vocabulary.id("the")] / trained.vocabulary.counts.sum()
    weight = 1e-3 / (1e-3 + share)
    expected = (weight * trained.vectors["the"] + trained.vectors["kingdomish"]) / (1 + weight)
    np.testing.assert_allclose(weighted, expected, atol=1e-6)
    assert np.array_equal(trained.embed(["the kingdomish"], smoothing=1e-3)[0], weighted)
    with refuses("invalid_value", option="smoothing", got=-1):
        trained.embed_with_counts(["the"], smoothing=-1)


def test_words_that_are_not_utf8_are_counted(fasttext_files, tmp_path: Path):
    file = read_fasttext(fasttext_files["skipgram"])
    words = [b"caf\xe9" if word == b"the" else word for word in file.words]
    with warns_code("invalid_utf8") as issued:
        model = FastTextModel.from_file(replace(file, words=words))
    assert str(issued[0]).startswith("1 words")
    assert "caf\\xe9" in model.vectors
    with refuses("damaged_model", duplicates=1):
        FastTextModel.from_file(replace(file, words=[file.words[1], *file.words[1:]]))
    with refuses("unsupported_model", model="sup"):
        FastTextModel.from_file(read_fasttext(fasttext_files["labels"]))


def test_continued_training_keeps_words_and_ngrams(trained):
    more = firth.Corpus(["zebras and kings walk to the zoo " * 5] * 4)
    model = small(epochs=1, learning_rate=1e-9).fit(more, start=trained)
    assert "zebras" in model.vectors and model.n_words > trained.n_words
    np.testing.assert_allclose(model.vectors.matrix[: trained.n_words], trained.vectors.matrix, atol=1e-5)
    np.testing.assert_allclose(model.vectors["kingdomish"], trained.vectors["kingdomish"], atol=1e-2)
    for wrong in (small(dim=8), small(maxn=5), small(buckets=77)):
        expected = (wrong.dim, wrong.minn, wrong.maxn, wrong.buckets)
        with refuses("incompatible_start", expected=expected, got=(12, 3, 6, BUCKETS)):
            wrong.fit(more, start=trained)
    other = firth.SkipGram(dim=12, epochs=1).fit(corpus())
    with refuses("incompatible_start", got=other):
        small().fit(more, start=other)


@pytest.mark.parametrize("how", [{}, {"norms": True}, {"width": 5}, {"cutoff": 900, "norms": True}])
def test_fasttext_opens_quantized_models(trained, tmp_path: Path, how):
    error = firth.export(trained, tmp_path / "small.ftz", **how)
    assert error is not None and 0 < error < 0.7
    small_model = firth.load(tmp_path / "small.ftz", firth.FastText)
    assert isinstance(small_model.table, ProductCodes) and small_model.n_words == trained.n_words
    same_vectors(small_model, tmp_path / "small.ftz")
    coded = trained.quantized(**how)
    assert coded.training["quantisation_error"] == pytest.approx(error)
    same_vectors(coded, tmp_path / "small.ftz")
    coded.save(tmp_path / "folder")
    again = firth.load(tmp_path / "folder", firth.FastText)
    assert again.method == trained.method and np.array_equal(again.vectors.matrix, coded.vectors.matrix)
    if not how:
        firth.export(again, tmp_path / "again.ftz")
        assert (tmp_path / "again.ftz").read_bytes() == (tmp_path / "small.ftz").read_bytes()


def test_quantization_error_is_the_relative_squared_error(trained):
    file = trained.to_file()
    quantized = quantize(file, norms=True)
    rows = np.concatenate([file.inputs.first, file.inputs.rows])
    assert isinstance(quantized.file.inputs, ProductCodes)
    error = np.square(quantized.file.inputs.dense() - rows).sum() / np.square(rows).sum()
    assert quantized.error == pytest.approx(float(error), rel=1e-4) and quantized.error < 0.05


@pytest.mark.parametrize("how", [{}, {"norms": True}, {"cutoff": 700}, {"cutoff": 700, "norms": True, "outputs": True}])
def test_a_quantized_classifier_predicts_like_the_original(fasttext_files, tmp_path: Path, how):
    file = read_fasttext(fasttext_files["labels"])
    quantized = quantize(file, **how)
    write_fasttext(tmp_path / "small.ftz", quantized.file)
    original, coded = (fasttext.load_model(str(path)) for path in (fasttext_files["labels"], tmp_path / "small.ftz"))
    texts = list(World(seed=5).sentences(100))
    agree = [original.predict(text)[0] == coded.predict(text)[0] for text in texts]
    assert np.mean(agree) > 0.8
    if "cutoff" in how:
        assert quantized.file.inputs.shape == (700, 10) and b"</s>" in quantized.file.words
        pruned = quantize(file, cutoff=700, width=1).file.inputs
        assert isinstance(file.inputs, np.ndarray) and isinstance(pruned, ProductCodes)
        norms, pruned_norms = np.linalg.norm(file.inputs, axis=1), np.linalg.norm(pruned.dense(), axis=1)
        assert np.median(pruned_norms) > np.median(norms)


def test_invalid_quantization_is_refused(trained, tmp_path: Path):
    coded = trained.quantized()
    with refuses("wrong_input"):
        coded.quantized()
    for wrong, values in (({"width": 13}, {"dim": 12, "got": 13}), ({"cutoff": 0}, {"got": 0})):
        with refuses("invalid_value", option=next(iter(wrong)), **values):
            trained.quantized(**wrong)
    cases: list[tuple[str, firth.Model, dict[str, Any], str, dict[str, Any]]] = [
        ("x.bin", coded, {}, "conflicting_options", {}),
        ("x.bin", trained, {"norms": True}, "conflicting_options", {"options": "norms"}),
        ("x.ftz", coded, {"norms": True}, "conflicting_options", {"options": "norms"}),
        ("x.vec", trained, {}, "unknown_format", {"suffixes": ".bin, .ftz", "got": "x.vec"}),
        ("x.bin", firth.SkipGram(dim=4, epochs=1).fit(corpus()), {}, "unsupported_model", {"method": "skipgram"}),
    ]
    for path, model, how, code, expected in cases:
        with refuses(code, **expected):
            firth.export(model, tmp_path / path, **how)
    with refuses("incompatible_start", got=coded):
        small().fit(corpus(), start=coded)


def test_damaged_parts_are_refused(trained, tmp_path: Path):
    parts = trained.parts()
    for change, values in (
        ({"bucket_ids": parts.arrays["bucket_ids"][::-1]}, {"name": "bucket_ids"}),
        ({"bucket_ids": parts.arrays["bucket_ids"].astype(np.int64)}, {"name": "bucket_ids", "last": BUCKETS - 1}),
        ({"outputs": parts.arrays["outputs"][:, :3]}, {"outputs": (trained.n_words, 3)}),
        ({"inputs": parts.arrays["inputs"][:5]}, {"name": "inputs", "got": 5}),
        ({"codes": np.zeros((3, 3), np.uint8)}, {"name": "width", "dim": 12}),
    ):
        arrays = {**parts.arrays, **change}
        with refuses("damaged_model", **values):
            FastTextModel.from_parts(trained.method, type(parts)(arrays, parts.documents), {})
    with refuses("damaged_model", name="subwords.json"):
        documents = {**parts.documents, "subwords": {"minn": "3"}}
        FastTextModel.from_parts(trained.method, type(parts)(parts.arrays, documents), {})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused_or_usable(fasttext_files, tmp_path: Path, data: st.DataObject):
    """Whichever bytes change, the result is a FirthError or a usable model."""
    changed = bytearray(fasttext_files["softmax"].read_bytes())
    position = st.integers(8, 120) | st.integers(0, 20_000)
    for at, value in data.draw(st.lists(st.tuples(position, st.integers(0, 255)), min_size=1, max_size=4)):
        changed[at] = value
    (tmp_path / "damaged.bin").write_bytes(changed)
    try:
        model = firth.load(tmp_path / "damaged.bin", firth.FastText)
        model.vectors.neighbors("kingdoms", 3)
        model.embed(["the king", "unkingly"])
        firth.export(model, tmp_path / "again.bin")
    except (firth.FirthError, FirthWarning) as refused:
        assert str(refused)
